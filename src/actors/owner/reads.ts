import {
  type Allocate,
  busy,
  checksum,
  decodeBatchRead,
  draftPullReply,
  type Fields,
  PserverError,
  type PullRequest,
  parsePullRequest,
  readPartRequest,
  sealMessage,
} from "../../protocol/index.ts";
import { blockRows } from "../../protocol/messages/parts.ts";
import type { Block, BlockName } from "../fold/block-actor.ts";
import { ElementReader } from "./element-reader.ts";
import { FairShares, QUEUED_BYTES } from "./fair-server.ts";
import type { OwnerCounters } from "./owner-counters.ts";
import type { AnsweredShard, ReadConditions } from "./pending-reads.ts";
import type { Asker, Chunk, Responder } from "./responder.ts";
import { keptRead, ServedRead } from "./served-read.ts";

/**
 * Checksums of the values of blocks, computed once for each version: many trainers pull the same
 * version, and the checksum is a third of a pull's cost at the host.
 */
export class KnownChecksums {
  readonly #known: WeakMap<Block, { readonly version: number; readonly crc: number }> =
    new WeakMap();

  /** Returns the checksum of all current values of a block; `values` is a copy of them. */
  of(block: Block, values: Uint8Array): number {
    const known = this.#known.get(block);
    if (known?.version === block.version) return known.crc;
    const crc = checksum(values);
    this.#known.set(block, { version: block.version, crc });
    return crc;
  }
}

/** Bounds the memory of pending reads: their indices and columns are copied, because buffers of requests are reused. */
class HeldBytes {
  readonly #shard: number;
  /** Bytes held by trainer. */
  readonly #shares: FairShares = new FairShares(QUEUED_BYTES);

  constructor(shard: number) {
    this.#shard = shard;
  }

  /**
   * Takes so many bytes for a trainer's read; returns what releases them, to be called once.
   * @throws BUSY if the pending reads hold too many bytes.
   */
  take(trainer: string, received: number): () => void {
    if (!this.#shares.take(trainer, received)) {
      const { each: expected, all } = QUEUED_BYTES;
      throw busy(
        `shard ${this.#shard}: expected at most ${expected} bytes of blocks and indices in one trainer's pending reads and ${all} in all`,
        { shard: this.#shard, expected, received },
      );
    }
    return () => this.#shares.giveBack(trainer, received);
  }
}

/** A request for the values of a block. */
interface Pull extends BlockName {
  readonly request: PullRequest;
  /** Index of the requested part; empty for all elements. */
  readonly part: Uint8Array;
}

/** Answers requests for the values of blocks, once the fold has reached the position or step that they name. */
export class ServedValues {
  readonly #served: AnsweredShard;
  readonly #conditions: ReadConditions;
  readonly #responder: Responder;
  readonly #counters: OwnerCounters;
  readonly #held: HeldBytes;
  readonly #checksums: KnownChecksums = new KnownChecksums();

  constructor(
    served: AnsweredShard,
    conditions: ReadConditions,
    { responder, counters }: { readonly responder: Responder; readonly counters: OwnerCounters },
  ) {
    this.#served = served;
    this.#conditions = conditions;
    this.#responder = responder;
    this.#counters = counters;
    this.#held = new HeldBytes(served.number);
  }

  /** Answers a pull of one block, whose message has these fields and, for a part, its index as `data`. */
  pull(asker: Asker, block: BlockName, fields: Fields, data: Uint8Array): void {
    const responder = this.#responder;
    const request = parsePullRequest(fields);
    const release = this.#held.take(asker.from, data.length);
    const part = Uint8Array.from(data);
    const startedMs = performance.now();
    const answer = (): void => {
      const willAnswer = responder.respond(asker, (allocate) => {
        release();
        const bytes = this.#values({ ...block, request, part }, allocate);
        this.#counters.pulled(bytes.length);
        this.#answered(startedMs);
        return bytes;
      });
      if (!willAnswer) release();
    };
    this.#conditions.afterBoth(asker, request, answer, (error) => {
      release();
      responder.refuse(asker, error);
    });
  }

  /** Answers a batched read, in chunks. */
  read(asker: Asker, bytes: Uint8Array): void {
    const responder = this.#responder;
    const request = decodeBatchRead(bytes);
    const release = this.#held.take(asker.from, bytes.length);
    const read = new ServedRead(this.#served, responder, keptRead(request));
    const startedMs = performance.now();
    const next = (allocate: Allocate): Chunk => {
      const chunk = read.next(allocate);
      this.#counters.pulled(chunk.bytes.length);
      if (!chunk.more) this.#answered(startedMs);
      return chunk;
    };
    const answer = (): void => {
      responder.respondInChunks(asker, next, release);
    };
    this.#conditions.afterBoth(asker, request, answer, (error) => {
      release();
      responder.refuse(asker, error);
    });
  }

  /** Counts a read whose last answer is ready to be sent. */
  #answered(startedMs: number): void {
    this.#counters.observe("readSeconds", (performance.now() - startedMs) / 1_000);
  }

  #values({ parameter, index, request, part }: Pull, allocate: Allocate): Uint8Array {
    const { shard, position } = this.#served;
    const { epoch, encoding } = request;
    const block = shard.block(parameter, index);
    if (block?.epoch !== epoch) {
      throw new PserverError(
        "STALE_EPOCH",
        `${parameter} block ${index}: expected epoch ${block?.epoch ?? "none"}; received ${epoch}`,
        { parameter, block: index, expected: block?.epoch, received: epoch },
      );
    }
    const { dtype, version } = block;
    const reader = new ElementReader(shard.memory, block, {
      part: request.part && readPartRequest(request.part, part, blockRows(block)),
      encoding,
    });
    const head = { epoch, dtype, version, ...position };
    const reply = encoding === undefined ? head : { ...head, encoding };
    const draft = draftPullReply(reply, reader.bytes, allocate);
    // A copy: the block may change before the broker has taken the message.
    reader.read(draft.data);
    const isWhole = request.part === undefined && encoding === undefined;
    return sealMessage(draft, isWhole ? this.#checksums.of(block, draft.data) : undefined);
  }
}
