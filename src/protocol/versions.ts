import type { Fields } from "./codec.ts";
import { PserverError } from "./errors.ts";
import { integerField, listField } from "./fields.ts";
import { checkedName } from "./lifecycle-messages.ts";
import { PARAMETERS_PER_REQUEST_MAX, SHARDS_MAX } from "./limits.ts";

/** Versions of a parameter's blocks. A block has version 1 after its `init`; each change adds 1. */
export interface BlockVersions {
  /** The lowest version of a block. */
  readonly least: number;
  /** The highest version of a block. */
  readonly most: number;
  /** Changes of blocks since their `init`: the sum of their versions, less 1 for each. */
  readonly updates: number;
}

/** Versions of the blocks that one shard holds of a parameter. */
export interface ShardVersions extends BlockVersions {
  /** Number of these blocks; if it is 0, so are the other numbers. */
  readonly blocks: number;
}

/** A parameter, and the epoch of the blocks to be counted. */
export interface WantedVersions {
  readonly parameter: string;
  readonly epoch: number;
}

/** Answer to `versions`. */
export interface VersionsReply {
  /** In the order of the request; null: not initialized, or not known now. */
  readonly versions: readonly (BlockVersions | null)[];
  /** Shards whose owners have not answered, by number. */
  readonly silent: readonly number[];
}

/**
 * The names that a `versions` request asks for, at most 256.
 * @throws BAD_MESSAGE or BAD_NAME.
 */
export function parseVersionsRequest(fields: Fields): string[] {
  return listField(fields, "names", PARAMETERS_PER_REQUEST_MAX).map((name) =>
    checkedName({ name }, "name"),
  );
}

/** The entries of a reply to `versions`. */
export function versionsReply({ versions, silent }: VersionsReply): Fields {
  const rows = versions.map((row) => (row === null ? null : [row.least, row.most, row.updates]));
  return { versions: rows, silent };
}

/**
 * The reply to a request for `count` names.
 * @throws BAD_MESSAGE if it is not valid.
 */
export function parseVersionsReply(fields: Fields, count: number): VersionsReply {
  const rows = listOf(fields, "versions", count);
  const silent = listField(fields, "silent", SHARDS_MAX).map((shard) =>
    integerField({ shard }, "shard", 0, SHARDS_MAX - 1),
  );
  return { versions: rows.map((row) => (row === null ? null : parseBlockVersions(row))), silent };
}

/** The entries of a host's request to an owner. */
export function shardVersionsRequest(wanted: readonly WantedVersions[]): Fields {
  return { parameters: wanted.map(({ parameter, epoch }) => [parameter, epoch]) };
}

/**
 * The parameters that a host asks an owner for, at most 256.
 * @throws BAD_MESSAGE or BAD_NAME.
 */
export function parseShardVersionsRequest(fields: Fields): WantedVersions[] {
  return listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX).map((row) => {
    const [name, epoch] = rowOf(row, 2);
    return { parameter: checkedName({ name }, "name"), epoch: integerField({ epoch }, "epoch", 1) };
  });
}

/** The entries of an owner's reply. */
export function shardVersionsReply(versions: readonly ShardVersions[]): Fields {
  return {
    versions: versions.map(({ least, most, updates, blocks }) => [least, most, updates, blocks]),
  };
}

/**
 * An owner's reply to a request for `count` parameters.
 * @throws BAD_MESSAGE if it is not valid.
 */
export function parseShardVersionsReply(fields: Fields, count: number): ShardVersions[] {
  return listOf(fields, "versions", count).map((row) => {
    const [, , , blocks] = rowOf(row, 4);
    return { ...parseBlockVersions(row), blocks: integerField({ blocks }, "blocks") };
  });
}

function parseBlockVersions(row: unknown): BlockVersions {
  const [lowest, most, updates] = rowOf(row, 4);
  const least = integerField({ lowest }, "lowest");
  return {
    least,
    most: integerField({ most }, "most", least),
    updates: integerField({ updates }, "updates"),
  };
}

/** The list under a key; @throws BAD_MESSAGE unless it has exactly `count` entries. */
function listOf(fields: Fields, key: string, count: number): readonly unknown[] {
  const list = listField(fields, key, count);
  if (list.length === count) return list;
  throw new PserverError(
    "BAD_MESSAGE",
    `${key}: expected a list of ${count}; received one of ${list.length}`,
    { field: key, expected: count, received: list.length },
  );
}

function rowOf(row: unknown, lengthMax: number): readonly unknown[] {
  return listField({ row }, "row", lengthMax);
}
