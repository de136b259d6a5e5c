import type {
  BlockVersions,
  Layout,
  ParameterInfo,
  ShardVersions,
  VersionsReply,
  WantedVersions,
} from "../../protocol/index.ts";

/** Asks the owner of a shard for the versions of these parameters' blocks, in their order. */
export type AskShard = (
  shard: number,
  wanted: readonly WantedVersions[],
) => Promise<readonly ShardVersions[]>;

/** A parameter that is asked for, and its place in the request. */
interface Wanted extends WantedVersions {
  readonly at: number;
}

/**
 * Versions of parameters from the owners of their shards, each asked once. Null is a parameter that is
 * not ready, and one of which not all blocks were told of: a part of them would be a wrong number.
 */
export async function gatherVersions(
  parameters: readonly (ParameterInfo | null)[],
  ask: AskShard,
): Promise<VersionsReply> {
  const held: ShardVersions[][] = parameters.map(() => []);
  const silent: number[] = [];
  const asked = [...wantedByShard(parameters)].map(async ([shard, wanted]) => {
    try {
      const told = await ask(shard, wanted);
      for (const [i, versions] of told.entries()) held[wanted[i]?.at ?? -1]?.push(versions);
    } catch {
      // `hosts` shows what keeps an owner from answering; here it only counts that it does not.
      silent.push(shard);
    }
  });
  await Promise.all(asked);
  const versions = parameters.map((info, at) =>
    info?.ready ? together(held[at] ?? [], info.layout.blocks) : null,
  );
  return { versions, silent: silent.sort((a, b) => a - b) };
}

/** Which shard is to be asked for which of the parameters that are ready. */
function wantedByShard(parameters: readonly (ParameterInfo | null)[]): Map<number, Wanted[]> {
  const byShard = new Map<number, Wanted[]>();
  for (const [at, info] of parameters.entries()) {
    if (!info?.ready) continue;
    for (const shard of shardsOf(info.layout)) {
      const wanted = byShard.get(shard) ?? [];
      wanted.push({ at, parameter: info.name, epoch: info.epoch });
      byShard.set(shard, wanted);
    }
  }
  return byShard;
}

/** The shards that hold blocks of a parameter: one after the other from the first. */
function shardsOf({ blocks, firstShard, shards }: Layout): number[] {
  return Array.from({ length: Math.min(blocks, shards) }, (_, i) => (firstShard + i) % shards);
}

/** The versions of so many blocks, or null if these shards have others. */
function together(held: readonly ShardVersions[], blocks: number): BlockVersions | null {
  const some = held.filter((own) => own.blocks > 0);
  if (some.reduce((sum, own) => sum + own.blocks, 0) !== blocks) return null;
  return {
    least: Math.min(...some.map(({ least }) => least)),
    most: Math.max(...some.map(({ most }) => most)),
    updates: some.reduce((sum, { updates }) => sum + updates, 0),
  };
}
