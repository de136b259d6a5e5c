import type { JobStatus, Rate, ShardEntry } from "./job.ts";

/** Time over which rates are measured. */
const SPAN_MS = 10_000;

/** Counts of all shards at one time. */
interface Sample {
  readonly timeMs: number;
  readonly shards: readonly ShardEntry[];
}

/** Measures how much a job does, from its statuses as they come. */
export class Rates {
  #samples: Sample[] = [];

  /** Takes a status that has come at a time, in milliseconds. */
  add({ shards }: JobStatus, timeMs: number): void {
    this.#samples.push({ timeMs, shards });
    // The one before the span is kept: rates are measured from it.
    while ((this.#samples[1]?.timeMs ?? timeMs) < timeMs - SPAN_MS) this.#samples.shift();
  }

  /** Returns the rates up to the last status; undefined before there are two. */
  get rate(): Rate | undefined {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (first === undefined || last === undefined || last.timeMs <= first.timeMs) return undefined;
    const seconds = (last.timeMs - first.timeMs) / 1000;
    const before = new Map(first.shards.map((entry) => [entry.shard, entry]));
    let records = 0;
    let updates = 0;
    for (const now of last.shards) {
      const then = before.get(now.shard);
      if (then === undefined) continue;
      records += growth(then.seq, now.seq);
      updates += growth(updatesOf(then), updatesOf(now));
    }
    return { records: records / seconds, updates: updates / seconds };
  }
}

function updatesOf({ updates }: ShardEntry): number | undefined {
  return updates === undefined ? undefined : updates.applied + updates.rejected;
}

/** How much a count has grown; a smaller one has begun anew, with another owner. */
function growth(then: number | undefined, now: number | undefined): number {
  if (then === undefined || now === undefined) return 0;
  return now < then ? now : now - then;
}
