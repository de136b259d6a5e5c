import { encodeBatchRead, type WantedEntry } from "../../protocol/batch-reads.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { partCounts } from "../../protocol/parts.ts";
import type { Position } from "../../protocol/position.ts";
import { encodePullRequest, type PullReply, parsePullReply } from "../../protocol/pulls.ts";
import type { Reaction } from "../../protocol/reactions.ts";
import { parseReadPiece } from "../../protocol/read-pieces.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Positions } from "../core/positions.ts";
import type { SeenVersions } from "../push/seen-versions.ts";
import type { Deadline } from "../timing/deadline.ts";
import { ASK_AGAIN, MORE, type Requests } from "../wire/requests.ts";
import { BatchReply } from "./batch-reply.ts";
import type { PendingBlock, ReadMode } from "./block-read.ts";

/** Dependencies of {@link readSingle} and {@link readBatch}. */
export interface ReadDeps {
  readonly requests: Requests;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly positions: Positions;
  readonly seen: SeenVersions;
  /** Whether reads wait for steps now: not while the trainer is no member, as after a shard has undone some. */
  readonly waitsForSteps: () => boolean;
  /** Called when a shard has answered a read that waited for a step. */
  readonly onClosed: (shard: number, step: number) => void;
  /** Called when a read was refused because the trainer has lost its place in the steps. */
  readonly onPlaceLost: () => void;
}

/** How long a pull is retried before its parameter is looked up again, and a batched read without an owner. */
const RETRY_MS = 1_000;
/** The server gives up just before a request is repeated, so that it never holds two of one. */
const WAIT_MS = 900;

/** Reactions to errors after which a block is asked for again. */
const ASKED_AGAIN: readonly Reaction[] = ["replaced", "look-up", "retry", "enter-anew"];

/**
 * Reads one block by its own subject. Returns undefined when it has come, or the error after which it is to
 * be asked for again.
 */
export function readSingle(
  deps: ReadDeps,
  block: PendingBlock,
  { encoding, step }: ReadMode,
  deadline: Deadline,
): Promise<PserverError | undefined> {
  const { place, index } = block.read;
  const { name, epoch } = block.parameter.info;
  const entries = {
    epoch,
    ...(encoding === undefined ? {} : { encoding }),
    ...(index === undefined ? {} : { part: partCounts(index) }),
  };
  const asked = deps.requests.ask<void>({
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
    nobody: () => noOwner(block),
    retryMs: RETRY_MS,
  });
  return problemOf(deps, asked, deadline);
}

/**
 * Reads blocks of one shard by one request. Returns undefined when all have come, DENIED if the broker's
 * permissions forbid such requests, NO_OWNER if nobody has listened to them for a while, or another error,
 * after which those that are missing are to be asked for again.
 */
export async function readBatch(
  deps: ReadDeps,
  shard: number,
  blocks: readonly PendingBlock[],
  { encoding, step }: ReadMode,
  deadline: Deadline,
): Promise<PserverError | undefined> {
  const reply = new BatchReply(shard, blocks);
  const asked = deps.requests.ask<void>({
    subject: deps.subjects.read(shard, deps.trainer),
    body: () => {
      const condition = conditionOf(deps, shard, step, deadline);
      const entries = blocks.map((block) => wantedEntry(block, condition.generation));
      const head = encoding === undefined ? condition : { ...condition, encoding };
      return encodeBatchRead({ ...head, from: reply.next }, entries);
    },
    read: (message) => {
      const piece = parseReadPiece(message);
      const progress = reply.take(piece);
      noteAnswer(deps, shard, piece, step);
      noteVersions(deps.seen, blocks, piece);
      if (progress === "complete") return undefined;
      return progress === "more" ? MORE : ASK_AGAIN;
    },
    deadline,
    nobody: () => {
      return new PserverError("NO_OWNER", `no host serves shard ${shard}`, { shard });
    },
    nobodyRetryMs: RETRY_MS,
  });
  try {
    return await problemOf(deps, asked, deadline);
  } catch (caught) {
    const error = ensureError(caught);
    if (error.code === "DENIED") return error;
    throw error;
  }
}

/** What a shard has to have reached before it answers a read. */
function conditionOf(
  { positions, waitsForSteps }: ReadDeps,
  shard: number,
  step: number | undefined,
  deadline: Deadline,
): Position & { readonly waitMs: number; readonly step?: number } {
  const wanted = step !== undefined && waitsForSteps() ? { step } : {};
  const waitMs = Math.floor(Math.min(WAIT_MS, deadline.remainingMs));
  return { ...wanted, ...positions.get(shard), waitMs };
}

function noteAnswer(
  { positions, waitsForSteps, onClosed }: ReadDeps,
  shard: number,
  position: Position,
  step: number | undefined,
): void {
  positions.note(shard, position);
  if (step !== undefined && waitsForSteps()) onClosed(shard, step);
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

/** The block as a request asks for it that names a position of this generation. */
function wantedEntry({ read, rows, parameter }: PendingBlock, generation: number): WantedEntry {
  const { place, index, known } = read;
  const { name, epoch } = parameter.info;
  const have = known?.generation === generation ? known.version : 0;
  return { parameter: name, epoch, block: place.index, index, rows, have };
}

/** Returns the error with which a request has ended if asking again can help. @throws any other. */
async function problemOf(
  { onPlaceLost }: ReadDeps,
  asked: Promise<void>,
  deadline: Deadline,
): Promise<PserverError | undefined> {
  try {
    await asked;
    return undefined;
  } catch (caught) {
    const error = ensureError(caught);
    if (reactionTo(error.code) === "enter-anew") onPlaceLost();
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
