import { PserverError, reactionTo } from "../../protocol/errors.ts";
import {
  BATCH_BYTES,
  BATCH_ENTRIES_MAX,
  BATCH_ENTRY_BYTES_MAX,
  BATCH_HEAD_BYTES_MAX,
} from "../../protocol/limits.ts";
import type { ParameterInfo } from "../../protocol/messages/lifecycle-messages.ts";
import { packedIndexBytes, partCounts } from "../../protocol/messages/parts.ts";
import { allOrFirstError, type Deadline } from "../calls/calls.ts";
import type { Parameters } from "../calls/parameters.ts";
import type { LinkWindow } from "../core/link-window.ts";
import { noteReplaced } from "../core/shard-window.ts";
import {
  isWanted,
  type ParameterRead,
  type PendingBlock,
  type PendingParameter,
  pendingBlocks,
  type ReadDeps,
  type ReadMode,
  readBatch,
  readSingle,
} from "./read-requests.ts";
import { type ReadPlace, ReadWindow } from "./read-window.ts";

/** A request: for one block by its own subject, or for several blocks of a shard. */
export type PlannedRequest =
  | { readonly kind: "single"; readonly block: PendingBlock }
  | {
      readonly kind: "batch";
      readonly shard: number;
      readonly blocks: readonly PendingBlock[];
      /** Bytes of the reply, if every block has changed. */
      readonly bytes: number;
    };

/** Most bytes that an entry takes in the header of a request: three numbers in a list, and a version. */
const ENTRY_BYTES = 32;
/** Most bytes that a group takes besides its name and entries. */
const GROUP_BYTES = 96;
/** Most bytes of UTF-8 for one UTF-16 code unit. */
const UTF8_BYTES = 3;
/**
 * Share of its bytes that a block counts if the reader has a version of it, because most such blocks have not
 * changed.
 */
const KNOWN_SHARE = 0.25;
/** Bytes of a request besides its entries. */
const REST_BYTES = 1024;

/** A batch that is being filled. */
interface OpenBatch {
  readonly kind: "batch";
  readonly shard: number;
  readonly blocks: PendingBlock[];
  bytes: number;
  /** Expected bytes of the reply. */
  expectedBytes: number;
  headerBytes: number;
  dataBytes: number;
}

/**
 * Divides blocks among requests, in the order of the blocks. One request asks for as many small blocks of a
 * shard as one chunk of a reply takes. A large block has a request of its own, so that large and small ones
 * do not wait for each other.
 * @param payloadBytesMax the largest message that the broker takes.
 */
export function planRequests(
  blocks: readonly PendingBlock[],
  payloadBytesMax: number,
): PlannedRequest[] {
  const requests: (OpenBatch | PlannedRequest)[] = [];
  const open = new Map<number, OpenBatch>();
  for (const block of blocks) {
    const { read, bytes } = block;
    if (bytes >= BATCH_ENTRY_BYTES_MAX && read.known === undefined) {
      requests.push({ kind: "single", block });
      continue;
    }
    const { shard } = read.place;
    let batch = open.get(shard);
    if (batch === undefined || !add(batch, block, payloadBytesMax)) {
      batch = { ...{ kind: "batch", shard, blocks: [] }, ...NO_BYTES };
      add(batch, block, payloadBytesMax);
      open.set(shard, batch);
      requests.push(batch);
    }
  }
  return requests.map((request) => {
    if (request.kind === "single") return request;
    const [first] = request.blocks;
    const isAlone = request.blocks.length === 1 && first?.read.known === undefined;
    return isAlone && first !== undefined ? { kind: "single", block: first } : request;
  });
}

const NO_BYTES = { bytes: 0, expectedBytes: 0, headerBytes: 0, dataBytes: 0 };

/**
 * Adds a block to a batch; returns false if it does not fit. A batch takes its first block whatever its size.
 */
function add(batch: OpenBatch, block: PendingBlock, payloadBytesMax: number): boolean {
  const { read, bytes, parameter } = block;
  const last = batch.blocks.at(-1);
  const { name } = parameter.info;
  const groupBytes = last?.parameter === parameter ? 0 : GROUP_BYTES + name.length * UTF8_BYTES;
  const expectedBytes =
    batch.expectedBytes + (read.known === undefined ? bytes : bytes * KNOWN_SHARE);
  const headerBytes = batch.headerBytes + ENTRY_BYTES + groupBytes;
  const dataBytes = batch.dataBytes + indexBytes(block);
  if (last !== undefined) {
    if (batch.blocks.length >= BATCH_ENTRIES_MAX || expectedBytes > BATCH_BYTES) return false;
    if (headerBytes + REST_BYTES > BATCH_HEAD_BYTES_MAX) return false;
    if (headerBytes + REST_BYTES + dataBytes > payloadBytesMax) return false;
  }
  batch.blocks.push(block);
  batch.bytes += bytes;
  Object.assign(batch, { expectedBytes, headerBytes, dataBytes });
  return true;
}

function indexBytes({ read: { index }, rows }: PendingBlock): number {
  return index === undefined ? 0 : packedIndexBytes(partCounts(index), rows);
}

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
    const requests = planRequests(blocks, this.#options.payloadBytesMax());
    await allOrFirstError(requests.map((request) => this.#read(request, mode, deadline)));
    return pending.map(({ replacedBy }) => replacedBy);
  }

  async #read(request: PlannedRequest, mode: ReadMode, deadline: Deadline): Promise<void> {
    const isSingle = request.kind === "single";
    const shard = isSingle ? request.block.read.place.shard : request.shard;
    const bytes = isSingle ? request.block.bytes : request.bytes;
    const windowBytes = Math.max(REQUEST_BYTES_MIN, bytes);
    const place = await this.#window.enter(shard, windowBytes, deadline);
    const askedAtMs = performance.now();
    const receivedBefore = this.#options.receivedBytes();
    try {
      if (isSingle) await this.#readSingle(request.block, mode, deadline, place);
      else await this.#readBatch(shard, request.blocks, mode, deadline, place);
      // Whatever the link has brought meanwhile shows how fast it is; the count begins anew with a connection.
      const received = this.#options.receivedBytes() - receivedBefore;
      const nowMs = performance.now();
      if (received > 0) this.#options.link.note(received, nowMs - askedAtMs, nowMs);
    } finally {
      place.leave();
    }
  }

  async #readSingle(
    block: PendingBlock,
    mode: ReadMode,
    deadline: Deadline,
    place: ReadPlace,
  ): Promise<void> {
    const refused = (): void => place.refused();
    while (isWanted(block)) {
      const problem = await readSingle(this.#options, block, mode, deadline, refused);
      if (problem !== undefined) await this.#prepareAgain([block], deadline, problem);
    }
  }

  /** Reads blocks of a shard together. */
  async #readBatch(
    shard: number,
    blocks: readonly PendingBlock[],
    mode: ReadMode,
    deadline: Deadline,
    place: ReadPlace,
  ): Promise<void> {
    const refused = (): void => place.refused();
    for (let left = blocks; left.length > 0; left = blocks.filter(isWanted)) {
      const problem = await readBatch(this.#options, shard, left, mode, deadline, refused);
      if (problem !== undefined) {
        await this.#prepareAgain(left.filter(isWanted), deadline, problem);
      }
    }
  }

  /** Does what an error requires before blocks of one shard are asked for again. */
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
   * Looks the parameters of blocks up again, and notes those that were initialized again.
   * @throws at the deadline, the reason for looking them up.
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
