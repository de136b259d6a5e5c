import {
  blockPlaces,
  type Declaration,
  type Layout,
  type Synchronization,
} from "../../protocol/index.ts";
import { heldBytes, slotPlan } from "../fold/slots.ts";

/** Bytes of the parameters' values and slots on each shard, by shard number. */
export function shardBytes(
  parameters: Iterable<{ readonly declaration: Declaration; readonly layout: Layout }>,
  job: { readonly shards: number; readonly synchronization: Synchronization },
): number[] {
  const bytes: number[] = new Array(job.shards).fill(0);
  for (const { declaration, layout } of parameters) {
    const held = blockBytes(declaration, job.synchronization);
    for (const { shard, start, count } of blockPlaces(layout)) {
      bytes[shard] = (bytes[shard] ?? 0) + held(start, count);
    }
  }
  return bytes;
}

/** Bytes of a parameter's blocks by place; all but the last are as long as each other. */
function blockBytes(
  { dtype, shape, config }: Declaration,
  synchronization: Synchronization,
): (start: number, count: number) => number {
  const known = new Map<number, number>();
  return (start, count) => {
    const owner = { dtype, shape, config, start, count };
    const held = known.get(count) ?? heldBytes(owner, slotPlan(owner, synchronization));
    known.set(count, held);
    return held;
  };
}
