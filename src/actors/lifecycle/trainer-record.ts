import { integerField, textField } from "../../protocol/index.ts";
import type { StoredRecord } from "../jetstream/kv-bucket.ts";
import { RECORD_FORMAT, readRecord } from "./lifecycle-record.ts";

/** A trainer's latest session. It outlives the lease, so that no older one comes back. */
export interface TrainerRecord {
  readonly session: number;
  readonly token: string;
  readonly ended: boolean;
}

/**
 * The record of a trainer; undefined if there is none.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseTrainer(
  stored: StoredRecord | undefined,
  key: string,
): TrainerRecord | undefined {
  if (stored === undefined) return undefined;
  return readRecord(stored.value, key, (fields) => ({
    session: integerField(fields, "session", 1),
    token: textField(fields, "token"),
    ended: fields["ended"] === true,
  }));
}

/** The record as it is stored, readable JSON. */
export function toRecord(record: TrainerRecord): unknown {
  return { format: RECORD_FORMAT, ...record };
}
