import {
  type Fields,
  PserverError,
  quoteName,
  type ShardVersions,
  type WantedVersions,
} from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { CountRow } from "../fold/trainer-table.ts";
import type { WantedPosition } from "./pending-reads.ts";

/** Limit of the trainers that `status` names for rejected or unreadable records. */
const TRAINERS_MAX = 16;

/** Entries of `status` for a shard that is not taken over. */
export const UNRECOVERED: Fields = {
  ...{ generation: 0, seq: 0, term: 0, snapshotSeq: 0, oldestSeq: 0, blocks: 0, valueBytes: 0 },
  ...{ updates: { applied: 0, refused: 0 }, journalBytes: 0 },
};

/** Counts of senders and of their rejected and unreadable records, in one entry. */
export function sendersEntry(shard: Shard | undefined, refusedRequests: number): Fields {
  if (shard === undefined) return { refusedRequests };
  const { refusedOf, unreadableOf, ...counts } = shard.senders;
  return {
    ...counts,
    refusedRequests,
    refusedOf: highest(refusedOf),
    unreadableOf: highest(unreadableOf),
  };
}

/** The trainers with the highest counts, in descending order. */
function highest(counts: readonly CountRow[]): CountRow[] {
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, TRAINERS_MAX);
}

/** The steps of the shard; no entry in an `async` job. */
export function stepsEntry(shard: Shard | undefined): Fields {
  if (shard === undefined || shard.synchronization.mode === "async") return {};
  const { revision, closed, memberCount } = shard.steps;
  return { steps: { revision, members: memberCount, closed } };
}

/** The error of the shard, if it has one. */
export function errorEntry(error: PserverError | undefined): Fields {
  return error === undefined ? {} : { error: error.toWire() };
}

const NO_BLOCKS: ShardVersions = { least: 0, most: 0, updates: 0, blocks: 0 };

/** Versions of the shard's blocks of each parameter under the wanted epoch. */
export function shardVersions(
  shard: Pick<Shard, "blocks">,
  wanted: readonly WantedVersions[],
): ShardVersions[] {
  return wanted.map(({ parameter, epoch }) => {
    let found = NO_BLOCKS;
    for (const block of shard.blocks(parameter)) {
      if (block.epoch === epoch) found = together(found, block.version);
    }
    return found;
  });
}

/** Number of changes of all blocks of a shard since their `init`. */
export function shardUpdates(shard: Pick<Shard, "blocks">): number {
  let updates = 0;
  for (const { version } of shard.blocks()) updates += version - 1;
  return updates;
}

function together({ least, most, updates, blocks }: ShardVersions, version: number): ShardVersions {
  return {
    least: blocks === 0 ? version : Math.min(least, version),
    most: Math.max(most, version),
    updates: updates + version - 1,
    blocks: blocks + 1,
  };
}

/** Minimum time between two messages to the operator; all reports are counted. */
const TELL_AGAIN_MS = 60_000;

/**
 * Reports of askers that have seen a later record than the journal of a shard holds. Either the journal
 * has lost records unnoticed, or the asker names a record that never existed; so the operator is told,
 * and the shard goes on.
 */
export class LossReports {
  readonly #onReport: (error: PserverError) => void;
  readonly #now: () => number;
  #toldAtMs = Number.NEGATIVE_INFINITY;
  #count = 0;
  #last: Fields | undefined;

  constructor(onReport: (error: PserverError) => void, now = (): number => performance.now()) {
    this.#onReport = onReport;
    this.#now = now;
  }

  /** Adds a report. */
  add({ code, message, details }: PserverError, { asker, generation, seq }: WantedPosition): void {
    this.#count += 1;
    this.#last = { asker, generation, seq, count: this.#count };
    if (this.#now() - this.#toldAtMs < TELL_AGAIN_MS) return;
    this.#toldAtMs = this.#now();
    this.#onReport(
      new PserverError(code, `${message}; asker: ${quoteName(asker)}`, { ...details, asker }),
    );
  }

  /** Entry of `status`: the last report and their number; none without a report. */
  entry(): Fields {
    return this.#last === undefined ? {} : { reportedLoss: this.#last };
  }
}
