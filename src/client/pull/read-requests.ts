import type { Encoding } from "../../protocol/dtypes.ts";
import { ensureError, PserverError, type Reaction, reactionTo } from "../../protocol/errors.ts";
import {
  encodeBatchRead,
  parseReadChunk,
  type ReadChunk,
} from "../../protocol/messages/batch-reads.ts";
import { paddedBytes } from "../../protocol/messages/columns.ts";
import { partCounts } from "../../protocol/messages/parts.ts";
import type { Position } from "../../protocol/messages/position.ts";
import {
  encodePullRequest,
  type PullReply,
  parsePullReply,
} from "../../protocol/messages/reads.ts";
import { quoteName } from "../../protocol/names.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Deadline } from "../calls/calls.ts";
import type { SeenVersions } from "../calls/parameters.ts";
import type { Positions } from "../core/shard-window.ts";
import type { Steps } from "../io/steps.ts";
import { ASK_AGAIN, MORE, type Requests } from "../wire/wire.ts";
import {
  type BatchRequest,
  blockOfEntry,
  type ParameterRead,
  type PendingReads,
  type SingleRequest,
} from "./read-plan.ts";
import { ReceivedValues } from "./received-values.ts";

/** State of a request after a chunk: all entries have come, more chunks follow, or some entries are missing. */
type Progress = "complete" | "more" | "missing";

/** Takes the chunks of the replies to one batched read, no matter which of its repeats they answer. */
class BatchReply {
  readonly #pending: PendingReads;
  readonly #request: BatchRequest;
  readonly #seen: SeenVersions;
  #next = 0;

  /** Begins without chunks. */
  constructor(pending: PendingReads, request: BatchRequest, seen: SeenVersions) {
    this.#pending = pending;
    this.#request = request;
    this.#seen = seen;
  }

  /** Number of the first entry that has not come. */
  get next(): number {
    return this.#next;
  }

  /**
   * Gives the values of a chunk to their reads, except those that have come already.
   * @throws BAD_MESSAGE, before any is given, if the chunk does not fit the request.
   */
  take({ from, more, generation, versions, values }: ReadChunk): Progress {
    this.#check(from, versions, values.length);
    const request = this.#request;
    const received = new ReceivedValues(values);
    let takenCount = 0;
    let at = 0;
    for (let i = 0; i < versions.length; i++) {
      const place = from + i;
      const isSent = versions[i] !== 0;
      if (!request.isDone(place)) {
        request.done(place);
        takenCount++;
        const read = this.#readOf(place);
        const entry = request.entries[place] as number;
        const version = isSent ? (versions[i] as number) : (read.knownOf(entry)?.version ?? 0);
        read.take(entry, isSent ? received : undefined, at, { version, generation });
        this.#seen.note(request.numbers[place] as number, version);
      }
      if (isSent) at += paddedBytes(request.sizes[place] as number);
    }
    while (request.isDone(this.#next)) this.#next++;
    if (this.#next === request.length) return "complete";
    // Without progress the request is repeated after its pause, not at once.
    return more || takenCount === 0 ? "more" : "missing";
  }

  #readOf(place: number): ParameterRead {
    return this.#pending.reads[this.#request.places[place] as number] as ParameterRead;
  }

  #check(from: number, versions: Float64Array, received: number): void {
    const { shard, sizes, length, entries } = this.#request;
    let expected = 0;
    for (let i = 0; i < versions.length; i++) {
      const place = from + i;
      if (place >= length) throw this.#unexpected(place);
      if (versions[i] !== 0) expected += paddedBytes(sizes[place] as number);
      else if (this.#readOf(place).knownOf(entries[place] as number) === undefined) {
        throw this.#unexpected(place);
      }
    }
    if (received === expected) return;
    throw new PserverError(
      "BAD_MESSAGE",
      `shard ${shard}: piece from entry ${from} on: expected ${expected} bytes of values; received ${received}`,
      { shard, expected, received },
    );
  }

  #unexpected(entry: number): PserverError {
    const { shard, length } = this.#request;
    return new PserverError(
      "BAD_MESSAGE",
      `shard ${shard}: received entry ${entry} without values, or of a request of ${length} entries`,
      { shard, entry },
    );
  }
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
  pending: PendingReads,
  request: SingleRequest,
  step: number | undefined,
  deadline: Deadline,
  refused: () => void,
): Promise<PserverError | undefined> {
  const { read, index, shard } = blockOfEntry(pending, request);
  const { encoding } = pending;
  const { name, epoch, firstNumber } = read.info;
  const part = read.partOf(request.entry);
  const entries = {
    epoch,
    ...(encoding === undefined ? {} : { encoding }),
    ...(part === undefined ? {} : { part: partCounts(part) }),
  };
  const answered = deps.requests.ask<void>({
    subject: deps.subjects.pull(name, index, deps.trainer),
    body: () => {
      const condition = conditionOf(deps, shard, step, deadline);
      return encodePullRequest({ ...entries, ...condition }, part);
    },
    read: (message) => {
      const reply = parsePullReply(message);
      checkReply(reply, read, index, request.bytes, encoding);
      const { version, generation } = reply;
      read.take(request.entry, new ReceivedValues(reply.data), 0, { version, generation });
      request.isDone = true;
      noteAnswer(deps, shard, reply, step);
      deps.seen.note(firstNumber + index, version);
    },
    deadline,
    refused,
    nobody: () => noOwner(name, index, shard),
    retryMs: RETRY_MS,
  });
  return problemOf(deps, answered, deadline);
}

/**
 * Reads entries of one shard by one request. Returns undefined when all have come, or an error after which the
 * missing ones can be asked for again. `refused` is called when an error is retried.
 */
export async function readBatch(
  deps: ReadDeps,
  pending: PendingReads,
  request: BatchRequest,
  step: number | undefined,
  deadline: Deadline,
  refused: () => void,
): Promise<PserverError | undefined> {
  const { shard } = request;
  const { encoding } = pending;
  const reply = new BatchReply(pending, request, deps.seen);
  const answered = deps.requests.ask<void>({
    subject: deps.subjects.read(shard, deps.trainer),
    body: () => {
      const condition = conditionOf(deps, shard, step, deadline);
      const header = encoding === undefined ? condition : { ...condition, encoding };
      const wanted = request.wanted(pending, condition.generation);
      return encodeBatchRead({ ...header, from: reply.next }, wanted);
    },
    read: (message) => {
      const chunk = parseReadChunk(message);
      const progress = reply.take(chunk);
      noteAnswer(deps, shard, chunk, step);
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

function noOwner(name: string, index: number, shard: number): PserverError {
  return new PserverError(
    "NO_OWNER",
    `${quoteName(name)} block ${index}: no host serves shard ${shard}`,
    { parameter: name, block: index, shard },
  );
}

function checkReply(
  reply: PullReply,
  { info }: ParameterRead,
  block: number,
  expected: number,
  encoding: Encoding | undefined,
): void {
  const { dtype, epoch, data } = reply;
  const fits = dtype === info.dtype && data.length === expected && epoch === info.epoch;
  if (fits && reply.encoding === encoding) return;
  throw new PserverError(
    "BAD_MESSAGE",
    `${quoteName(info.name)} block ${block}: expected ${expected} bytes of ${encoding ?? info.dtype} at epoch ${info.epoch}; received ${data.length} of ${reply.encoding ?? dtype} at epoch ${epoch}`,
    { parameter: info.name, block, expected, received: data.length },
  );
}

/** How a call reads every block. */
export interface ReadMode {
  readonly encoding?: Encoding | undefined;
  /** The step that must have closed before; undefined for none. */
  readonly step?: number | undefined;
}
