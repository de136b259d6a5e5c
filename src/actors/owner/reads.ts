import {
  DTYPES,
  type Dtype,
  ENCODINGS,
  type Encoding,
  encodedBytes,
} from "../../protocol/dtypes.ts";
import {
  type Allocate,
  BATCH_BYTES,
  type BatchRead,
  busy,
  checksum,
  decodeBatchRead,
  draftPullReply,
  draftReadChunk,
  ensureError,
  entryLabel,
  type Fields,
  HEADER_BYTES_MAX,
  PserverError,
  type PullRequest,
  paddedBytes,
  parsePullRequest,
  READ_BYTES_MAX,
  type ReadEntry,
  readPackedIndex,
  readPartRequest,
  sealMessage,
} from "../../protocol/index.ts";
import {
  type BlockRows,
  blockRows,
  type PartIndex,
  partCounts,
  partElements,
} from "../../protocol/messages/parts.ts";
import { type Block, type BlockName, blockLabel } from "../fold/block-actor.ts";
import { ElementRanges, ENCODED_CHUNK_BYTES } from "../fold/elements.ts";
import { RowRanges } from "../fold/row-ranges.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { FairShares, QUEUED_BYTES } from "./fair-server.ts";
import type { AnsweredShard, ReadConditions } from "./pending-reads.ts";
import type { Asker, Chunk, Responder } from "./responder.ts";

/** The elements of a block to read, and their encoding. */
export interface ReadChoice {
  /** The elements; undefined for all. */
  readonly part?: PartIndex | undefined;
  /** Encoding; undefined for that of the block's type. */
  readonly encoding?: Encoding | undefined;
}

const NARROW = { bfloat16: "narrowBf16", float16: "narrowF16" } as const satisfies Record<
  Encoding,
  keyof Kernels
>;

/** Fewer words than this are copied one by one; for more, `copyWithin` is faster. */
const COPY_WITHIN_WORDS_MIN = 16;
const WORD_BYTES = 4;

/** Reads elements of a block. Their length is known before they are read. */
export class ElementReader {
  /** Bytes of the encoded elements. */
  readonly bytes: number;
  readonly #memory: ShardMemory;
  readonly #block: Block;
  readonly #choice: ReadChoice;
  readonly #rows: BlockRows;

  /**
   * `memory`: that of the block's shard.
   * @throws UNSUPPORTED for an encoding that the block's type does not have.
   */
  constructor(memory: ShardMemory, block: Block, choice: ReadChoice) {
    this.#memory = memory;
    this.#block = block;
    this.#choice = choice;
    this.#rows = blockRows(block);
    const { part, encoding } = choice;
    const elements = part === undefined ? block.count : partElements(partCounts(part), this.#rows);
    this.bytes = encodedBytes(block.dtype, encoding, elements);
  }

  /** Writes the current elements, in order, to {@link bytes} bytes. */
  read(target: Uint8Array): void {
    const { part, encoding } = this.#choice;
    if (part === undefined && encoding === undefined) target.set(this.#block.values());
    else if (part === undefined && encoding !== undefined) this.#readEncoded(target, encoding);
    else if (part !== undefined && this.#isShortRows(part)) this.#readRows(target, part.rows);
    else this.#readGathered(target);
  }

  #isShortRows({ inner }: PartIndex): boolean {
    const { rowElements } = this.#rows;
    return inner === undefined && RowRanges.isShort(rowElements * DTYPES[this.#block.dtype].bytes);
  }

  /** Encodes all elements, which are contiguous, without gathering them first. */
  #readEncoded(target: Uint8Array, encoding: Encoding): void {
    const { scratch, kernels } = this.#memory;
    const { bytes } = ENCODINGS[encoding];
    const { byteOffset } = this.#block.values();
    const elementBytes = DTYPES[this.#block.dtype].bytes;
    for (let at = 0; at < target.length; at += ENCODED_CHUNK_BYTES) {
      const n = Math.min(ENCODED_CHUNK_BYTES, target.length - at) / bytes;
      kernels[NARROW[encoding]](scratch, byteOffset + (at / bytes) * elementBytes, n);
      target.set(this.#memory.bytes(scratch, n * bytes), at);
    }
  }

  /** Gathers short rows, a range of the list at a time. */
  #readRows(target: Uint8Array, rows: Uint32Array): void {
    const { encoding } = this.#choice;
    const { rowElements } = this.#rows;
    const elementBytes = DTYPES[this.#block.dtype].bytes;
    const wireBytes = encoding === undefined ? elementBytes : ENCODINGS[encoding].bytes;
    const { scratch, kernels } = this.#memory;
    const ranges = new RowRanges(this.#memory, rowElements, elementBytes);
    const { byteOffset } = this.#block.values();
    let at = 0;
    for (let first = 0; first < rows.length; first += ranges.rowsMax) {
      const n = Math.min(ranges.rowsMax, rows.length - first);
      ranges.take(rows, first, n);
      ranges.gather(scratch, byteOffset, n);
      const elements = n * rowElements;
      const encoded = encoding === undefined ? scratch : scratch + elements * elementBytes;
      if (encoding !== undefined) kernels[NARROW[encoding]](encoded, scratch, elements);
      target.set(this.#memory.bytes(encoded, elements * wireBytes), at);
      at += elements * wireBytes;
    }
  }

  #readGathered(target: Uint8Array): void {
    const { encoding } = this.#choice;
    const { dtype } = this.#block;
    const elementBytes = DTYPES[dtype].bytes;
    const wireBytes = encoding === undefined ? elementBytes : ENCODINGS[encoding].bytes;
    const { scratch, scratchBytes, kernels } = this.#memory;
    // The scratch holds a chunk, followed by its encoded form if there is one.
    const chunkElements = Math.floor(scratchBytes / (elementBytes + wireBytes));
    const ranges = ElementRanges.of(this.#rows, this.#choice.part);
    for (let at = 0; at < target.length; ) {
      const n = this.#gather(ranges, Math.min(chunkElements, (target.length - at) / wireBytes));
      const encoded = encoding === undefined ? scratch : scratch + n * elementBytes;
      if (encoding !== undefined) kernels[NARROW[encoding]](encoded, scratch, n);
      target.set(this.#memory.bytes(encoded, n * wireBytes), at);
      at += n * wireBytes;
    }
  }

  /** Copies the next `n` elements to the start of the scratch; returns their number. */
  #gather(ranges: ElementRanges, n: number): number {
    const { buffer, byteOffset } = this.#block.values();
    const words = new Uint32Array(buffer);
    const elementWords = wordsOf(this.#block.dtype);
    let to = this.#memory.scratch / WORD_BYTES;
    for (let left = n; left > 0 && ranges.next(left); left -= ranges.count) {
      const from = byteOffset / WORD_BYTES + ranges.start * elementWords;
      const length = ranges.count * elementWords;
      if (length < COPY_WITHIN_WORDS_MIN) {
        for (let i = 0; i < length; i++) words[to + i] = words[from + i] as number;
      } else {
        words.copyWithin(to, from, from + length);
      }
      to += length;
    }
    return n;
  }
}

function wordsOf(dtype: Dtype): number {
  return DTYPES[dtype].bytes / WORD_BYTES;
}

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

/** Entries that are read before the replies of others get their turn: each costs a microsecond or more. */
const CHUNK_ENTRIES_MAX = 512;

/** An entry of a chunk; `reader` is undefined if the asker has this version. */
interface ChunkEntry {
  readonly version: number;
  readonly reader: ElementReader | undefined;
}

/**
 * Answers one batched read, chunk by chunk. Each chunk is made of the fold's state at that moment; all entries are
 * checked before the first.
 */
class ServedRead {
  readonly #served: AnsweredShard;
  readonly #responder: Pick<Responder, "payloadBytesMax">;
  readonly #request: BatchRead;
  /** Indices of the entries that are parts, by entry; undefined before all entries are checked. */
  #indices: readonly (PartIndex | undefined)[] | undefined;
  #next: number;

  /** `request` and its data must stay as they are until the last chunk. */
  constructor(
    served: AnsweredShard,
    responder: Pick<Responder, "payloadBytesMax">,
    request: BatchRead,
  ) {
    this.#served = served;
    this.#responder = responder;
    this.#request = request;
    this.#next = request.from;
  }

  /**
   * Makes the next chunk: as many entries as take about 1 MiB, at least one and at most 512.
   * @throws STALE_EPOCH, BAD_LENGTH, BAD_INDEX, UNSUPPORTED naming the entry; TOO_LARGE for more than 16 MiB.
   */
  next(allocate: Allocate): Chunk {
    this.#indices ??= this.#checkAll();
    const from = this.#next;
    const { entries, dataBytes } = this.#gather(this.#indices);
    this.#next += entries.length;
    const more = this.#next < this.#request.entries.length;
    const versions = entries.map(({ version, reader }) => (reader === undefined ? 0 : version));
    const head = { from, more, ...this.#served.position, versions };
    const draft = draftReadChunk(head, dataBytes, allocate);
    let at = 0;
    for (const { reader } of entries) {
      if (reader === undefined) continue;
      const end = at + reader.bytes;
      // A copy: the block may change before the broker has taken the message.
      reader.read(draft.data.subarray(at, end));
      at += paddedBytes(reader.bytes);
      draft.data.fill(0, end, at);
    }
    return { bytes: sealMessage(draft), more };
  }

  /** Returns the entries of the next chunk, and the bytes that they take. */
  #gather(indices: readonly (PartIndex | undefined)[]): {
    entries: ChunkEntry[];
    dataBytes: number;
  } {
    const { entries: all } = this.#request;
    const bytesMax = Math.min(BATCH_BYTES, this.#responder.payloadBytesMax - HEADER_BYTES_MAX);
    const entries: ChunkEntry[] = [];
    let dataBytes = 0;
    const end = Math.min(all.length, this.#next + CHUNK_ENTRIES_MAX);
    for (let i = this.#next; i < end; i++) {
      const entry = this.#read(all[i] as ReadEntry, indices[i]);
      const bytes = entry.reader === undefined ? 0 : paddedBytes(entry.reader.bytes);
      if (entries.length > 0 && dataBytes + bytes > bytesMax) break;
      entries.push(entry);
      dataBytes += bytes;
    }
    return { entries, dataBytes };
  }

  #read(entry: ReadEntry, part: PartIndex | undefined): ChunkEntry {
    const { encoding, generation } = this.#request;
    // The block may have been initialized again since the entries were checked.
    const block = this.#block(entry);
    const { version } = block;
    // Another generation may have given the same version to other values.
    const isKnown = version === entry.have && generation === this.#served.position.generation;
    if (isKnown) return { version, reader: undefined };
    return {
      version,
      reader: new ElementReader(this.#served.shard.memory, block, { part, encoding }),
    };
  }

  /** Checks every entry; returns the indices of those that are parts. */
  #checkAll(): (PartIndex | undefined)[] {
    const { entries } = this.#request;
    let { data } = this.#request;
    let total = 0;
    const indices = entries.map((entry) => {
      const block = this.#block(entry);
      try {
        const rows = blockRows(block);
        total += this.#bytesOf(entry, block, rows);
        if (entry.part === undefined) return undefined;
        const { elements: rest, ...index } = readPackedIndex(entry.part, data, rows);
        data = rest;
        return index;
      } catch (error) {
        throw withEntryName(entry, ensureError(error));
      }
    });
    if (data.length > 0) throw tooMuchData(data.length);
    if (entries.length > 1 && total > READ_BYTES_MAX) throw tooLarge(total);
    return indices;
  }

  #bytesOf({ part }: ReadEntry, block: Block, rows: BlockRows): number {
    const elements = part === undefined ? block.count : partElements(part, rows);
    return encodedBytes(block.dtype, this.#request.encoding, elements);
  }

  #block(entry: ReadEntry): Block {
    const { parameter, block: index, epoch } = entry;
    const block = this.#served.shard.block(parameter, index);
    if (block?.epoch === epoch) return block;
    const text = `expected epoch ${block?.epoch ?? "none"}; received ${epoch}`;
    const details = { expected: block?.epoch, received: epoch };
    throw withEntryName(entry, new PserverError("STALE_EPOCH", text, details));
  }
}

/** Returns the error with the name of the entry that it is about. */
function withEntryName(entry: ReadEntry, { code, message, details }: PserverError): PserverError {
  const { parameter, block, group, place } = entry;
  return new PserverError(
    code,
    `${entryLabel(entry)}, ${blockLabel(parameter, block)}: ${message}`,
    { ...details, parameter, block, group, place },
  );
}

function tooMuchData(received: number): PserverError {
  return new PserverError(
    "BAD_LENGTH",
    `a batched read: expected no bytes after the index of the last part; received ${received}`,
    { expected: 0, received },
  );
}

function tooLarge(received: number): PserverError {
  return new PserverError(
    "TOO_LARGE",
    `a batched read: expected at most ${READ_BYTES_MAX} bytes of values; received entries of ${received}`,
    { expected: READ_BYTES_MAX, received },
  );
}

/** The part indices of a pending read. */
interface WantedPart {
  readonly index: Uint8Array;
  /** Releases the memory. To be called once. */
  readonly release: () => void;
}

/** Copies of the part indices of pending reads: the buffer of a request is reused after the request was handled. */
class WantedParts {
  readonly #shard: number;
  /** Bytes held by trainer. */
  readonly #shares: FairShares = new FairShares(QUEUED_BYTES);

  constructor(shard: number) {
    this.#shard = shard;
  }

  /**
   * Copies the indices of a trainer's read.
   * @throws BUSY if the pending ones hold too many bytes.
   * @param entryBytes memory of the request's other parts that are kept.
   */
  hold(trainer: string, index: Uint8Array, entryBytes = 0): WantedPart {
    const received = index.length + entryBytes;
    if (!this.#shares.take(trainer, received)) {
      const { each: expected, all } = QUEUED_BYTES;
      throw busy(
        `shard ${this.#shard}: expected at most ${expected} bytes of blocks and indices in one trainer's pending reads and ${all} in all`,
        { shard: this.#shard, expected, received },
      );
    }
    return {
      index: Uint8Array.from(index),
      release: () => this.#shares.giveBack(trainer, received),
    };
  }
}

/** Memory that an entry of a pending batched read takes, approximately. */
const READ_ENTRY_BYTES = 128;

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
  readonly #parts: WantedParts;
  readonly #checksums: KnownChecksums = new KnownChecksums();

  constructor(served: AnsweredShard, conditions: ReadConditions, responder: Responder) {
    this.#served = served;
    this.#conditions = conditions;
    this.#responder = responder;
    this.#parts = new WantedParts(served.number);
  }

  /** Answers a pull of one block, whose message has these fields and, for a part, its index as `data`. */
  pull(asker: Asker, block: BlockName, fields: Fields, data: Uint8Array): void {
    const responder = this.#responder;
    const request = parsePullRequest(fields);
    const { index: part, release } = this.#parts.hold(asker.from, data);
    const answer = (): void => {
      const willAnswer = responder.respond(asker, (allocate) => {
        release();
        return this.#values({ ...block, request, part }, allocate);
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
    const entryBytes = request.entries.length * READ_ENTRY_BYTES;
    const { index: data, release } = this.#parts.hold(asker.from, request.data, entryBytes);
    const read = new ServedRead(this.#served, responder, { ...request, data });
    const answer = (): void => {
      responder.respondInChunks(asker, (allocate) => read.next(allocate), release);
    };
    this.#conditions.afterBoth(asker, request, answer, (error) => {
      release();
      responder.refuse(asker, error);
    });
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
