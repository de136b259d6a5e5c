import {
  bytesOf,
  DTYPES,
  type Dtype,
  type Encoding,
  encodedBytes,
  type HalfEncoding,
  isGrouped,
} from "../../protocol/dtypes.ts";
import { encodeElements } from "../../protocol/encoding/encoding.ts";
import {
  type BlockRows,
  blockRows,
  type PartIndex,
  partCounts,
  partElements,
} from "../../protocol/messages/parts.ts";
import type { Block } from "../fold/block-actor.ts";
import { ElementRanges, ENCODED_CHUNK_BYTES, NARROW } from "../fold/elements.ts";
import { RowRanges } from "../fold/row-ranges.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";

/** The elements of a block to read, and their encoding. */
export interface ReadChoice {
  /** The elements; undefined for all. */
  readonly part?: PartIndex | undefined;
  /** Encoding; undefined for that of the block's type. */
  readonly encoding?: Encoding | undefined;
}

/** Fewer words than this are copied one by one; for more, `copyWithin` is faster. */
const COPY_WITHIN_WORDS_MIN = 16;
/** Bytes of the longest words in which elements are copied. */
const WORD_BYTES_MAX = 4;

/** Reads elements of a block. Their length is known before they are read. */
export class ElementReader {
  /** Bytes of the encoded elements. */
  readonly bytes: number;
  readonly #elements: number;
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
    this.#elements = elements;
    this.bytes = encodedBytes(block.dtype, encoding, elements);
  }

  /** Writes the current elements, in order, to {@link bytes} bytes. */
  read(target: Uint8Array): void {
    const { part, encoding } = this.#choice;
    if (isGrouped(encoding)) {
      encodeElements(encoding, this.#readFloats(), target);
    } else if (part === undefined) {
      if (encoding === undefined) target.set(this.#block.values());
      else this.#readEncoded(target, encoding);
    } else {
      this.#readPart(target, part, encoding);
    }
  }

  /** Returns the elements as they are in the block: a view if they are all of it, valid until the memory grows. */
  #readFloats(): Float32Array {
    const { part } = this.#choice;
    if (part === undefined) {
      const { buffer, byteOffset } = this.#block.values();
      return new Float32Array(buffer, byteOffset, this.#elements);
    }
    const floats = new Float32Array(this.#elements);
    this.#readPart(bytesOf(floats), part, undefined);
    return floats;
  }

  #readPart(target: Uint8Array, part: PartIndex, encoding: HalfEncoding | undefined): void {
    if (this.#isShortRows(part)) this.#readRows(target, part.rows, encoding);
    else this.#readGathered(target, encoding);
  }

  #isShortRows({ inner }: PartIndex): boolean {
    const { rowElements } = this.#rows;
    return inner === undefined && RowRanges.isShort(rowElements * DTYPES[this.#block.dtype].bytes);
  }

  /** Encodes all elements, which are contiguous, without gathering them first. */
  #readEncoded(target: Uint8Array, encoding: HalfEncoding): void {
    const { scratch, kernels } = this.#memory;
    const { dtype, pointer } = this.#block;
    const bytes = encodedBytes(dtype, encoding, 1);
    const elementBytes = DTYPES[dtype].bytes;
    for (let at = 0; at < target.length; at += ENCODED_CHUNK_BYTES) {
      const n = Math.min(ENCODED_CHUNK_BYTES, target.length - at) / bytes;
      kernels[NARROW[encoding]](scratch, pointer + (at / bytes) * elementBytes, n);
      target.set(this.#memory.bytes(scratch, n * bytes), at);
    }
  }

  /** Gathers short rows, a range of the list at a time. */
  #readRows(target: Uint8Array, rows: Uint32Array, encoding: HalfEncoding | undefined): void {
    const { rowElements } = this.#rows;
    const { dtype, pointer } = this.#block;
    const elementBytes = DTYPES[dtype].bytes;
    const wireBytes = encodedBytes(dtype, encoding, 1);
    const { scratch, kernels } = this.#memory;
    const ranges = new RowRanges(this.#memory, rowElements, elementBytes);
    let at = 0;
    for (let first = 0; first < rows.length; first += ranges.rowsMax) {
      const n = Math.min(ranges.rowsMax, rows.length - first);
      ranges.take(rows, first, n);
      ranges.gather(scratch, pointer, n);
      const elements = n * rowElements;
      const encoded = encoding === undefined ? scratch : scratch + elements * elementBytes;
      if (encoding !== undefined) kernels[NARROW[encoding]](encoded, scratch, elements);
      target.set(this.#memory.bytes(encoded, elements * wireBytes), at);
      at += elements * wireBytes;
    }
  }

  #readGathered(target: Uint8Array, encoding: HalfEncoding | undefined): void {
    const { dtype } = this.#block;
    const elementBytes = DTYPES[dtype].bytes;
    const wireBytes = encodedBytes(dtype, encoding, 1);
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
    const words = wordsIn(buffer, this.#block.dtype);
    const wordBytes = words.BYTES_PER_ELEMENT;
    const elementWords = DTYPES[this.#block.dtype].bytes / wordBytes;
    let to = this.#memory.scratch / wordBytes;
    for (let left = n; left > 0 && ranges.next(left); left -= ranges.count) {
      const from = byteOffset / wordBytes + ranges.start * elementWords;
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

/** Returns a memory as words that elements of a type are whole numbers of. */
function wordsIn(buffer: ArrayBuffer, dtype: Dtype): Uint8Array | Uint16Array | Uint32Array {
  const wordBytes = Math.min(DTYPES[dtype].bytes, WORD_BYTES_MAX);
  if (wordBytes === 1) return new Uint8Array(buffer);
  return wordBytes === 2 ? new Uint16Array(buffer) : new Uint32Array(buffer);
}
