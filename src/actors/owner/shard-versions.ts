import type { ShardVersions, WantedVersions } from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";

const NO_BLOCKS: ShardVersions = { least: 0, most: 0, updates: 0, blocks: 0 };

/** Versions of the shard's blocks of each parameter under the wanted epoch. */
export function shardVersions(
  shard: Pick<Shard, "blocks">,
  wanted: readonly WantedVersions[],
): ShardVersions[] {
  return wanted.map(({ parameter, epoch }) => {
    let found = NO_BLOCKS;
    for (const block of shard.blocks(parameter)) {
      if (block.epoch === epoch) found = together(found, block.version);
    }
    return found;
  });
}

/** Number of changes of all blocks of a shard since their `init`. */
export function shardUpdates(shard: Pick<Shard, "blocks">): number {
  let updates = 0;
  for (const { version } of shard.blocks()) updates += version - 1;
  return updates;
}

function together({ least, most, updates, blocks }: ShardVersions, version: number): ShardVersions {
  return {
    least: blocks === 0 ? version : Math.min(least, version),
    most: Math.max(most, version),
    updates: updates + version - 1,
    blocks: blocks + 1,
  };
}
