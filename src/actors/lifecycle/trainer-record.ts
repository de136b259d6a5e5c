import { integerField, textField } from "../../protocol/index.ts";
import type { KvEntry } from "../jetstream/kv-bucket.ts";
import { type BucketDeps, change } from "./compare-and-swap.ts";
import { RECORD_FORMAT, readRecord } from "./record-format.ts";

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
export function parseTrainer(stored: KvEntry | undefined, key: string): TrainerRecord | undefined {
  if (stored === undefined) return undefined;
  return readRecord(stored.value, key, (fields) => ({
    session: integerField(fields, "session", 1),
    token: textField(fields, "token"),
    ended: fields["ended"] === true,
  }));
}

/** The record under a trainer's key; undefined if there is none. */
export async function readTrainer(
  { bucket }: Pick<BucketDeps, "bucket">,
  key: string,
): Promise<TrainerRecord | undefined> {
  return parseTrainer(await bucket.read(key), key);
}

/**
 * Changes the record under a trainer's key by compare-and-swap and returns it as it is then. `decide`
 * may be called several times; it leaves the record alone by returning undefined.
 */
export async function changeTrainer(
  deps: BucketDeps,
  key: string,
  decide: (
    known: TrainerRecord | undefined,
  ) => TrainerRecord | undefined | Promise<TrainerRecord | undefined>,
): Promise<TrainerRecord | undefined> {
  const { result } = await change(deps, key, async (current) => {
    const known = parseTrainer(current, key);
    const after = await decide(known);
    if (after === undefined) return { result: known };
    return { write: { format: RECORD_FORMAT, ...after }, result: after };
  });
  return result;
}
