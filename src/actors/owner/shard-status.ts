import type { Fields, PserverError } from "../../protocol/index.ts";
import type { CountRow } from "../fold/fold-state.ts";
import type { Shard } from "../fold/shard.ts";

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
