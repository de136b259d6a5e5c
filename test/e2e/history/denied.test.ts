// Proves that a user who has a trainer's permissions only, or wrong credentials, is told at once that the
// history is not for them, whatever is asked of it.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";

let broker: TestBroker;

beforeAll(async () => {
  broker = await startTestBroker({
    extraConfig: `authorization { users: [
      { user: host, password: pw },
      { user: reader, password: pw, permissions: {
        publish: ["ps.j.block.*.*.reader.pull", "ps.j.lifecycle.reader.*"]
        subscribe: ["_INBOX_j.reader.>"]
      } }
    ] }`,
  });
});

afterAll(async () => {
  await broker.remove();
});

function pserver(user: string, password: string, ...args: string[]): Promise<Finished> {
  const environment = { PSERVER_URL: broker.url, PSERVER_JOB: "j" };
  return run([...args, "--user", user, "--password", password], { environment });
}

test.each([
  [["replay", "--to", "now"]],
  [["diff", "start", "now"]],
  [["blame", "w[0]"]],
  [["bisect", "--good", "start", "--nan"]],
  [["what-if", "--to", "now", "--without", "a"]],
  [["verify"]],
])("%j is refused", async (args) => {
  for (const [user, password] of [
    ["reader", "pw"],
    ["host", "wrong"],
  ] as const) {
    const { code, stdout, stderr } = await pserver(user, password, ...args);
    expect(stderr).toContain("pserver: DENIED: ");
    expect([code, stdout]).toEqual([4, ""]);
  }
});
