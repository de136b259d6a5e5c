import { type Encoding, encodedBytes } from "../../protocol/dtypes.ts";
import { ensureError, PserverError, type Reaction, reactionTo } from "../../protocol/errors.ts";
import type { BlockPlace } from "../../protocol/layout.ts";
import { paddedBytes } from "../../protocol/messages/batch-records.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import {
  type BlockRows,
  blockRows,
  type PartIndex,
  partCounts,
} from "../../protocol/messages/parts.ts";
import type { Position } from "../../protocol/messages/position.ts";
import {
  encodeBatchRead,
  encodePullRequest,
  type PullReply,
  parsePullReply,
  parseReadChunk,
  type ReadChunk,
  type WantedEntry,
} from "../../protocol/messages/reads.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Deadline } from "../calls/calls.ts";
import type { SeenVersions } from "../calls/parameters.ts";
import type { Positions } from "../core/shard-window.ts";
import type { Steps } from "../io/steps.ts";
import { ASK_AGAIN, MORE, type Requests } from "../wire/wire.ts";

/** State of a request after a chunk: all blocks have come, more chunks follow, or some blocks are missing. */
type Progress = "complete" | "more" | "missing";

/** Takes the chunks of the replies to one batched read, no matter which of its repeats they answer. */
class BatchReply {
  readonly #shard: number;
  readonly #blocks: readonly PendingBlock[];
  #next = 0;

  /** Begins without chunks; `blocks` are the entries of the request, in their order. */
  constructor(shard: number, blocks: readonly PendingBlock[]) {
    this.#shard = shard;
    this.#blocks = blocks;
  }

  /** Number of the first entry that has not come. */
  get next(): number {
    return this.#next;
  }

  /**
   * Gives the values of a chunk to their blocks, except those that have come already.
   * @throws BAD_MESSAGE, before any is given, if the chunk does not fit the request.
   */
  take({ from, more, generation, versions, data }: ReadChunk): Progress {
    this.#check(from, versions, data);
    let takenCount = 0;
    let at = 0;
    versions.forEach((version, i) => {
      const block = this.#blocks[from + i] as PendingBlock;
      const { read, bytes } = block;
      const values = version === 0 ? undefined : data.subarray(at, at + bytes);
      at += version === 0 ? 0 : paddedBytes(bytes);
      if (block.isDone) return;
      block.isDone = true;
      takenCount++;
      read.take(values, stateOf(block, version, generation));
    });
    while (this.#blocks[this.#next]?.isDone === true) this.#next++;
    if (this.#next === this.#blocks.length) return "complete";
    // Without progress the request is repeated after its pause, not at once.
    return more || takenCount === 0 ? "more" : "missing";
  }

  #check(from: number, versions: readonly number[], data: Uint8Array): void {
    let expected = 0;
    versions.forEach((version, i) => {
      const block = this.#blocks[from + i];
      const isAllowed = block !== undefined && (version > 0 || block.read.known !== undefined);
      if (!isAllowed) throw this.#unexpected(from + i);
      if (version > 0) expected += paddedBytes(block.bytes);
    });
    if (data.length === expected) return;
    throw new PserverError(
      "BAD_MESSAGE",
      `shard ${this.#shard}: piece from entry ${from} on: expected ${expected} bytes of values; received ${data.length}`,
      { shard: this.#shard, expected, received: data.length },
    );
  }

  #unexpected(entry: number): PserverError {
    return new PserverError(
      "BAD_MESSAGE",
      `shard ${this.#shard}: received entry ${entry} without values, or of a request of ${this.#blocks.length} entries`,
      { shard: this.#shard, entry },
    );
  }
}

/** Returns the state of a block whose entry in a chunk has this version; 0 stands for the known state. */
function stateOf(
  { read: { known } }: PendingBlock,
  version: number,
  generation: number,
): { version: number; generation: number } {
  return { version: version === 0 ? (known?.version ?? 0) : version, generation };
}

/** Dependencies of {@link readSingle} and {@link readBatch}. */
export interface ReadDeps {
  readonly requests: Requests;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly positions: Positions;
  readonly seen: SeenVersions;
  /**
   * The steps that reads wait for; there is none while the trainer is not a member, as after a shard has
   * undone steps.
   */
  readonly steps: Pick<Steps, "readStep" | "noteClosed" | "lostPlace">;
}

/** How long a pull is retried while nobody listens to it, before its parameter is looked up again. */
const RETRY_MS = 1_000;
/**
 * Longest wait at the host: just shorter than the pause between repeats, so that the host never holds two
 * copies of one request.
 */
const WAIT_MS = 900;

/** Reactions to errors after which a block is asked for again. */
const ASKED_AGAIN: readonly Reaction[] = ["replaced", "look-up", "retry", "enter-anew"];

/**
 * Reads one block by its own subject. Returns undefined when it has come, or an error after which it can be
 * asked for again. `refused` is called when an error is retried.
 */
export function readSingle(
  deps: ReadDeps,
  block: PendingBlock,
  { encoding, step }: ReadMode,
  deadline: Deadline,
  refused: () => void,
): Promise<PserverError | undefined> {
  const { place, index } = block.read;
  const { name, epoch } = block.parameter.info;
  const entries = {
    epoch,
    ...(encoding === undefined ? {} : { encoding }),
    ...(index === undefined ? {} : { part: partCounts(index) }),
  };
  const answered = deps.requests.ask<void>({
    subject: deps.subjects.pull(name, place.index, deps.trainer),
    body: () => {
      const condition = conditionOf(deps, place.shard, step, deadline);
      return encodePullRequest({ ...entries, ...condition }, index);
    },
    read: (message) => {
      const reply = parsePullReply(message);
      checkReply(reply, block, encoding);
      const { version, generation } = reply;
      block.read.take(reply.data, { version, generation });
      block.isDone = true;
      noteAnswer(deps, place.shard, reply, step);
      deps.seen.note(block.parameter.info, place.index, version);
    },
    deadline,
    refused,
    nobody: () => noOwner(block),
    retryMs: RETRY_MS,
  });
  return problemOf(deps, answered, deadline);
}

/**
 * Reads blocks of one shard by one request. Returns undefined when all have come, or an error after which the
 * missing ones can be asked for again. `refused` is called when an error is retried.
 */
export async function readBatch(
  deps: ReadDeps,
  shard: number,
  blocks: readonly PendingBlock[],
  { encoding, step }: ReadMode,
  deadline: Deadline,
  refused: () => void,
): Promise<PserverError | undefined> {
  const reply = new BatchReply(shard, blocks);
  const answered = deps.requests.ask<void>({
    subject: deps.subjects.read(shard, deps.trainer),
    body: () => {
      const condition = conditionOf(deps, shard, step, deadline);
      const entries = blocks.map((block) => wantedEntry(block, condition.generation));
      const header = encoding === undefined ? condition : { ...condition, encoding };
      return encodeBatchRead({ ...header, from: reply.next }, entries);
    },
    read: (message) => {
      const chunk = parseReadChunk(message);
      const progress = reply.take(chunk);
      noteAnswer(deps, shard, chunk, step);
      noteVersions(deps.seen, blocks, chunk);
      if (progress === "complete") return undefined;
      return progress === "more" ? MORE : ASK_AGAIN;
    },
    deadline,
    refused,
    nobody: () => {
      return new PserverError("NO_OWNER", `no host serves shard ${shard}`, { shard });
    },
  });
  return await problemOf(deps, answered, deadline);
}

/** Returns what a shard must have reached before it answers a read. */
function conditionOf(
  { positions, steps }: ReadDeps,
  shard: number,
  step: number | undefined,
  deadline: Deadline,
): Position & { readonly waitMs: number; readonly step?: number } {
  const wanted = step !== undefined && steps.readStep !== undefined ? { step } : {};
  const waitMs = Math.floor(Math.min(WAIT_MS, deadline.remainingMs));
  return { ...wanted, ...positions.get(shard), waitMs };
}

function noteAnswer(
  { positions, steps }: ReadDeps,
  shard: number,
  position: Position,
  step: number | undefined,
): void {
  positions.note(shard, position);
  if (step !== undefined && steps.readStep !== undefined) steps.noteClosed(shard, step);
}

function noteVersions(
  seen: SeenVersions,
  blocks: readonly PendingBlock[],
  { from, versions }: { readonly from: number; readonly versions: readonly number[] },
): void {
  versions.forEach((version, i) => {
    const { parameter, read } = blocks[from + i] as PendingBlock;
    const { known, place } = read;
    seen.note(parameter.info, place.index, version === 0 ? (known?.version ?? 0) : version);
  });
}

/** Returns the entry of a block in a request whose position is of this generation. */
function wantedEntry({ read, rows, parameter }: PendingBlock, generation: number): WantedEntry {
  const { place, index, known } = read;
  const { name, epoch } = parameter.info;
  const have = known?.generation === generation ? known.version : 0;
  return { parameter: name, epoch, block: place.index, index, rows, have };
}

/** Returns the error that ended a request, if asking again can help. @throws any other error. */
async function problemOf(
  { steps }: ReadDeps,
  answered: Promise<void>,
  deadline: Deadline,
): Promise<PserverError | undefined> {
  try {
    await answered;
    return undefined;
  } catch (caught) {
    const error = ensureError(caught);
    if (reactionTo(error.code) === "enter-anew") steps.lostPlace();
    if (deadline.ended === undefined && ASKED_AGAIN.includes(reactionTo(error.code))) return error;
    throw error;
  }
}

function noOwner({ parameter, read }: PendingBlock): PserverError {
  const { name } = parameter.info;
  const { index, shard } = read.place;
  return new PserverError(
    "NO_OWNER",
    `${quoteName(name)} block ${index}: no host serves shard ${shard}`,
    { parameter: name, block: index, shard },
  );
}

function checkReply(
  reply: PullReply,
  { parameter, read, bytes: expected }: PendingBlock,
  encoding: Encoding | undefined,
): void {
  const { dtype, epoch, data } = reply;
  const { info } = parameter;
  const fits = dtype === info.dtype && data.length === expected && epoch === info.epoch;
  if (fits && reply.encoding === encoding) return;
  throw new PserverError(
    "BAD_MESSAGE",
    `${quoteName(info.name)} block ${read.place.index}: expected ${expected} bytes of ${encoding ?? info.dtype} at epoch ${info.epoch}; received ${data.length} of ${reply.encoding ?? dtype} at epoch ${epoch}`,
    { parameter: info.name, block: read.place.index, expected, received: data.length },
  );
}

/** The state of a block that was read. */
export interface BlockState {
  /** Version of the block under the parameter's epoch. */
  readonly version: number;
  /** Generation of the shard's journal: another one may give the same version to other values. */
  readonly generation: number;
}

/** A block or part of a block to read. */
export interface BlockRead {
  readonly place: BlockPlace;
  /** Number of elements in the reply. */
  readonly elements: number;
  /** The elements wanted; undefined for all. */
  readonly index?: PartIndex | undefined;
  /** The state whose values the caller has: the answer may be that it has not changed. */
  readonly known?: BlockState | undefined;
  /**
   * Receives the elements, still encoded, and the block's state; the bytes are valid during the call only.
   * They are undefined if the block still has the known state.
   */
  readonly take: (data: Uint8Array | undefined, state: BlockState) => void;
}

/** Blocks of one parameter to read under one epoch. */
export interface ParameterRead {
  readonly info: ParameterInfo;
  readonly blocks: readonly BlockRead[];
}

/** How a call reads every block. */
export interface ReadMode {
  readonly encoding?: Encoding | undefined;
  /** The step that must have closed before; undefined for none. */
  readonly step?: number | undefined;
}

/** A {@link ParameterRead} under way. */
export interface PendingParameter {
  readonly info: ParameterInfo;
  /**
   * The new description of a parameter that was initialized again during the read; what was read of the old
   * one is of no use.
   */
  replacedBy: ParameterInfo | undefined;
}

/** A {@link BlockRead} under way. */
export interface PendingBlock {
  readonly parameter: PendingParameter;
  readonly read: BlockRead;
  /** Bytes of its values in a reply. */
  readonly bytes: number;
  /** The rows of the block; not used if the whole block is read. */
  readonly rows: BlockRows;
  isDone: boolean;
}

const ANY_ROWS: BlockRows = { rows: 1, rowElements: 1 };

/** Lists the blocks of one parameter, to be read. */
export function pendingBlocks(
  parameter: PendingParameter,
  blocks: readonly BlockRead[],
  encoding: Encoding | undefined,
): PendingBlock[] {
  const { dtype, shape } = parameter.info;
  return blocks.map((read) => {
    const { start, count } = read.place;
    const bytes = encodedBytes(dtype, encoding, read.elements);
    const rows = read.index === undefined ? ANY_ROWS : blockRows({ shape, start, count });
    return { parameter, read, bytes, rows, isDone: false };
  });
}

/** Returns whether a block is still to be read. */
export function isWanted({ isDone, parameter }: PendingBlock): boolean {
  return !isDone && parameter.replacedBy === undefined;
}
