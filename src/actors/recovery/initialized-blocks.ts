import { blockPlaces } from "../../protocol/index.ts";
import type { KvBucket } from "../jetstream/kv-bucket.ts";
import { jobRecord } from "../lifecycle/lifecycle-record.ts";
import { effectiveState } from "../lifecycle/parameter.ts";
import { readAllParameters } from "../lifecycle/parameter-record.ts";
import type { LackedBlock } from "./findings.ts";

/** A block of an initialized parameter: its shard must have it, as nobody will initialize it again. */
export interface InitializedBlock extends LackedBlock {
  readonly epoch: number;
}

/** The blocks of initialized parameters that lie on a shard. */
export async function initializedBlocks(
  bucket: KvBucket,
  shard: number,
): Promise<InitializedBlock[]> {
  const job = await jobRecord.read({ bucket });
  const parameters = await readAllParameters(bucket);
  return parameters
    .filter((parameter) => effectiveState(parameter, job) === "ready")
    .flatMap(({ declaration, layout, lifecycle }) =>
      blockPlaces(layout)
        .filter((place) => place.shard === shard)
        .map(({ index }) => ({
          parameter: declaration.name,
          index,
          epoch: lifecycle.context.epoch,
        })),
    );
}
