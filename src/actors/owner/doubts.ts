import { createHash } from "node:crypto";
import { readRecordMessage } from "../fold/read-record.ts";
import type { JournalRecord } from "../fold/shard.ts";

/** Deliveries of one record, no two alike, after which the journal itself is taken to be damaged. */
const DELIVERIES_MAX = 8;

/** One unreadable record as it came last. */
interface Doubt {
  readonly bytes: string;
  /** How often it came with other bytes than the time before. */
  readonly deliveries: number;
}

/**
 * Unreadable records that have come once. Whether one is stored so or was hurt on its way shows when it
 * comes again: the same bytes twice are what the journal holds, and every replica folds them alike.
 */
export class Doubts {
  readonly #doubts: Map<number, Doubt> = new Map();

  /** Whether this record came before with the very same bytes. */
  settles(record: JournalRecord): boolean {
    return this.#doubts.get(record.seq)?.bytes === fingerprint(record);
  }

  /**
   * Takes note of those of these records that cannot be read, to be compared when they come again, and
   * forgets all others; false if one of them is never the same.
   */
  note(records: readonly JournalRecord[]): boolean {
    const before = new Map(this.#doubts);
    this.#doubts.clear();
    for (const record of records) {
      if (readRecordMessage(record.payload) !== undefined) continue;
      const bytes = fingerprint(record);
      const known = before.get(record.seq);
      const deliveries = (known?.deliveries ?? 0) + (known?.bytes === bytes ? 0 : 1);
      if (deliveries > DELIVERIES_MAX) return false;
      this.#doubts.set(record.seq, { bytes, deliveries });
    }
    return true;
  }
}

function fingerprint({ subject, payload }: JournalRecord): string {
  return createHash("sha256").update(`${subject}\n`).update(payload).digest("base64");
}
