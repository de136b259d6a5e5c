import { createHash } from "node:crypto";
import { isSealed } from "../../protocol/index.ts";
import type { JournalRecord } from "../fold/journal-record.ts";
import type { DeliveredRecord } from "./journal-reader.ts";

/** The most deliveries of one record that do not confirm each other; after more of them the journal is damaged. */
const DELIVERIES_MAX = 8;

/** A record, and the broker whose copy of a replicated journal it is from. */
export type RecordCopy = JournalRecord & Partial<Pick<DeliveredRecord, "broker">>;

/** The last delivery of a record that does not match its checksum. */
interface Delivery {
  readonly fingerprint: string;
  readonly broker: string | undefined;
  /** Number of deliveries that did not confirm the one before. */
  readonly count: number;
}

/**
 * Records that did not match their checksums when they were delivered. A second delivery tells whether
 * a record was damaged in transit or is stored like that: the same bytes twice are what the journal holds. In a
 * replicated journal they have to come from two brokers: one copy may be damaged.
 */
export class MismatchedRecords {
  readonly #deliveries: Map<number, Delivery> = new Map();

  /** Whether this delivery has the same bytes as the one before. */
  isConfirmedBy(record: RecordCopy): boolean {
    const known = this.#deliveries.get(record.seq);
    return known !== undefined && confirms(record, fingerprint(record), known);
  }

  /** Returns the broker that last delivered this record otherwise; undefined if none did. */
  brokerOf(seq: number): string | undefined {
    return this.#deliveries.get(seq)?.broker;
  }

  /**
   * Remembers those of these records that do not match their checksums, and forgets all others;
   * false if one of them never comes twice with the same bytes.
   */
  remember(records: readonly RecordCopy[]): boolean {
    const before = new Map(this.#deliveries);
    this.#deliveries.clear();
    for (const record of records) {
      if (isSealed(record.payload)) continue;
      const delivered = fingerprint(record);
      const known = before.get(record.seq);
      const isConfirmed = known !== undefined && confirms(record, delivered, known);
      const count = (known?.count ?? 0) + (isConfirmed ? 0 : 1);
      if (count > DELIVERIES_MAX) return false;
      this.#deliveries.set(record.seq, { fingerprint: delivered, broker: record.broker, count });
    }
    return true;
  }
}

/** Whether a delivery shows that the journal holds the bytes of an earlier one. */
function confirms({ broker }: RecordCopy, delivered: string, earlier: Delivery): boolean {
  const isOther = broker === undefined || broker !== earlier.broker;
  return isOther && delivered === earlier.fingerprint;
}

function fingerprint({ subject, payload }: JournalRecord): string {
  return createHash("sha256").update(`${subject}\n`).update(payload).digest("base64");
}
