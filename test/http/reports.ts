import type { HostReport, ShardReport } from "../../src/actors/host/host-report.ts";
import { NO_COUNTS } from "../../src/actors/owner/owner-counters.ts";

/** The report of a shard that is served, changed where a test says so. */
export function shardOf(shard: number, changes: Partial<ShardReport> = {}): ShardReport {
  return {
    ...{ shard, state: "serving", generation: 1, endSeq: 12, foldedSeq: 10, snapshotSeq: 4 },
    ...{ journalBytes: 1_000, journalBytesMax: 9_000, closedStep: undefined },
    ...changes,
  };
}

/** The report of a host with shard 0, changed where a test says so. */
export function reportOf(changes: Partial<HostReport> = {}): HostReport {
  return {
    ...{ host: "h", job: "j", shards: [shardOf(0)], share: [0], counts: NO_COUNTS },
    ...{ leasesLost: 0, liveTrainers: 0, whole: undefined, silentMs: 100 },
    ...changes,
  };
}

/** A host that always gives this report. */
export function hostOf(report: HostReport): { report: () => HostReport } {
  return { report: () => report };
}
