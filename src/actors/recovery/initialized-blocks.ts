import { blockPlaces } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { Records } from "../jetstream/kv-bucket.ts";
import { JOB_KEY, PARAMETER_KEYS, parameterOfKey } from "../lifecycle/keys.ts";
import { parseLifecycleRecord } from "../lifecycle/lifecycle-record.ts";
import { parseParameterRecord, standing } from "../lifecycle/parameter-record.ts";

/** A block that a shard must have, because its parameter is initialized and nobody will do so again. */
export interface InitializedBlock {
  readonly parameter: string;
  readonly index: number;
  readonly epoch: number;
}

/** The blocks of initialized parameters that lie on a shard. */
export async function initializedBlocks(
  records: Records,
  shard: number,
): Promise<InitializedBlock[]> {
  const job = parseLifecycleRecord((await records.read(JOB_KEY))?.value, JOB_KEY);
  const keys = await records.keys(PARAMETER_KEYS);
  const blocks = await mapConcurrently(keys, async (key) => {
    const parameter = parseParameterRecord(await records.read(key), parameterOfKey(key));
    if (parameter === undefined || standing(parameter, job) !== "ready") return [];
    const { declaration, layout, lifecycle } = parameter;
    return blockPlaces(layout)
      .filter((place) => place.shard === shard)
      .map(({ index }) => ({
        parameter: declaration.name,
        index,
        epoch: lifecycle.context.epoch,
      }));
  });
  return blocks.flat();
}
