import { addHistograms, Histogram, type HistogramCounts } from "../../metrics/histogram.ts";
import type { GuardAction } from "../../protocol/config/index.ts";
import type { ErrorCode } from "../../protocol/errors.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import type { Change } from "../fold/apply-update.ts";
import type { RunChange } from "../fold/batch/run-change.ts";
import { type BlockActor, versionsSince } from "../fold/block-actor.ts";
import type { FoldedRecord, FoldObserver } from "../fold/journal-record.ts";

// Counts that the owners of a worker thread keep. They are plain numbers, changed where the work is done, and copied
// to the main thread together with the statuses of the shards: whoever reads them never waits for a fold.

/** What became of a record: `repeated` got the outcome of an earlier copy, `unreadable` got none. */
type RecordOutcome = "applied" | "rejected" | "repeated" | "unreadable";

/** Bounds of histograms in seconds: from a record of a small block to a long wait. */
const SECONDS = [
  ...[1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25],
  ...[0.5, 1, 2.5, 5, 10, 30, 60],
];

/** Bounds of each histogram. */
export const HISTOGRAM_BOUNDS = {
  /** Seconds in which the fold applied or rejected a record. */
  foldSeconds: SECONDS.filter((bound) => bound <= 1),
  /** Seconds from a read's request to its last answer. */
  readSeconds: SECONDS.filter((bound) => bound >= 1e-4),
  /** Seconds for which requests have waited for a step to close. */
  stepWaitSeconds: SECONDS.filter((bound) => bound >= 1e-3),
  /** Seconds in which snapshots were made. */
  snapshotSeconds: [...SECONDS.filter((bound) => bound >= 0.01), 120, 300, 600],
  /** Versions that a block had gone on since the values from which a gradient was computed. */
  stalenessVersions: [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 1024],
} as const;

/** The name of a histogram. */
export type HistogramName = keyof typeof HISTOGRAM_BOUNDS;

/** What one trainer has sent. */
export interface TrainerCounts {
  readonly applied: number;
  readonly rejected: number;
  readonly pushedBytes: number;
}

/** Counts since a worker thread, or all of a host, has started; plain data. */
export interface OwnerCounts {
  /** Records by verb, and by outcome. */
  readonly records: Readonly<Record<string, Readonly<Partial<Record<RecordOutcome, number>>>>>;
  /** Rejected records by code. */
  readonly rejected: Readonly<Partial<Record<ErrorCode, number>>>;
  /** Records that guards have rejected, clipped or set aside. */
  readonly guarded: Readonly<Partial<Record<GuardAction, number>>>;
  /** Bytes of trainers' records. */
  readonly pushedBytes: number;
  /** Bytes of answers to reads. */
  readonly pulledBytes: number;
  /** Shards that were taken over and then served. */
  readonly takeOvers: number;
  readonly histograms: Readonly<Record<HistogramName, HistogramCounts>>;
  /** With their ids, only if trainers are counted one by one. */
  readonly trainers: readonly (readonly [id: string, counts: TrainerCounts])[];
}

/** Trainers that are counted one by one at most; all others of a thread share the id "". */
const TRAINERS_MAX = 1_000;

const NO_TRAINER: TrainerCounts = { applied: 0, rejected: 0, pushedBytes: 0 };

/** Counts what the owners of one worker thread do. */
export class OwnerCounters {
  readonly #countsTrainers: boolean;
  readonly #records: Map<string, Partial<Record<RecordOutcome, number>>> = new Map();
  readonly #rejected: Map<ErrorCode, number> = new Map();
  readonly #guarded: Map<GuardAction, number> = new Map();
  readonly #trainers: Map<string, TrainerCounts> = new Map();
  readonly #histograms: Readonly<Record<HistogramName, Histogram>> = mapHistograms(
    (name) => new Histogram(HISTOGRAM_BOUNDS[name]),
  );
  #pushedBytes = 0;
  #pulledBytes = 0;
  #takeOvers = 0;

  /** `countsTrainers`: whether trainers are counted one by one. */
  constructor(countsTrainers: boolean) {
    this.#countsTrainers = countsTrainers;
  }

  /** Counts a value of a histogram. */
  observe(name: HistogramName, value: number): void {
    this.#histograms[name].observe(value);
  }

  /** Counts a shard that was taken over and is served from now on. */
  tookOver(): void {
    this.#takeOvers += 1;
  }

  /** Counts bytes of an answer to a read. */
  pulled(bytes: number): void {
    this.#pulledBytes += bytes;
  }

  /**
   * Makes the observer that counts the records of one shard while `isServing` returns true: those that are folded
   * before were counted by whoever served the shard then.
   */
  observerOf(isServing: () => boolean): FoldObserver {
    return {
      measures: false,
      observe: (folded) => {
        if (isServing()) this.#count(folded);
      },
      failed: (_folded, error) => {
        throw error;
      },
    };
  }

  /** Returns a copy of the counts so far. */
  get counted(): OwnerCounts {
    return {
      records: Object.fromEntries([...this.#records].map(([verb, by]) => [verb, { ...by }])),
      rejected: Object.fromEntries(this.#rejected),
      guarded: Object.fromEntries(this.#guarded),
      pushedBytes: this.#pushedBytes,
      pulledBytes: this.#pulledBytes,
      takeOvers: this.#takeOvers,
      histograms: mapHistograms((name) => this.#histograms[name].counted),
      trainers: [...this.#trainers],
    };
  }

  #count(folded: FoldedRecord): void {
    if (folded.kind === "host") this.#countRecord(folded.record.verb, "applied");
    else if (folded.kind === "unreadable") {
      this.#countRecord(verbOf(folded.subject), "unreadable");
    } else this.#countSent(folded);
  }

  #countSent(folded: Extract<FoldedRecord, { kind: "trainer" }>): void {
    const { subject, message, outcome, isRepeat, change, runs, verdict } = folded;
    const { code } = outcome;
    const kind = isRepeat ? "repeated" : code === undefined ? "applied" : "rejected";
    this.#countRecord(verbOf(subject), kind);
    const bytes = message.data.length;
    this.#pushedBytes += bytes;
    if (kind === "rejected" && code !== undefined) {
      this.#rejected.set(code, (this.#rejected.get(code) ?? 0) + 1);
    }
    if (verdict !== undefined) {
      this.#guarded.set(verdict.action, (this.#guarded.get(verdict.action) ?? 0) + 1);
    }
    if (this.#countsTrainers && kind !== "repeated") {
      this.#countTrainer(subject.trainer, kind, bytes);
    }
    if (change !== undefined) this.#countStaleness(change);
    for (const run of runs) this.#countRunStaleness(run);
  }

  #countRecord(verb: string, outcome: RecordOutcome): void {
    let outcomes = this.#records.get(verb);
    if (outcomes === undefined) {
      outcomes = {};
      this.#records.set(verb, outcomes);
    }
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }

  #countTrainer(trainer: string, kind: "applied" | "rejected", bytes: number): void {
    const isKnown = this.#trainers.has(trainer) || this.#trainers.size < TRAINERS_MAX;
    const id = isKnown ? trainer : "";
    const before = this.#trainers.get(id) ?? NO_TRAINER;
    const pushedBytes = before.pushedBytes + bytes;
    this.#trainers.set(id, { ...before, [kind]: before[kind] + 1, pushedBytes });
  }

  #countStaleness(change: Change): void {
    if (change.kind !== "gradient") return;
    const { seen } = change.operation;
    if (seen === undefined) return;
    this.observe("stalenessVersions", versionsSince(change.block, seen));
  }

  #countRunStaleness({ run, blocks }: RunChange): void {
    if (run.seen === undefined) return;
    for (let place = 0; place < blocks.length; place++) {
      const seen = run.seen[place] as number;
      // 0 stands for a gradient that names no version.
      if (seen === 0) continue;
      this.observe("stalenessVersions", versionsSince(blocks[place] as BlockActor, seen));
    }
  }
}

/** Returns the verb of a record: for one of a trainer about no single block what it is, `batch`, `clock` or `note`. */
function verbOf(subject: LogSubject | undefined): string {
  if (subject === undefined) return "unknown";
  return subject.by === "trainer" || subject.by === "host" ? subject.verb : subject.by;
}

/** The counts of a worker that has done nothing. */
export const NO_COUNTS: OwnerCounts = new OwnerCounters(false).counted;

/** Adds up the counts of two workers or hosts. */
export function addCounts(a: OwnerCounts, b: OwnerCounts): OwnerCounts {
  const records = { ...a.records };
  for (const [verb, outcomes] of Object.entries(b.records)) {
    records[verb] = addNumbers(records[verb] ?? {}, outcomes);
  }
  const trainers = new Map(a.trainers);
  for (const [id, counts] of b.trainers) {
    const before = trainers.get(id) ?? NO_TRAINER;
    trainers.set(id, {
      applied: before.applied + counts.applied,
      rejected: before.rejected + counts.rejected,
      pushedBytes: before.pushedBytes + counts.pushedBytes,
    });
  }
  return {
    records,
    rejected: addNumbers(a.rejected, b.rejected),
    guarded: addNumbers(a.guarded, b.guarded),
    pushedBytes: a.pushedBytes + b.pushedBytes,
    pulledBytes: a.pulledBytes + b.pulledBytes,
    takeOvers: a.takeOvers + b.takeOvers,
    histograms: mapHistograms((name) => addHistograms(a.histograms[name], b.histograms[name])),
    trainers: [...trainers],
  };
}

function addNumbers<Key extends string>(
  a: Readonly<Partial<Record<Key, number>>>,
  b: Readonly<Partial<Record<Key, number>>>,
): Partial<Record<Key, number>> {
  const sums: Partial<Record<Key, number>> = { ...a };
  for (const key of Object.keys(b) as Key[]) sums[key] = (sums[key] ?? 0) + (b[key] ?? 0);
  return sums;
}

function mapHistograms<Value>(make: (name: HistogramName) => Value): Record<HistogramName, Value> {
  const names = Object.keys(HISTOGRAM_BOUNDS) as HistogramName[];
  return Object.fromEntries(names.map((name) => [name, make(name)])) as Record<
    HistogramName,
    Value
  >;
}
