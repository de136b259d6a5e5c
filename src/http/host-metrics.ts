import type { HostReport, JobReport, ShardReport } from "../actors/host/host-report.ts";
import {
  HISTOGRAM_BOUNDS,
  type HistogramName,
  type OwnerCounts,
} from "../actors/owner/owner-counters.ts";
import type { Family, Labels, Sample } from "../metrics/exposition.ts";
import { GUARD_ACTIONS } from "../protocol/config/index.ts";
import type { WatchedHosts } from "./watched-hosts.ts";

/** States that a shard of a host may have. */
const SHARD_STATES = ["taking-over", "catching-up", "serving", "no-memory", "failed"] as const;

/** Versions of the programs, which do not change while the process runs. */
export interface BuildInfo {
  readonly version: string;
  readonly node: string;
}

/** Returns all metrics of the hosts of a process; those of which nothing is known have no samples. */
export function hostMetrics(hosts: WatchedHosts, build: BuildInfo): Family[] {
  const reports = hosts.reports();
  const { counts, leasesLost } = hosts.countsOf(reports);
  const { job } = hosts;
  const shards = eachShardOnce(reports);
  return [
    {
      ...{ name: "pserver_build", type: "info", help: "Versions of nats-pserver and Node.js." },
      samples: [{ labels: { ...build }, value: 1 }],
    },
    ...shardMetrics(job, shards),
    ...recordMetrics(job, counts),
    ...timeMetrics(job, counts),
    ...jobMetrics(job, reports, shards),
    counter("pserver_takeovers", "Shards taken over and then served.", { job }, counts.takeOvers),
    counter("pserver_leases_lost", "Leases lost while they were used.", { job }, leasesLost),
    ...trainerMetrics(job, counts),
  ];
}

/** Returns the report of each shard; while it is handed over, that of the host which serves it. */
function eachShardOnce(reports: readonly HostReport[]): ShardReport[] {
  const byNumber = new Map<number, ShardReport>();
  for (const report of reports.flatMap(({ shards }) => shards)) {
    if (byNumber.get(report.shard)?.state !== "serving") byNumber.set(report.shard, report);
  }
  return [...byNumber.values()].sort((a, b) => a.shard - b.shard);
}

/** Makes the gauges of shards; only those that were taken over have positions. */
function shardMetrics(job: string, shards: readonly ShardReport[]): Family[] {
  const taken = shards.filter(({ generation }) => generation > 0);
  const of = (name: string, help: string, value: (shard: ShardReport) => number | undefined) =>
    gauge(
      name,
      help,
      taken.flatMap((shard) => sample({ job, shard: shard.shard }, value(shard))),
    );
  return [
    gauge(
      "pserver_shard_state",
      "1 for the state that the shard has, 0 for the others.",
      shards.flatMap(({ shard, state }) =>
        SHARD_STATES.map((each) => ({
          labels: { job, shard, state: each },
          value: each === state ? 1 : 0,
        })),
      ),
    ),
    of("pserver_shard_seq", "Last record that the journal is known to hold.", (s) => s.endSeq),
    of("pserver_folded_seq", "Last record that was folded.", (s) => s.foldedSeq),
    of(
      "pserver_snapshot_seq",
      "Last record that the newest snapshot covers.",
      (s) => s.snapshotSeq,
    ),
    of("pserver_journal_bytes", "Bytes of the journal.", (s) => s.journalBytes),
    of(
      "pserver_journal_limit_bytes",
      "Bytes of the journal beyond which the broker refuses records.",
      ({ journalBytesMax }) => (journalBytesMax > 0 ? journalBytesMax : undefined),
    ),
    of(
      "pserver_step_closed",
      "Last step that has closed, where trainers keep step.",
      (s) => s.closedStep,
    ),
  ];
}

/** Makes the counters of records. */
function recordMetrics(job: string, counts: OwnerCounts): Family[] {
  const records = Object.entries(counts.records).flatMap(([verb, outcomes]) =>
    Object.entries(outcomes).map(([outcome, value]) => ({ labels: { job, verb, outcome }, value })),
  );
  const rejected = Object.entries(counts.rejected).map(([code, value]) => ({
    labels: { job, code },
    value,
  }));
  const guarded = GUARD_ACTIONS.map((action) => ({
    labels: { job, action },
    value: counts.guarded[action] ?? 0,
  }));
  return [
    {
      ...{ name: "pserver_records", type: "counter", samples: records },
      help: "Records folded by shards that are served: applied, rejected, repeated or unreadable.",
    },
    {
      ...{ name: "pserver_rejected", type: "counter", samples: rejected },
      help: "Rejected records of trainers.",
    },
    {
      ...{ name: "pserver_guarded", type: "counter", samples: guarded },
      help: "Records of trainers whose norms were above the limit of a guard: rejected, clipped or set aside.",
    },
    counter(
      "pserver_late",
      "Rejected records whose step had closed before they came.",
      { job },
      counts.rejected.LATE ?? 0,
    ),
    counter(
      "pserver_non_finite",
      "Rejected records with an element that is NaN or infinite.",
      { job },
      counts.rejected.NON_FINITE ?? 0,
    ),
    counter(
      "pserver_pushed_bytes",
      "Bytes of elements in folded records of trainers.",
      { job },
      counts.pushedBytes,
    ),
    counter("pserver_pulled_bytes", "Bytes of answers to reads.", { job }, counts.pulledBytes),
  ];
}

/** Makes the histograms. */
function timeMetrics(job: string, { histograms }: OwnerCounts): Family[] {
  const of = (name: string, from: HistogramName, help: string): Family => ({
    ...{ name, type: "histogram", help, bounds: HISTOGRAM_BOUNDS[from] },
    samples: [{ labels: { job }, counted: histograms[from] }],
  });
  return [
    of("pserver_fold_seconds", "foldSeconds", "Time to fold a record, also while catching up."),
    of("pserver_read_seconds", "readSeconds", "Time from a read's request to its last answer."),
    of(
      "pserver_step_wait_seconds",
      "stepWaitSeconds",
      "Time that requests have waited for a step to close.",
    ),
    of("pserver_snapshot_seconds", "snapshotSeconds", "Time to make a snapshot."),
    of(
      "pserver_staleness_versions",
      "stalenessVersions",
      "Versions that a block had gone on since the values from which a gradient was computed.",
    ),
  ];
}

/** Makes the gauges of what each host knows of the whole job. */
function jobMetrics(
  job: string,
  reports: readonly HostReport[],
  shards: readonly ShardReport[],
): Family[] {
  const known = reports.flatMap(({ whole }) => whole ?? []);
  const live = reports.map(({ liveTrainers }) => liveTrainers);
  const members = known.flatMap((whole) => whole.members ?? []);
  const tape = known.flatMap(({ tapeBytes }) => tapeBytes ?? []);
  return [
    gauge("pserver_trainers", "Trainers that hold a lease, and those of them that keep step.", [
      ...sample({ job, state: "live" }, greatest(live)),
      ...sample({ job, state: "member" }, greatest(members)),
    ]),
    gauge("pserver_tape_bytes", "Bytes of the job's tape.", sample({ job }, greatest(tape))),
    gauge(
      "pserver_archiver_lag_records",
      "Records of a served shard that the archiver which is furthest behind has not copied.",
      shards.flatMap((shard) => archiverLag(job, shard, known.at(-1))),
    ),
  ];
}

/** Counts the records of a served shard that some archiver lacks; none without an archiver. */
function archiverLag(
  job: string,
  { shard, state, generation, foldedSeq }: ShardReport,
  whole: JobReport | undefined,
): Sample[] {
  if (state !== "serving" || whole === undefined) return [];
  const lags = whole.archived.map((archived) => {
    const record = archived[shard]?.record;
    return Math.max(0, foldedSeq - (record?.generation === generation ? record.seq : 0));
  });
  return sample({ job, shard }, greatest(lags));
}

/** Makes the counters of trainers, which have samples only if trainers are counted one by one. */
function trainerMetrics(job: string, { trainers }: OwnerCounts): Family[] {
  const records = trainers.flatMap(([trainer, { applied, rejected }]) => [
    { labels: { job, trainer, outcome: "applied" }, value: applied },
    { labels: { job, trainer, outcome: "rejected" }, value: rejected },
  ]);
  const bytes = trainers.map(([trainer, { pushedBytes: value }]) => {
    return { labels: { job, trainer }, value };
  });
  return [
    {
      ...{ name: "pserver_trainer_records", type: "counter", samples: records },
      help: "Folded records of each trainer; only with --http-trainers.",
    },
    {
      ...{ name: "pserver_trainer_pushed_bytes", type: "counter", samples: bytes },
      help: "Bytes of elements in folded records of each trainer; only with --http-trainers.",
    },
  ];
}

function gauge(name: string, help: string, samples: readonly Sample[]): Family {
  return { name, type: "gauge", help, samples };
}

function counter(name: string, help: string, labels: Labels, value: number): Family {
  return { name, type: "counter", help, samples: [{ labels, value }] };
}

/** Returns one sample; none if there is no number. */
function sample(labels: Labels, value: number | undefined): Sample[] {
  return value === undefined ? [] : [{ labels, value }];
}

function greatest(values: readonly number[]): number | undefined {
  return values.length === 0 ? undefined : Math.max(...values);
}
