import { type Encoding, encodedBytes } from "../../protocol/encoding/encodings.ts";
import { ensureError, PserverError, reactionTo } from "../../protocol/errors.ts";
import type { BlockPlace } from "../../protocol/layout.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import { IN_FLIGHT_BYTES_MAX } from "../../protocol/limits.ts";
import { quoteName } from "../../protocol/names.ts";
import { type PartIndex, partCounts } from "../../protocol/parts.ts";
import { encodePullRequest, type PullReply, parsePullReply } from "../../protocol/pulls.ts";
import type { Reaction } from "../../protocol/reactions.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Parameters } from "../calls/parameters.ts";
import { noteReplaced, type Positions } from "../core/positions.ts";
import type { SeenVersions } from "../push/seen-versions.ts";
import type { Deadline } from "../timing/deadline.ts";
import type { Requests } from "../wire/requests.ts";
import { ByteWindow } from "./byte-window.ts";

/** A block or part of a block to read. */
export interface BlockRead {
  readonly place: BlockPlace;
  /** Number of elements in the reply. */
  readonly elements: number;
  /** The elements wanted; undefined for all. */
  readonly index?: PartIndex | undefined;
  /** Receives the elements, still encoded; the bytes are valid during the call only. */
  readonly take: (data: Uint8Array) => void;
}

/** How every block of a call is read. */
export interface ReadMode {
  readonly encoding?: Encoding | undefined;
  /** The step that must have closed before; undefined for none. */
  readonly step?: number | undefined;
}

/** Dependencies of BlockReader. */
export interface BlockReaderDeps {
  readonly requests: Requests;
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly positions: Positions;
  readonly parameters: Parameters;
  readonly seen: SeenVersions;
  /** Whether reads wait for steps now: they do not after a shard has undone some. */
  readonly waitsForSteps: () => boolean;
  /** Called when a shard has answered a read that waited for a step. */
  readonly onClosed: (shard: number, step: number) => void;
}

/** How long a request is retried before its parameter is looked up again. */
const RETRY_MS = 1_000;
/** The server gives up just before a request is repeated, so that it never holds two of one. */
const WAIT_MS = 900;
/** Pause before a block is asked for in the journal that has replaced another. */
const AGAIN_MS = 10;
/** The least that a request counts in the window, which bounds the number of requests under way. */
const REQUEST_BYTES_MIN = 16 * 1024;

/** Reactions to errors after which a block is asked for again. */
const ASKED_AGAIN: readonly Reaction[] = ["replaced", "look-up", "retry"];

/** Reads blocks and parts of blocks, those of all calls in one window of 16 MiB. */
export class BlockReader {
  readonly #options: BlockReaderDeps;
  readonly #window = new ByteWindow(IN_FLIGHT_BYTES_MAX);

  constructor(options: BlockReaderDeps) {
    this.#options = options;
  }

  /**
   * Returns what `read` makes of the parameter. Reads again if the parameter was initialized anew meanwhile,
   * which may have changed its type, shape or layout.
   */
  async current<T>(first: ParameterInfo, read: (info: ParameterInfo) => Promise<T>): Promise<T> {
    let info = first;
    while (true) {
      try {
        return await read(info);
      } catch (error) {
        if (!(error instanceof Replaced)) throw error;
        info = error.info;
      }
    }
  }

  /**
   * Reads blocks, not at one moment; to be called within {@link current}. Returns the highest of their
   * versions, 0 if there are none.
   */
  async readAll(
    info: ParameterInfo,
    reads: readonly BlockRead[],
    mode: ReadMode,
    deadline: Deadline,
  ): Promise<number> {
    const versions = await allOrFirstError(
      reads.map((read) => this.#read(info, read, mode, deadline)),
    );
    return versions.reduce((most, one) => Math.max(most, one), 0);
  }

  async #read(
    info: ParameterInfo,
    read: BlockRead,
    mode: ReadMode,
    deadline: Deadline,
  ): Promise<number> {
    const replyBytes = encodedBytes(info.dtype, mode.encoding, read.elements);
    const windowBytes = Math.max(REQUEST_BYTES_MIN, replyBytes);
    await this.#window.acquire(windowBytes, deadline);
    try {
      while (true) {
        const answer = await this.#try(info, read, mode, deadline);
        if (typeof answer === "number") return answer;
        if (reactionTo(answer.code) === "replaced") {
          noteReplaced(this.#options.positions, read.place.shard, answer);
          // If the error names no newer journal, the next request would get it again at once.
          await deadline.sleep(AGAIN_MS);
          continue;
        }
        // The parameter may be another than it was.
        const fresh = await this.#refresh(info.name, deadline, answer);
        if (fresh.epoch !== info.epoch) throw new Replaced(fresh);
      }
    } finally {
      this.#window.release(windowBytes);
    }
  }

  /** Returns the block's version, or the error after which it is asked for again. */
  async #try(
    info: ParameterInfo,
    { place, elements, index, take }: BlockRead,
    { encoding, step }: ReadMode,
    deadline: Deadline,
  ): Promise<number | PserverError> {
    const { requests, subjects, trainer, positions, seen, waitsForSteps, onClosed } = this.#options;
    const entries = {
      epoch: info.epoch,
      ...(encoding === undefined ? {} : { encoding }),
      ...(index === undefined ? {} : { part: partCounts(index) }),
    };
    const expected = encodedBytes(info.dtype, encoding, elements);
    try {
      return await requests.ask({
        subject: subjects.pull(info.name, place.index, trainer),
        body: () => {
          const waitMs = Math.floor(Math.min(WAIT_MS, deadline.remainingMs));
          const wanted = step !== undefined && waitsForSteps() ? { step } : {};
          const position = positions.get(place.shard);
          return encodePullRequest({ ...entries, ...wanted, ...position, waitMs }, index);
        },
        read: (message) => {
          const reply = parsePullReply(message);
          checkReply(reply, info, place, expected, encoding);
          take(reply.data);
          positions.note(place.shard, reply);
          seen.note(info, place.index, reply.version);
          if (step !== undefined && waitsForSteps()) onClosed(place.shard, step);
          return reply.version;
        },
        deadline,
        nobody: () => noOwner(info, place),
        retryMs: RETRY_MS,
      });
    } catch (caught) {
      const error = ensureError(caught);
      if (deadline.ended !== undefined) throw error;
      if (ASKED_AGAIN.includes(reactionTo(error.code))) return error;
      throw error;
    }
  }

  /** Looks the parameter up again. @throws at the deadline the reason for looking it up. */
  async #refresh(name: string, deadline: Deadline, reason: PserverError): Promise<ParameterInfo> {
    try {
      return await this.#options.parameters.refresh(name, deadline);
    } catch (error) {
      if (error !== deadline.ended || deadline.ended?.code !== "TIMEOUT") throw error;
      const { code, message, details } = reason;
      throw new PserverError(code, `${deadline.ended.message}; last: ${message}`, details, {
        cause: error,
      });
    }
  }
}

/** Thrown where the parameter was initialized anew while it was read, to read it from the start. */
class Replaced extends Error {
  readonly info: ParameterInfo;

  constructor(info: ParameterInfo) {
    super(`${info.name} has epoch ${info.epoch} now`);
    this.info = info;
  }
}

/** Waits for all, so that none outlives the call. @throws the first error. */
async function allOrFirstError<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const [only] = work;
  if (work.length === 1 && only !== undefined) return [await only];
  const results = Promise.all(work);
  await Promise.allSettled([results, ...work]);
  return await results;
}

function noOwner(info: ParameterInfo, place: BlockPlace): PserverError {
  return new PserverError(
    "NO_OWNER",
    `${quoteName(info.name)} block ${place.index}: no host serves shard ${place.shard}`,
    { parameter: info.name, block: place.index, shard: place.shard },
  );
}

function checkReply(
  reply: PullReply,
  info: ParameterInfo,
  place: BlockPlace,
  expected: number,
  encoding: Encoding | undefined,
): void {
  const { dtype, epoch, data } = reply;
  const fits = dtype === info.dtype && data.length === expected && epoch === info.epoch;
  if (fits && reply.encoding === encoding) return;
  throw new PserverError(
    "BAD_MESSAGE",
    `${quoteName(info.name)} block ${place.index}: expected ${expected} bytes of ${encoding ?? info.dtype} at epoch ${info.epoch}; received ${data.length} of ${reply.encoding ?? dtype} at epoch ${epoch}`,
    { parameter: info.name, block: place.index, expected, received: data.length },
  );
}
