import type { JournalRecord } from "../fold/journal-record.ts";
import type { Settled, Shard } from "../fold/shard.ts";
import { describeRecord, undescribed } from "./describe-record.ts";
import type { UpdateEvent } from "./update-event.ts";

/** A record with what the fold does not need, but its description has. */
export interface DatedRecord extends JournalRecord {
  /** When the broker stored it, in milliseconds since 1970. */
  readonly timeMs: number;
}

/** A record that was folded, and what it was about. */
export interface DescribedRecord {
  /** The updates of the record, in the order of its entries. */
  readonly events: readonly UpdateEvent[];
  readonly settled: Settled | undefined;
}

/**
 * Folds the next record and describes it, as far as it can be described. `place`: the shard and the generation
 * of its journal. The observer of the shard is replaced meanwhile.
 * @throws as `Shard.apply`.
 */
export function foldDescribed(
  shard: Shard,
  record: DatedRecord,
  place: { readonly shard: number; readonly generation: number },
): DescribedRecord {
  let events: readonly UpdateEvent[] = [];
  const before = shard.observer;
  shard.observer = {
    observe: (folded) => {
      events = describeRecord(folded, shard, place);
    },
    failed: (folded, error) => {
      events = [undescribed(folded, place, error)];
    },
  };
  try {
    const settled = shard.apply(record);
    return { events, settled };
  } finally {
    shard.observer = before;
  }
}
