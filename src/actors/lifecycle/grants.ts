import {
  type GrantedParameter,
  HEADER_BYTES_MAX,
  type HostRecord,
  packValue,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { Lifecycle } from "./machine.ts";
import { effectiveState, type Parameter } from "./parameter.ts";
import type { LifecycleDeps } from "./service.ts";

/** Bytes that a list of parameters takes beside them. */
const LIST_BYTES = 16;

/**
 * Tells the journals of the shards concerned that this trainer initializes these parameters, before the
 * trainer itself is told. Each shard gets one record, or as many as the largest message requires. A
 * repeat is harmless: a repeated request completes what a host that died left undone.
 */
export async function announceGranted(
  deps: LifecycleDeps,
  trainer: string,
  parameters: readonly Parameter[],
): Promise<void> {
  const lists = [...grantedByShard(deps, parameters)].flatMap(([shard, granted]) =>
    cut(granted, deps.maxPayloadBytes - HEADER_BYTES_MAX).map((list) => ({ shard, list })),
  );
  await mapConcurrently(lists, ({ shard, list }) =>
    deps.owners.append(shard, { verb: "declare", trainer, parameters: list }),
  );
}

/**
 * Drops orphans: all blocks of a parameter that nobody initializes, and blocks of a ready parameter that
 * its present layout has no place for. A repeat is harmless.
 */
export async function dropOrphans(
  deps: LifecycleDeps,
  parameters: readonly Parameter[],
  job: Lifecycle,
): Promise<void> {
  const drops = parameters.flatMap((parameter) => dropsOf(deps, parameter, job));
  await mapConcurrently(drops, ({ shard, record }) => deps.owners.append(shard, record));
}

function grantedByShard(
  { job }: LifecycleDeps,
  parameters: readonly Parameter[],
): Map<number, GrantedParameter[]> {
  const byShard = new Map<number, GrantedParameter[]>();
  for (const { declaration, layout, lifecycle } of parameters) {
    const parameter = { ...declaration, epoch: lifecycle.context.epoch, layout };
    for (const shard of shardsOf(layout.firstShard, layout.blocks, job.shards)) {
      const present = byShard.get(shard);
      if (present === undefined) byShard.set(shard, [parameter]);
      else present.push(parameter);
    }
  }
  return byShard;
}

/** The parameters in order, cut so that each list fits into so many bytes. */
function cut(parameters: readonly GrantedParameter[], bytesMax: number): GrantedParameter[][] {
  const lists: GrantedParameter[][] = [];
  let bytesLeft = 0;
  for (const parameter of parameters) {
    const { length } = packValue(parameter);
    if (lists.length === 0 || length > bytesLeft) {
      lists.push([]);
      bytesLeft = bytesMax - LIST_BYTES;
    }
    lists.at(-1)?.push(parameter);
    bytesLeft -= length;
  }
  return lists;
}

function dropsOf(
  { job: { shards } }: LifecycleDeps,
  parameter: Parameter,
  job: Lifecycle,
): { shard: number; record: HostRecord }[] {
  const { declaration, layout, blocksMax, lifecycle } = parameter;
  const isDead = effectiveState(parameter, job) === "uninitialized";
  const { epoch } = lifecycle.context;
  const from = isDead ? 0 : layout.blocks;
  const record: HostRecord = {
    verb: "drop",
    parameter: declaration.name,
    epoch: isDead ? epoch : epoch - 1,
  };
  const holders = shardsOf(layout.firstShard + from, blocksMax - from, shards);
  return holders.map((shard) => ({ shard, record }));
}

/** The shards of so many consecutive blocks, each once: blocks go round the shards. */
export function shardsOf(firstShard: number, blocks: number, shards: number): number[] {
  return Array.from({ length: Math.min(blocks, shards) }, (_, i) => (firstShard + i) % shards);
}
