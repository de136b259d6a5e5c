import {
  type Allocate,
  type DraftMessage,
  draftMessage,
  encodeMessage,
  type Fields,
  type Message,
  sealMessage,
} from "../codec.ts";
import type { Dtype, Encoding } from "../dtypes.ts";
import { PserverError } from "../errors.ts";
import { dtypeField, encodingField, integerField, listField, textField } from "../fields.ts";
import { PARAMETERS_PER_REQUEST_MAX, SHARDS_MAX } from "../limits.ts";
import { checkedName } from "./lifecycle-messages.ts";
import { throwIfError } from "./outcomes.ts";
import {
  type PartCounts,
  type PartIndex,
  parsePartEntry,
  partEntry,
  partIndexBytes,
  writePartIndex,
} from "./parts.ts";
import { type Position, parsePosition } from "./position.ts";

/**
 * When and how a request for values is answered: once the shard has folded up to the position (generation 1, seq 0
 * for "whatever is there"), or with TIMEOUT after `waitMs`.
 */
export interface ReadTerms extends Position {
  readonly waitMs: number;
  /** The step that must have closed in the shard; absent for none. */
  readonly step?: number;
  /** Encoding wanted for all elements; absent for the type of each block. */
  readonly encoding?: Encoding;
}

/** Asks a block actor for its values under an epoch. */
export interface PullRequest extends ReadTerms {
  readonly epoch: number;
  /** Set if only some elements are wanted: their index is the bytes of the request. */
  readonly part?: PartCounts;
}

/** A block's values, as its reply carries them; `data` is a view of the received buffer. */
export interface PullReply extends Position {
  readonly epoch: number;
  /** Element type of the block. */
  readonly dtype: Dtype;
  /** How the elements are written, if not as the type says. */
  readonly encoding?: Encoding;
  readonly version: number;
  /** The elements asked for, in the order of the index. */
  readonly data: Uint8Array;
}

/** Longest time that a request may wait at the host; clients repeat it until their own deadline. */
export const PULL_WAIT_MS_MAX = 10_000;

/** Writes a pull as a message; `index` belongs to `request.part`. */
export function encodePullRequest(request: PullRequest, index?: PartIndex): Uint8Array {
  const { epoch, generation, seq, waitMs, step, encoding, part } = request;
  const entries = { epoch, generation, seq, waitMs, step, encoding };
  if (part === undefined || index === undefined) return encodeMessage(entries);
  const draft = draftMessage({ ...entries, part: partEntry(part) }, partIndexBytes(part));
  writePartIndex(draft.data, index);
  return sealMessage(draft);
}

/** @throws BAD_MESSAGE if the fields are not a valid pull. */
export function parsePullRequest(fields: Fields): PullRequest {
  const part = parsePartEntry(fields);
  return {
    epoch: integerField(fields, "epoch", 1),
    ...parseReadTerms(fields),
    ...(part === undefined ? {} : { part }),
  };
}

/** Reads the terms of a request for values; @throws BAD_MESSAGE if the fields are not valid. */
export function parseReadTerms(fields: Fields): ReadTerms {
  const encoding = encodingField(fields);
  return {
    ...parsePosition(fields),
    waitMs: integerField(fields, "waitMs", 0, PULL_WAIT_MS_MAX),
    ...(fields["step"] === undefined ? {} : { step: integerField(fields, "step") }),
    ...(encoding === undefined ? {} : { encoding }),
  };
}

/** Begins a reply with room for the values; fill and seal it as {@link DraftMessage} says. */
export function draftPullReply(
  reply: Omit<PullReply, "data">,
  dataBytes: number,
  allocate?: Allocate,
): DraftMessage {
  const { epoch, dtype, encoding, generation, seq, version } = reply;
  return draftMessage({ epoch, dtype, encoding, generation, seq, version }, dataBytes, allocate);
}

/** @throws BAD_MESSAGE if the message is not a valid pull reply, or the error that the message carries. */
export function parsePullReply(message: Message): PullReply {
  throwIfError(message.fields);
  const { fields, data } = message;
  const encoding = encodingField(fields);
  return {
    epoch: integerField(fields, "epoch", 1),
    dtype: dtypeField(fields),
    ...(encoding === undefined ? {} : { encoding }),
    ...parsePosition(fields),
    version: integerField(fields, "version"),
    data,
  };
}

/**
 * Asks a shard how far its members are. The shard answers once it has folded up to the position, knows the
 * members of this revision or a later one, and has closed `step`; after `waitMs` it answers TIMEOUT.
 */
export interface StepRequest extends Position {
  readonly revision: number;
  /** The step that must have closed; 0 for none. */
  readonly step: number;
  readonly waitMs: number;
}

/** Progress of a job's members, as one shard knows it. */
export interface StepReply extends Position {
  readonly revision: number;
  /** The last step that has closed; 0 before the first. */
  readonly step: number;
  /** Some of the members that have not ended the step after it, in the order of their ids. */
  readonly waitingFor: readonly string[];
}

/** Most members that a reply names. */
export const WAITING_FOR_MAX = 16;

/** Writes a step request as a message. */
export function encodeStepRequest(request: StepRequest): Uint8Array {
  return encodeMessage({ ...request });
}

/** @throws BAD_MESSAGE if the fields are not a valid step request. */
export function parseStepRequest(fields: Fields): StepRequest {
  return {
    ...parsePosition(fields),
    revision: integerField(fields, "revision"),
    step: integerField(fields, "step"),
    waitMs: integerField(fields, "waitMs", 0, PULL_WAIT_MS_MAX),
  };
}

/** Writes a step reply as a message. */
export function encodeStepReply(reply: StepReply): Uint8Array {
  return encodeMessage({ ...reply });
}

/** @throws BAD_MESSAGE if the message is not a valid step reply, or the error that the message carries. */
export function parseStepReply({ fields }: Message): StepReply {
  throwIfError(fields);
  const waitingFor = listField(fields, "waitingFor", WAITING_FOR_MAX);
  return {
    ...parsePosition(fields),
    revision: integerField(fields, "revision"),
    step: integerField(fields, "step"),
    waitingFor: waitingFor.map((trainer) => textField({ trainer }, "trainer")),
  };
}

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
  /**
   * In the order of the request; null for a parameter that is not initialized, or whose versions are not
   * known now.
   */
  readonly versions: readonly (BlockVersions | null)[];
  /** Shards whose owners have not answered, by number. */
  readonly silent: readonly number[];
}

/**
 * Reads the names that a `versions` request asks for, at most 256.
 * @throws BAD_MESSAGE or BAD_NAME.
 */
export function parseVersionsRequest(fields: Fields): string[] {
  return listField(fields, "names", PARAMETERS_PER_REQUEST_MAX).map((name) =>
    checkedName({ name }, "name"),
  );
}

/** Returns the entries of a reply to `versions`. */
export function versionsReply({ versions, silent }: VersionsReply): Fields {
  const rows = versions.map((row) => (row === null ? null : [row.least, row.most, row.updates]));
  return { versions: rows, silent };
}

/**
 * Reads the reply to a request for `count` names.
 * @throws BAD_MESSAGE if it is not valid.
 */
export function parseVersionsReply(fields: Fields, count: number): VersionsReply {
  const rows = listOf(fields, "versions", count);
  const silent = listField(fields, "silent", SHARDS_MAX).map((shard) =>
    integerField({ shard }, "shard", 0, SHARDS_MAX - 1),
  );
  return { versions: rows.map((row) => (row === null ? null : parseBlockVersions(row))), silent };
}

/** Returns the entries of a host's request to an owner. */
export function shardVersionsRequest(wanted: readonly WantedVersions[]): Fields {
  return { parameters: wanted.map(({ parameter, epoch }) => [parameter, epoch]) };
}

/**
 * Reads the parameters that a host asks an owner for, at most 256.
 * @throws BAD_MESSAGE or BAD_NAME.
 */
export function parseShardVersionsRequest(fields: Fields): WantedVersions[] {
  return listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX).map((row) => {
    const [name, epoch] = rowOf(row, 2);
    return { parameter: checkedName({ name }, "name"), epoch: integerField({ epoch }, "epoch", 1) };
  });
}

/** Returns the entries of an owner's reply. */
export function shardVersionsReply(versions: readonly ShardVersions[]): Fields {
  return {
    versions: versions.map(({ least, most, updates, blocks }) => [least, most, updates, blocks]),
  };
}

/**
 * Reads an owner's reply to a request for `count` parameters.
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

/** Reads the list under a key; @throws BAD_MESSAGE unless it has exactly `count` entries. */
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
