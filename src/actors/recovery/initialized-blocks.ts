import { blockPlaces } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { parseLifecycleRecord } from "../lifecycle/lifecycle-record.ts";
import { effectiveState } from "../lifecycle/parameter.ts";
import { parseParameterRecord } from "../lifecycle/parameter-record.ts";
import { JOB_KEY, PARAMETER_KEYS, parameterOfKey } from "../lifecycle/record-format.ts";

/** A block of an initialized parameter: its shard must have it, as nobody will initialize it again. */
export interface InitializedBlock {
  readonly parameter: string;
  readonly index: number;
  readonly epoch: number;
}

/** The blocks of initialized parameters that lie on a shard. */
export async function initializedBlocks(
  records: KvBucket,
  shard: number,
): Promise<InitializedBlock[]> {
  const job = parseLifecycleRecord((await records.read(JOB_KEY))?.value, JOB_KEY);
  const keys = await records.keys(PARAMETER_KEYS);
  const blocks = await mapConcurrently(keys, async (key) => {
    const parameter = parseParameterRecord(await records.read(key), parameterOfKey(key));
    if (parameter === undefined || effectiveState(parameter, job) !== "ready") return [];
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
