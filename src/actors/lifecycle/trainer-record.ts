import { integerField, textField } from "../../protocol/index.ts";
import type { KvEntry } from "../jetstream/kv-bucket.ts";
import { BucketRecord } from "./bucket-record.ts";
import { RECORD_FORMAT, readRecord } from "./record-format.ts";

/** A trainer's latest session. It outlives the lease, so that no older one comes back. */
export interface TrainerRecord {
  readonly session: number;
  readonly token: string;
  readonly ended: boolean;
  /** How often it has exited the steps, as its last `exit` in this session tells; absent for 0. */
  readonly exits?: number;
}

/**
 * The record of a trainer; undefined if there is none.
 * @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one.
 */
export function parseTrainer(stored: KvEntry | undefined, key: string): TrainerRecord | undefined {
  if (stored === undefined) return undefined;
  return readRecord(stored.value, key, (fields) => ({
    session: integerField(fields, "session", 1),
    token: textField(fields, "token"),
    ended: fields["ended"] === true,
    ...(fields["exits"] === undefined ? {} : { exits: integerField(fields, "exits", 1) }),
  }));
}

/** The record under a trainer's key. */
export function trainerRecord(key: string): BucketRecord<TrainerRecord | undefined> {
  return new BucketRecord<TrainerRecord | undefined>(
    key,
    (stored) => parseTrainer(stored, key),
    (trainer) => ({ format: RECORD_FORMAT, ...trainer }),
  );
}
