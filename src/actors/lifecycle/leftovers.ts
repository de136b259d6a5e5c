import type { HostRecord } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { Lifecycle } from "./machine.ts";
import { type Parameter, standing } from "./parameter-record.ts";
import type { Surroundings } from "./settings.ts";

/**
 * Drops the blocks that initializations which have ended left behind: all blocks of a parameter
 * that nobody initializes, and those that the present cut of a parameter has no place for. A
 * repeat is harmless.
 */
export async function dropLeftovers(
  around: Surroundings,
  parameters: readonly Parameter[],
  job: Lifecycle,
): Promise<void> {
  const drops = parameters.flatMap((parameter) => dropsOf(around, parameter, job));
  await mapConcurrently(drops, ({ shard, record }) => around.owners.append(shard, record));
}

function dropsOf(
  around: Surroundings,
  parameter: Parameter,
  job: Lifecycle,
): { shard: number; record: HostRecord }[] {
  const { declaration, layout, blocksMax, lifecycle } = parameter;
  const isDead = standing(parameter, job) === "uninitialized";
  const { epoch } = lifecycle.context;
  const from = isDead ? 0 : layout.blocks;
  const record: HostRecord = {
    verb: "drop",
    parameter: declaration.name,
    epoch: isDead ? epoch : epoch - 1,
  };
  // Blocks go round the shards, so those of more than one round lie on shards named already.
  const shards = Math.min(blocksMax - from, around.job.shards);
  return Array.from({ length: shards }, (_, i) => ({
    shard: (layout.firstShard + from + i) % around.job.shards,
    record,
  }));
}
