import type {
  BlockVersions,
  ParameterInfo,
  ShardVersions,
  VersionsReply,
  WantedVersions,
} from "../../protocol/index.ts";
import { shardsOf } from "../lifecycle/host-records.ts";

/** Asks the owner of a shard for the versions of these parameters' blocks, in their order. */
export type AskShard = (
  shard: number,
  wanted: readonly WantedVersions[],
) => Promise<readonly ShardVersions[]>;

/** A wanted parameter and its index in the request. */
interface Wanted extends WantedVersions {
  readonly at: number;
}

/**
 * Gathers versions of parameters from the owners of their shards, each asked once. The result is null for
 * a parameter that is not ready, and for one of which some blocks are missing in the replies: a number of
 * only a part of them would be wrong.
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
      // `hosts` shows why an owner does not answer; here it only counts that it does not.
      silent.push(shard);
    }
  });
  await Promise.all(asked);
  const versions = parameters.map((info, at) =>
    info?.ready ? combine(held[at] ?? [], info.layout.blocks) : null,
  );
  return { versions, silent: silent.sort((a, b) => a - b) };
}

/** The ready parameters to ask each shard for. */
function wantedByShard(parameters: readonly (ParameterInfo | null)[]): Map<number, Wanted[]> {
  const byShard = new Map<number, Wanted[]>();
  for (const [at, info] of parameters.entries()) {
    if (!info?.ready) continue;
    const { firstShard, blocks, shards } = info.layout;
    for (const shard of shardsOf(firstShard, blocks, shards)) {
      const wanted = byShard.get(shard) ?? [];
      wanted.push({ at, parameter: info.name, epoch: info.epoch });
      byShard.set(shard, wanted);
    }
  }
  return byShard;
}

/** The versions of so many blocks, or null if the replies are of another number. */
function combine(held: readonly ShardVersions[], blocks: number): BlockVersions | null {
  const some = held.filter((own) => own.blocks > 0);
  if (some.reduce((sum, own) => sum + own.blocks, 0) !== blocks) return null;
  return {
    least: Math.min(...some.map(({ least }) => least)),
    most: Math.max(...some.map(({ most }) => most)),
    updates: some.reduce((sum, { updates }) => sum + updates, 0),
  };
}
