import {
  blockPlaces,
  type FinishRequest,
  laterPosition,
  type Position,
  PserverError,
  quoteName,
  SHARD_BYTES_MAX,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { LifecycleDeps } from "./deps.ts";
import type { ShardPosition } from "./machine.ts";
import type { WantedBlock } from "./owners.ts";
import { type Parameter, shardBytes } from "./parameter.ts";

/** Blocks per request: their names fit into the smallest payload that a broker may have. */
const BLOCKS_PER_CHECK = 1000;
const MISSING_NAMED_MAX = 20;

/** The positions of a client's last records, by shard. */
export type Published = FinishRequest["at"];

/**
 * Asks the owners for every block of some parameters, at the epochs under which they are declared.
 * @returns the ends of the journals at that moment, in order of shards: of all `shards`, and of those
 * that hold the blocks.
 * @throws INCOMPLETE naming the blocks that are missing, BAD_VALUE for a shard that does not exist.
 */
export async function requireBlocks(
  deps: LifecycleDeps,
  parameters: readonly Parameter[],
  published: Published,
  shards: readonly number[],
): Promise<readonly ShardPosition[]> {
  const publishedAt = lastPublished(deps, published);
  const wanted = blocksByShard(parameters, shards);
  const checks = await mapConcurrently([...wanted], ([shard, blocks]) =>
    checkShard(deps, shard, blocks, publishedAt.get(shard)),
  );
  const missing = checks.flatMap((check) => check.missing);
  if (missing.length > 0) throw incomplete(missing, parameters);
  return checks
    .map(({ shard, position }) => ({ shard, generation: 1, seq: 0, ...position }))
    .sort((a, b) => a.shard - b.shard);
}

/** The names of those parameters that lack blocks on a shard. */
export async function lackingOn(
  deps: Pick<LifecycleDeps, "owners">,
  parameters: readonly Parameter[],
  shard: number,
): Promise<Set<string>> {
  const blocks = blocksByShard(parameters, []).get(shard) ?? [];
  const { missing } = await checkShard(deps, shard, blocks, undefined);
  return new Set(missing.map(([name]) => name));
}

/** Asks the owner of a shard for blocks; returns those that it lacks, and the end of its journal. */
async function checkShard(
  deps: Pick<LifecycleDeps, "owners">,
  shard: number,
  blocks: readonly WantedBlock[],
  at: Position | undefined,
) {
  let position = at;
  const missing: (readonly [string, number])[] = [];
  // Each shard is asked once at least, for the end of its journal.
  for (let from = 0; from === 0 || from < blocks.length; from += BLOCKS_PER_CHECK) {
    const batch = blocks.slice(from, from + BLOCKS_PER_CHECK);
    const answer = await deps.owners.check(shard, {
      blocks: batch,
      ...(at === undefined ? {} : { at }),
    });
    position = laterPosition(position, answer.position);
    missing.push(...answer.missing);
  }
  return { shard, position, missing };
}

/**
 * Checks that shards and broker can hold the parameters.
 * @throws TOO_LARGE naming the first shard that cannot, NO_SPACE if the broker cannot.
 */
export async function requireStorage(
  deps: LifecycleDeps,
  parameters: readonly Parameter[],
): Promise<void> {
  const bytes = shardBytes(parameters, deps.job);
  const shard = bytes.findIndex((held) => held > SHARD_BYTES_MAX);
  if (shard >= 0) {
    throw new PserverError(
      "TOO_LARGE",
      `shard ${shard}: ${bytes[shard]} bytes of values and slots are declared; a shard holds at most ${SHARD_BYTES_MAX}`,
      { shard, expected: SHARD_BYTES_MAX, received: bytes[shard] },
    );
  }
  await deps.owners.checkSpace(bytes.reduce((sum, held) => sum + held, 0));
}

/**
 * Checks that the hosts can hold new parameters, as far as can be known before their values are sent.
 * @throws NO_MEMORY naming the host that cannot.
 */
export async function requireMemory(
  deps: LifecycleDeps,
  parameters: readonly Parameter[],
): Promise<void> {
  if (parameters.length > 0) await deps.owners.checkMemory(shardBytes(parameters, deps.job));
}

function blocksByShard(
  parameters: readonly Parameter[],
  shards: readonly number[],
): Map<number, WantedBlock[]> {
  const wanted = new Map<number, WantedBlock[]>(shards.map((shard) => [shard, []]));
  for (const { declaration, layout, lifecycle } of parameters) {
    for (const { shard, index } of blockPlaces(layout)) {
      const block: WantedBlock = [declaration.name, index, lifecycle.context.epoch];
      const blocks = wanted.get(shard);
      if (blocks === undefined) wanted.set(shard, [block]);
      else blocks.push(block);
    }
  }
  return wanted;
}

function lastPublished(deps: LifecycleDeps, published: Published): Map<number, Position> {
  const last = new Map<number, Position>();
  for (const { shard, ...position } of published) {
    if (shard >= deps.job.shards) {
      throw new PserverError(
        "BAD_VALUE",
        `at: expected shards 0 to ${deps.job.shards - 1}; received ${shard}`,
        { expected: deps.job.shards, received: shard },
      );
    }
    last.set(shard, laterPosition(last.get(shard), position));
  }
  return last;
}

function incomplete(
  missing: readonly (readonly [string, number])[],
  parameters: readonly Parameter[],
): PserverError {
  const declared = parameters.reduce((sum, { layout }) => sum + layout.blocks, 0);
  const named = missing.slice(0, MISSING_NAMED_MAX);
  const list = named.map(([name, index]) => `${quoteName(name)} block ${index}`).join(", ");
  const rest = missing.length > named.length ? " …" : "";
  return new PserverError(
    "INCOMPLETE",
    `expected ${declared} initialized blocks; ${missing.length} are missing: ${list}${rest}`,
    { expected: declared, missing: missing.length, blocks: named },
  );
}
