import { type PserverError, reactionTo } from "../../protocol/errors.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { allOrFirstError, Backoff, type Deadline, orObstacle } from "../calls/calls.ts";
import type { Parameters } from "../calls/parameters.ts";
import type { LinkWindow } from "../core/link-window.ts";
import { noteReplaced } from "../core/shard-window.ts";
import {
  type BatchRequest,
  blockOfEntry,
  type ParameterRead,
  PendingReads,
  type PlannedRequest,
  planRequests,
  type SingleRequest,
} from "./read-plan.ts";
import { type ReadDeps, type ReadMode, readBatch, readSingle } from "./read-requests.ts";
import { type ReadPlace, ReadWindow } from "./read-window.ts";

/** Dependencies of BlockReader. */
interface BlockReaderDeps extends ReadDeps {
  readonly parameters: Parameters;
  /** The largest message that the broker takes. */
  readonly payloadBytesMax: () => number;
  /** Bytes that the present connection has received. */
  readonly receivedBytes: () => number;
  /** How much may be asked for at one time, by what the link has brought. */
  readonly link: LinkWindow;
}

/** Pause before blocks are asked for again after their journal was replaced. */
const AGAIN_MS = 10;
/** Reads of one shard that are to be asked for again. */
interface RepeatedReads {
  readonly shard: number;
  /** Their places in the call, each once. */
  readonly places: readonly number[];
  /** The pauses of the request while nothing new is known of its parameters. */
  readonly backoff: Backoff;
}

/** Least bytes that a request counts in the window; bounds the number of requests under way. */
const REQUEST_BYTES_MIN = 16 * 1024;

/**
 * Reads blocks and parts of blocks. One window bounds the reads of all calls: as much as the link has lately brought in
 * 1.5 s, at most 16 MiB.
 */
export class BlockReader {
  readonly #options: BlockReaderDeps;
  readonly #window: ReadWindow;

  constructor(options: BlockReaderDeps) {
    this.#options = options;
    this.#window = new ReadWindow(() => options.link.bytes);
  }

  /**
   * Reads blocks, not all at one moment. Returns undefined for each parameter that was read, and its new
   * description if it was initialized again during the read: its blocks must then be read again in the new
   * layout.
   */
  async readAll(
    reads: readonly ParameterRead[],
    { encoding, step }: ReadMode,
    deadline: Deadline,
  ): Promise<(ParameterInfo | undefined)[]> {
    const pending = new PendingReads(reads, encoding);
    const requests = planRequests(pending, this.#options.payloadBytesMax());
    await allOrFirstError(requests.map((request) => this.#read(pending, request, step, deadline)));
    return pending.replacedBy;
  }

  async #read(
    pending: PendingReads,
    request: PlannedRequest,
    step: number | undefined,
    deadline: Deadline,
  ): Promise<void> {
    const isSingle = request.kind === "single";
    const { shard } = isSingle ? blockOfEntry(pending, request) : request;
    const windowBytes = Math.max(REQUEST_BYTES_MIN, request.bytes);
    const place = await this.#window.enter(shard, windowBytes, deadline);
    const askedAtMs = performance.now();
    const receivedBefore = this.#options.receivedBytes();
    try {
      if (isSingle) await this.#readSingle(pending, request, step, deadline, place);
      else await this.#readBatch(pending, request, step, deadline, place);
      // Whatever the link has brought meanwhile shows how fast it is; the count begins anew with a connection.
      const received = this.#options.receivedBytes() - receivedBefore;
      const nowMs = performance.now();
      if (received > 0) this.#options.link.note(received, nowMs - askedAtMs, nowMs);
    } finally {
      place.leave();
    }
  }

  async #readSingle(
    pending: PendingReads,
    request: SingleRequest,
    step: number | undefined,
    deadline: Deadline,
    place: ReadPlace,
  ): Promise<void> {
    const { shard } = blockOfEntry(pending, request);
    const refused = (): void => place.refused();
    const backoff = new Backoff();
    while (!request.isDone && pending.replacedBy[request.place] === undefined) {
      const problem = await readSingle(this.#options, pending, request, step, deadline, refused);
      if (problem !== undefined) {
        const again = { shard, places: [request.place], backoff };
        await this.#prepareAgain(pending, again, deadline, problem);
      }
    }
  }

  /** Reads entries of a shard together. */
  async #readBatch(
    pending: PendingReads,
    request: BatchRequest,
    step: number | undefined,
    deadline: Deadline,
    place: ReadPlace,
  ): Promise<void> {
    const refused = (): void => place.refused();
    const backoff = new Backoff();
    for (let left: BatchRequest | undefined = request; left !== undefined; ) {
      const problem = await readBatch(this.#options, pending, left, step, deadline, refused);
      if (problem !== undefined) {
        const places = [...new Set(left.rest(pending)?.places)];
        const again = { shard: left.shard, places, backoff };
        await this.#prepareAgain(pending, again, deadline, problem);
      }
      left = left.rest(pending);
    }
  }

  /** Does what an error requires before reads ask again. */
  async #prepareAgain(
    pending: PendingReads,
    again: RepeatedReads,
    deadline: Deadline,
    problem: PserverError,
  ): Promise<void> {
    if (reactionTo(problem.code) === "replaced") {
      noteReplaced(this.#options.positions, again.shard, problem);
      // If the error names no newer journal, the next request would get it again at once.
      await deadline.sleep(AGAIN_MS);
    } else {
      await this.#lookUp(pending, again, deadline, problem);
    }
  }

  /**
   * Looks the parameters of reads up again, and notes those that were initialized again. If there are none, it waits,
   * longer each time: a shard that has lost blocks says so at once until hosts have noticed it, too.
   * @throws at the deadline, the reason for looking them up.
   */
  async #lookUp(
    pending: PendingReads,
    { places, backoff }: RepeatedReads,
    deadline: Deadline,
    reason: PserverError,
  ): Promise<void> {
    const before = places.map((place) => (pending.reads[place] as ParameterRead).info);
    const names = before.map(({ name }) => name);
    const infos = await this.#refresh(names, deadline, reason);
    let isNew = false;
    infos.forEach((fresh, i) => {
      if (fresh.epoch === before[i]?.epoch) return;
      pending.replacedBy[places[i] as number] = fresh;
      isNew = true;
    });
    if (isNew) return;
    await deadline.sleep(backoff.nextMs()).catch((end: PserverError) => {
      throw orObstacle(end, reason);
    });
  }

  async #refresh(
    names: readonly string[],
    deadline: Deadline,
    reason: PserverError,
  ): Promise<readonly ParameterInfo[]> {
    try {
      return await this.#options.parameters.refreshAll(names, deadline);
    } catch (error) {
      const { ended } = deadline;
      throw ended !== undefined && error === ended ? orObstacle(ended, reason) : error;
    }
  }
}
