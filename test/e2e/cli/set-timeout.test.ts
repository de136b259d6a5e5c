// Proves that --timeout of `pserver set` bounds the wait for its outcome, with a host that folds nothing.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { run } from "../../cli/spawn-command.ts";
import { startTestBroker } from "../../support/broker.ts";
import { startFakeHost } from "../../support/fake-host.ts";
import { HANG_MS } from "../../support/limits.ts";

test("set --timeout bounds the wait for the outcome, which is unknown then", async () => {
  const home = await mkdtemp(join(tmpdir(), "pserver-set-"));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const broker = await startTestBroker();
  onTestFinished(() => broker.remove());
  const host = await startFakeHost({ url: broker.url, job: "j" });
  onTestFinished(() => host.close());
  const client = await connect({ url: broker.url, job: "j", trainer: "a" });
  onTestFinished(() => client.close());
  await client.beginInit();
  await client.initParam("w", Float32Array.of(1, 2));
  await client.finishInit();
  await writeFile(join(home, "w.json"), "[3,4]");
  host.stalled = true;
  const set = ["set", "w", join(home, "w.json"), "--url", broker.url, "--job", "j"];
  // A busy machine may not let it reach the broker within the limit: it gets a longer one then.
  for (let timeoutMs = 6_000; ; timeoutMs *= 4) {
    const end = await run([...set, "--timeout", `${timeoutMs}ms`]);
    if (end.code === 2 && timeoutMs * 4 <= HANG_MS) continue;
    expect(end.stderr).toMatch(new RegExp(`OUTCOME_UNKNOWN: .*${timeoutMs} ms`));
    expect(end.code).toBe(7);
    return;
  }
});
