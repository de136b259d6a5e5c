import type { KvBucket, KvEntry } from "../../actors/jetstream/kv-bucket.ts";
import { BucketRecord } from "../../actors/lifecycle/bucket-record.ts";
import { RECORD_FORMAT, readRecord } from "../../actors/lifecycle/record-format.ts";
import {
  asMap,
  integerField,
  listField,
  type Position,
  parsePosition,
  SHARDS_MAX,
  textField,
} from "../../protocol/index.ts";

/** A rewind under way, or one that was interrupted. */
export interface RewindPlan {
  /** Token of the rewind. */
  readonly id: string;
  /** When it was begun, in milliseconds since 1970. */
  readonly begunMs: number;
  /** The position of each shard to go on from. */
  readonly at: readonly Position[];
  /** The generation of each shard when it was begun; one of a later generation has been rewound. */
  readonly from: readonly number[];
}

const REWIND_KEY = "rewind";

/** The record of a rewind in the bucket of its job; there is none when it is complete. */
export const rewindRecord = new BucketRecord<RewindPlan | undefined, RewindPlan>(
  REWIND_KEY,
  parsePlan,
  (plan) => ({ format: RECORD_FORMAT, ...plan }),
);

/** Removes the record of a rewind that is complete, unless it is gone already. */
export async function endRewind(bucket: KvBucket, id: string): Promise<void> {
  const stored = await bucket.read(REWIND_KEY);
  if (stored === undefined || parsePlan(stored)?.id !== id) return;
  await bucket.remove(REWIND_KEY, stored.revision);
}

/** The plan in a record. @throws BAD_VERSION for a record of another format, INTERNAL for a damaged one. */
function parsePlan(stored: KvEntry | undefined): RewindPlan | undefined {
  if (stored === undefined) return undefined;
  return readRecord(stored.value, REWIND_KEY, (fields) => ({
    id: textField(fields, "id"),
    begunMs: integerField(fields, "begunMs"),
    at: listField(fields, "at", SHARDS_MAX).map((at) => parsePosition(asMap(at, "at"))),
    from: listField(fields, "from", SHARDS_MAX).map((from) => integerField({ from }, "from", 1)),
  }));
}
