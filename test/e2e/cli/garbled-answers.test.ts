// Proves that commands which ask JetStream end with a typed error that says what was expected and what
// came, where a process that plays the broker answers with something else.
import { afterEach, describe, expect, test } from "vitest";
import { run } from "../../cli/spawn-command.ts";
import { type FakeBroker, startFakeBroker } from "../../support/fake-broker.ts";

let broker: FakeBroker | undefined;
afterEach(() => broker?.close());

/** A command against a broker that answers every request with `answer`. */
async function against(answer: string, ...args: string[]): ReturnType<typeof run> {
  broker = await startFakeBroker({ info: { jetstream: true }, answer: () => answer });
  return await run([...args, "--url", `nats://127.0.0.1:${broker.port}`]);
}

describe.each([
  ["garbage", 'expected JSON; received "garbage"'],
  ["null", "expected a map; received null"],
  ['{"error":"\\u001b[2J"}', "error: expected a map; received"],
  ['{"streams":-1}', "expected "],
])("to the answer %j", (answer, told) => {
  test.each([["host"], ["recover"], ["jobs"], ["remove", "default", "--yes"]])(
    "%s ends with BAD_MESSAGE",
    async (...args) => {
      const { code, stderr } = await against(answer, ...args);
      expect(stderr).toContain("BAD_MESSAGE: ");
      expect(stderr.replaceAll(/\s+/g, " ")).toContain(told);
      expect(stderr).not.toContain("\u001b");
      expect(code).toBe(1);
    },
  );

  test("doctor says so", async () => {
    const { code, stdout } = await against(answer, "doctor", "--timeout", "30s");
    expect(stdout).toMatch(/FAIL +JetStream: BAD_MESSAGE: /);
    expect(stdout.replaceAll(/\s+/g, " ")).toContain(told);
    expect(code).toBe(1);
  });
});
