import { createHash } from "node:crypto";
import { isSealed } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";

/** Deliveries of one record, no two alike, after which the journal itself counts as damaged. */
const DELIVERIES_MAX = 8;

/** The last delivery of a record that does not match its checksum. */
interface Delivery {
  readonly fingerprint: string;
  /** Number of deliveries that differed from the one before. */
  readonly count: number;
}

/**
 * Records that did not match their checksums when they were delivered. A second delivery tells whether
 * a record was damaged in transit or is stored like that: the same bytes twice are what the journal holds.
 */
export class MismatchedRecords {
  readonly #deliveries: Map<number, Delivery> = new Map();

  /** Whether this delivery has the same bytes as the one before. */
  isConfirmedBy(record: JournalRecord): boolean {
    const known = this.#deliveries.get(record.seq);
    return known !== undefined && known.fingerprint === fingerprint(record);
  }

  /**
   * Remembers those of these records that do not match their checksums, and forgets all others;
   * false if one of them never comes twice with the same bytes.
   */
  remember(records: readonly JournalRecord[]): boolean {
    const before = new Map(this.#deliveries);
    this.#deliveries.clear();
    for (const record of records) {
      if (isSealed(record.payload)) continue;
      const delivered = fingerprint(record);
      const known = before.get(record.seq);
      const count = (known?.count ?? 0) + (known?.fingerprint === delivered ? 0 : 1);
      if (count > DELIVERIES_MAX) return false;
      this.#deliveries.set(record.seq, { fingerprint: delivered, count });
    }
    return true;
  }
}

function fingerprint({ subject, payload }: JournalRecord): string {
  return createHash("sha256").update(`${subject}\n`).update(payload).digest("base64");
}
