import { createHash } from "node:crypto";
import { isSealed } from "../../protocol/index.ts";
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
 * Records that have come once, with a checksum that is not theirs. Whether one is stored so or was hurt on its way shows when it
 * comes again: the same bytes twice are what the journal holds, and every replica folds them alike.
 */
export class Doubts {
  readonly #doubts: Map<number, Doubt> = new Map();

  /** Whether this record came before with the very same bytes. */
  settles(record: JournalRecord): boolean {
    const known = this.#doubts.get(record.seq);
    return known !== undefined && known.bytes === fingerprint(record);
  }

  /**
   * Takes note of those of these records whose checksum is not theirs, to be compared when they come again, and
   * forgets all others; false if one of them is never the same.
   */
  note(records: readonly JournalRecord[]): boolean {
    const before = new Map(this.#doubts);
    this.#doubts.clear();
    for (const record of records) {
      if (isSealed(record.payload)) continue;
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
