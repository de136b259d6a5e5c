import type { JobAdmin } from "../../client/admin/job-admin.ts";
import type { ListedShard } from "../../client/admin/participants.ts";
import { idleShards } from "../../client/admin/shard-reports.ts";
import { ensureError } from "../../protocol/errors.ts";
import { formatCount, nameShards } from "../output/amounts.ts";
import { type Check, fail, ok, warn } from "./check.ts";

/** Whether hosts of the job answer, and each shard has an owner. */
export async function checkHosts(admin: JobAdmin, job: string): Promise<Check[]> {
  try {
    const [status, { hosts, trainers, shards }] = await Promise.all([
      admin.status(),
      admin.participants(),
    ]);
    const alive = `${formatCount(hosts.length, "host")}, ${formatCount(trainers.length, "trainer")}`;
    return [ok("hosts", `${alive}; job ${job} is ${status.state}`), checkShards(shards)];
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    return [fail("hosts", `${code}: ${message}`, 'start one with "pserver host", and check --job')];
  }
}

/** Whether every shard is served. */
export function checkShards(shards: readonly ListedShard[]): Check {
  const idle = [...idleShards(shards)];
  if (idle.length === 0) return ok("shards", `all ${shards.length} are served`);
  const found = idle.map(([state, numbers]) => `${nameShards(numbers)}: ${state}`).join("; ");
  const failed = shards.find(({ state }) => state === "failed" || state === "no-memory");
  if (failed === undefined) {
    const advice = "a host takes them over within seconds; if not, look at the hosts' messages";
    return warn("shards", `not served at the moment: ${found}`, advice);
  }
  const { code, message } = { ...(failed["error"] as Readonly<Record<string, unknown>>) };
  const why = `shard ${failed.shard}: ${String(code)}: ${String(message)}`;
  const look = failed.state === "failed" ? '; "pserver recover" shows what is lost' : "";
  return fail("shards", `${found}; ${why}`, `see the error's code in docs/operations.md${look}`);
}
