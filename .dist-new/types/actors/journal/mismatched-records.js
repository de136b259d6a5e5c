import { createHash } from "node:crypto";
import { isSealed } from "../../protocol/index.js";
/** The most deliveries of one record that do not confirm each other; after more of them the journal is damaged. */
const DELIVERIES_MAX = 8;
/**
 * Records that did not match their checksums when they were delivered. A second delivery tells whether
 * a record was damaged in transit or is stored like that: the same bytes twice are what the journal holds. In a
 * replicated journal they have to come from two brokers: one copy may be damaged.
 */
export class MismatchedRecords {
    #deliveries = new Map();
    /** Whether this delivery has the same bytes as the one before. */
    isConfirmedBy(record) {
        const known = this.#deliveries.get(record.seq);
        return known !== undefined && confirms(record, fingerprint(record), known);
    }
    /** Returns the broker that last delivered this record otherwise; undefined if none did. */
    brokerOf(seq) {
        return this.#deliveries.get(seq)?.broker;
    }
    /**
     * Remembers those of these records that do not match their checksums, and forgets all others;
     * false if one of them never comes twice with the same bytes.
     */
    remember(records) {
        const before = new Map(this.#deliveries);
        this.#deliveries.clear();
        for (const record of records) {
            if (isSealed(record.payload))
                continue;
            const delivered = fingerprint(record);
            const known = before.get(record.seq);
            const isConfirmed = known !== undefined && confirms(record, delivered, known);
            const count = (known?.count ?? 0) + (isConfirmed ? 0 : 1);
            if (count > DELIVERIES_MAX)
                return false;
            this.#deliveries.set(record.seq, { fingerprint: delivered, broker: record.broker, count });
        }
        return true;
    }
}
/** Whether a delivery shows that the journal holds the bytes of an earlier one. */
function confirms({ broker }, delivered, earlier) {
    const isOther = broker === undefined || broker !== earlier.broker;
    return isOther && delivered === earlier.fingerprint;
}
function fingerprint({ subject, payload }) {
    return createHash("sha256").update(`${subject}\n`).update(payload).digest("base64");
}
//# sourceMappingURL=mismatched-records.js.map