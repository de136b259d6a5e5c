import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { ENCODINGS, type Encoding, encodedBytes } from "../../protocol/encoding/encodings.ts";
import {
  type BlockRows,
  blockRows,
  type PartIndex,
  partCounts,
  partElements,
} from "../../protocol/parts.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";
import type { Block } from "./block.ts";
import { ElementRanges } from "./element-ranges.ts";
import { ENCODED_CHUNK_BYTES } from "./payload.ts";
import { RowPieces } from "./row-pieces.ts";

/** Elements of a block to read, and their encoding. */
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
const FEW_WORDS = 16;
const WORD_BYTES = 4;

/** Reads elements of a block: first the number of bytes, then the bytes. */
export class ElementReader {
  /** Length of the encoded elements. */
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
    return inner === undefined && RowPieces.isShort(rowElements * DTYPES[this.#block.dtype].bytes);
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

  /** Gathers short rows, a piece at a time. */
  #readRows(target: Uint8Array, rows: Uint32Array): void {
    const { encoding } = this.#choice;
    const { rowElements } = this.#rows;
    const elementBytes = DTYPES[this.#block.dtype].bytes;
    const wireBytes = encoding === undefined ? elementBytes : ENCODINGS[encoding].bytes;
    const { scratch, kernels } = this.#memory;
    const pieces = new RowPieces(this.#memory, rowElements, elementBytes);
    const { byteOffset } = this.#block.values();
    let at = 0;
    for (let first = 0; first < rows.length; first += pieces.rowsMax) {
      const n = Math.min(pieces.rowsMax, rows.length - first);
      pieces.take(rows, first, n);
      pieces.gather(scratch, byteOffset, n);
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
      if (length < FEW_WORDS) {
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
