/**
 * A recovery as a process of its own that is killed at one step of it, for tests of interrupted ones. Its
 * argument is JSON: the broker's `url`, the `job`, the shard, the state to go on `from`, and the step to
 * be killed at.
 */
import { Recovery } from "../../../src/actors/recovery/recovery.ts";
import { HANG_MS } from "../../support/limits.ts";

const { url, job, shard, from, killAt } = JSON.parse(process.argv[2] ?? "{}") as {
  readonly url: string;
  readonly job: string;
  readonly shard: number;
  readonly from: string;
  readonly killAt: string;
};

const recovery = await Recovery.open({ servers: [url], timeoutMs: HANG_MS }, job);
const findings = await recovery.inspect(shard);
const choice = findings.choices.find((each) => each.from === from);
if (choice === undefined) process.exit(2);
await recovery.recover(findings, choice, (step) => {
  if (step === killAt) process.kill(process.pid, "SIGKILL");
});
process.exit(0);
