import { integerField } from "../../protocol/index.ts";
import type { StoredRecord } from "../jetstream/kv-bucket.ts";
import { change } from "./compare-and-swap.ts";
import { SWEPT_KEY } from "./keys.ts";
import { RECORD_FORMAT, readRecord } from "./lifecycle-record.ts";
import type { Surroundings } from "./settings.ts";

/** Up to which session a sweep has looked, or is about to; 0 before the first. */
export async function sweptUpTo({ records }: Pick<Surroundings, "records">): Promise<number> {
  return parseSwept(await records.read(SWEPT_KEY));
}

/** Writes down up to which session a sweep is about to look; never lowers it. */
export async function raiseSwept(
  { records, pause }: Pick<Surroundings, "records" | "pause">,
  upTo: number,
): Promise<void> {
  await change({
    records,
    key: SWEPT_KEY,
    pause,
    decide: (current) => {
      if (parseSwept(current) >= upTo) return { result: undefined };
      return { write: { format: RECORD_FORMAT, session: upTo }, result: undefined };
    },
  });
}

function parseSwept(stored: StoredRecord | undefined): number {
  if (stored === undefined) return 0;
  return readRecord(stored.value, SWEPT_KEY, (fields) => integerField(fields, "session"));
}
