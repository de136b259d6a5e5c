import { PserverError, reactionTo } from "../../protocol/errors.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import { IN_FLIGHT_BYTES_MAX } from "../../protocol/limits.ts";
import type { Parameters } from "../calls/parameters.ts";
import { noteReplaced } from "../core/positions.ts";
import { allOrFirstError } from "../timing/all-or-first-error.ts";
import type { Deadline } from "../timing/deadline.ts";
import {
  isWanted,
  type ParameterRead,
  type PendingBlock,
  type PendingParameter,
  pendingBlocks,
  type ReadMode,
} from "./block-read.ts";
import { ByteWindow } from "./byte-window.ts";
import { type PlannedRequest, planRequests, singleRequest } from "./plan-requests.ts";
import { type ReadDeps, readBatch, readSingle } from "./read-requests.ts";

/** Dependencies of BlockReader. */
export interface BlockReaderDeps extends ReadDeps {
  readonly parameters: Parameters;
  /** Whether the shards of the job take batched reads. */
  readonly takesBatches: () => boolean;
  /** The largest message that the broker takes. */
  readonly payloadBytesMax: () => number;
}

/** Pause before blocks are asked for in the journal that has replaced another. */
const AGAIN_MS = 10;
/** The least that a request counts in the window, which bounds the number of requests under way. */
const REQUEST_BYTES_MIN = 16 * 1024;

/** Reads blocks and parts of blocks, those of all calls in one window of 16 MiB. */
export class BlockReader {
  readonly #options: BlockReaderDeps;
  readonly #window = new ByteWindow(IN_FLIGHT_BYTES_MAX);
  /** Whether the broker's permissions keep batched reads from being sent or received. */
  #readsSingly = false;

  constructor(options: BlockReaderDeps) {
    this.#options = options;
  }

  /**
   * Reads blocks, not at one moment. Returns for each parameter undefined, or what it has become if it was
   * initialized anew meanwhile: then its blocks are to be read again as its new layout has them.
   */
  async readAll(
    parameters: readonly ParameterRead[],
    mode: ReadMode,
    deadline: Deadline,
  ): Promise<(ParameterInfo | undefined)[]> {
    const pending = parameters.map(({ info }): PendingParameter => {
      return { info, replacedBy: undefined };
    });
    const blocks = parameters.flatMap((parameter, i) =>
      pendingBlocks(pending[i] as PendingParameter, parameter.blocks, mode.encoding),
    );
    const { takesBatches, payloadBytesMax } = this.#options;
    const requests =
      takesBatches() && !this.#readsSingly
        ? planRequests(blocks, payloadBytesMax())
        : blocks.map(singleRequest);
    await allOrFirstError(requests.map((request) => this.#read(request, mode, deadline)));
    return pending.map(({ replacedBy }) => replacedBy);
  }

  async #read(request: PlannedRequest, mode: ReadMode, deadline: Deadline): Promise<void> {
    const bytes = request.kind === "single" ? request.block.bytes : request.bytes;
    const windowBytes = Math.max(REQUEST_BYTES_MIN, bytes);
    await this.#window.acquire(windowBytes, deadline);
    try {
      if (request.kind === "single") await this.#readSingle(request.block, mode, deadline);
      else await this.#readBatch(request.shard, request.blocks, mode, deadline);
    } finally {
      this.#window.release(windowBytes);
    }
    // Those that were left because batched reads do not get through.
    const left = request.kind === "single" ? [] : request.blocks.filter(isWanted);
    await allOrFirstError(left.map((block) => this.#read(singleRequest(block), mode, deadline)));
  }

  async #readSingle(block: PendingBlock, mode: ReadMode, deadline: Deadline): Promise<void> {
    while (isWanted(block)) {
      const problem = await readSingle(this.#options, block, mode, deadline);
      if (problem !== undefined) await this.#prepareAgain([block], deadline, problem);
    }
  }

  /** Reads blocks of a shard together; leaves some unread only if batched reads do not get through. */
  async #readBatch(
    shard: number,
    blocks: readonly PendingBlock[],
    mode: ReadMode,
    deadline: Deadline,
  ): Promise<void> {
    let hasOwner = false;
    while (true) {
      const left = blocks.filter(isWanted);
      const [first] = left;
      if (first === undefined) return;
      const problem = await readBatch(this.#options, shard, left, mode, deadline);
      if (problem?.code === "DENIED" || (problem?.code === "NO_OWNER" && hasOwner)) {
        this.#readsSingly = true;
        return;
      }
      if (problem?.code === "NO_OWNER") {
        // Waits for an owner. One that answers pulls only was not given the subject of batched reads.
        await this.#readSingle(first, mode, deadline);
        hasOwner = true;
      } else if (problem !== undefined) {
        await this.#prepareAgain(left.filter(isWanted), deadline, problem);
      }
    }
  }

  /** Does what an error asks for before blocks of one shard are asked for again. */
  async #prepareAgain(
    blocks: readonly PendingBlock[],
    deadline: Deadline,
    problem: PserverError,
  ): Promise<void> {
    const [first] = blocks;
    if (first !== undefined && reactionTo(problem.code) === "replaced") {
      noteReplaced(this.#options.positions, first.read.place.shard, problem);
      // If the error names no newer journal, the next request would get it again at once.
      await deadline.sleep(AGAIN_MS);
    } else {
      await this.#lookUp(blocks, deadline, problem);
    }
  }

  /**
   * Looks the parameters of blocks up again, and notes those that were initialized anew.
   * @throws at the deadline the reason for looking them up.
   */
  async #lookUp(
    blocks: readonly PendingBlock[],
    deadline: Deadline,
    reason: PserverError,
  ): Promise<void> {
    const names = new Set(blocks.map(({ parameter }) => parameter.info.name));
    const infos = await this.#refresh([...names], deadline, reason);
    const byName = new Map(infos.map((info) => [info.name, info]));
    for (const { parameter } of blocks) {
      const fresh = byName.get(parameter.info.name);
      if (fresh !== undefined && fresh.epoch !== parameter.info.epoch) parameter.replacedBy = fresh;
    }
  }

  async #refresh(
    names: readonly string[],
    deadline: Deadline,
    reason: PserverError,
  ): Promise<ParameterInfo[]> {
    try {
      return await this.#options.parameters.refreshAll(names, deadline);
    } catch (error) {
      if (error !== deadline.ended || deadline.ended?.code !== "TIMEOUT") throw error;
      const { code, message, details } = reason;
      throw new PserverError(code, `${deadline.ended.message}; last: ${message}`, details, {
        cause: error,
      });
    }
  }
}
