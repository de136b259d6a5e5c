import {
  DTYPES,
  type Dtype,
  encodedBytes,
  type HalfDtype,
  isHalf,
} from "../../../protocol/dtypes.ts";
import type { ShardMemory } from "../../kernel/shard-memory.ts";
import { computedAs, NARROW, WIDEN } from "../elements.ts";
import type { FoldedRun } from "./run-change.ts";

// Small blocks, and rows of blocks, lie apart in the shard's memory. A table of their addresses lets kernels gather
// many of them into contiguous columns in the scratch, where one call of a rule changes all, and scatter them back.

/** Bytes of elements that are changed together: all columns of them stay in a near cache. */
export const PIECES_BYTES_MAX: number = 32 * 1024;
/** Bytes of the longest piece: to gather a longer one costs more than a call for it alone. */
const PIECE_BYTES_MAX = 4096;
/** Pieces of a table at most. */
export const PIECES_MAX = 4096;
/** Columns at most: the values and three slots. */
const COLUMNS_MAX = 4;
const ROW_WORDS = 1 + COLUMNS_MAX;

// Offsets in the scratch. Incoming elements are at its beginning.
const COLUMNS = PIECES_BYTES_MAX;
const TABLE = COLUMNS + COLUMNS_MAX * PIECES_BYTES_MAX;
const ZEROS = TABLE + PIECES_MAX * ROW_WORDS * 4;
/** More zeros than are ever needed behind an entry. */
const ZEROS_BYTES = 8;

/** Bytes that the pieces of a table may have together for {@link PieceTable.gatherAll}. */
export const GATHERED_BYTES_MAX: number = TABLE;

/** The elements of a run, as it is folded. */
type RunElements = Pick<FoldedRun, "dtype" | "encoding" | "values">;

/**
 * Copies `elements` elements of a run, from a place on, to the beginning of the scratch, decoded to the type that they
 * are computed in.
 */
export function stagePieces(
  memory: ShardMemory,
  run: RunElements,
  from: number,
  elements: number,
): void {
  const wireBytes = encodedBytes(run.dtype, run.encoding, 1);
  const { scratch } = memory;
  // Encoded and widened elements end at the same address, so they can be widened in place.
  const encoded = scratch + elements * (DTYPES[computedAs(run.dtype)].bytes - wireBytes);
  copyElements(memory, run, { from, elements, to: encoded });
  const form = run.encoding ?? (isHalf(run.dtype) ? run.dtype : undefined);
  if (form !== undefined) memory.kernels[WIDEN[form]](scratch, encoded, elements);
}

/** Copies elements of a run to the beginning of the scratch as the run has them. */
export function stageValues(
  memory: ShardMemory,
  run: RunElements,
  from: number,
  elements: number,
): void {
  copyElements(memory, run, { from, elements, to: memory.scratch });
}

function copyElements(
  memory: ShardMemory,
  run: RunElements,
  { from, elements, to }: { from: number; elements: number; to: number },
): void {
  const wireBytes = encodedBytes(run.dtype, run.encoding, 1);
  const bytes = run.values.subarray(from * wireBytes, (from + elements) * wireBytes);
  memory.bytes(to, bytes.length).set(bytes);
}

/** A table of pieces in the scratch of a shard's memory. It is filled anew for each use. */
export class PieceTable {
  readonly #memory: ShardMemory;
  #words: Uint32Array = new Uint32Array(0);
  #pieces = 0;

  constructor(memory: ShardMemory) {
    this.#memory = memory;
  }

  /** Number of pieces. */
  get pieces(): number {
    return this.#pieces;
  }

  /** Empties the table. The memory must not grow until the pieces have been scattered. */
  clear(): void {
    const { scratch } = this.#memory;
    const { buffer, byteOffset } = this.#memory.bytes(scratch + TABLE, PIECES_MAX * ROW_WORDS * 4);
    this.#words = new Uint32Array(buffer, byteOffset, PIECES_MAX * ROW_WORDS);
    this.#pieces = 0;
  }

  /** Begins a piece of so many bytes. */
  add(bytes: number): void {
    this.#words[this.#pieces * ROW_WORDS] = bytes;
    this.#pieces += 1;
  }

  /** Adds a piece of so many bytes of zeros, less than 8, to the first column. */
  addZeros(bytes: number): void {
    const { scratch } = this.#memory;
    this.#memory.bytes(scratch + ZEROS, ZEROS_BYTES).fill(0);
    this.add(bytes);
    this.at(0, scratch + ZEROS);
  }

  /** Sets the address in a column of the piece that was added last. */
  at(column: number, address: number): void {
    this.#words[(this.#pieces - 1) * ROW_WORDS + 1 + column] = address;
  }

  /** Copies the pieces of a column behind each other, and returns their address. */
  gather(column: number): number {
    const to = this.#memory.scratch + COLUMNS + column * PIECES_BYTES_MAX;
    this.#gatherTo(to, column);
    return to;
  }

  /** Copies the pieces of the first column, which are half floats, behind each other as float32; returns their address. */
  gatherHalves(dtype: HalfDtype, elements: number): number {
    const to = this.#memory.scratch + COLUMNS;
    // Half floats and float32 end at the same address, so they can be widened in place.
    const halves = to + elements * DTYPES[dtype].bytes;
    this.#gatherTo(halves, 0);
    this.#memory.kernels[WIDEN[dtype]](to, halves, elements);
    return to;
  }

  /**
   * Rounds a column that was gathered by {@link gatherHalves}, and copies it back to the pieces. Overwrites the
   * beginning of the scratch.
   */
  scatterHalves(dtype: HalfDtype, elements: number): void {
    const { scratch, kernels } = this.#memory;
    kernels[NARROW[dtype]](scratch, scratch + COLUMNS, elements);
    this.scatterFrom(scratch, 0);
  }

  /** Copies the pieces of the first column behind each other to the beginning of the scratch; returns their address. */
  gatherAll(): number {
    const { scratch } = this.#memory;
    this.#gatherTo(scratch, 0);
    return scratch;
  }

  #gatherTo(to: number, column: number): void {
    const { scratch, kernels } = this.#memory;
    kernels.gatherPieces(to, scratch + TABLE, column, this.#pieces);
  }

  /** Copies a column that was gathered back to the pieces. */
  scatter(column: number): void {
    this.scatterFrom(this.#memory.scratch + COLUMNS + column * PIECES_BYTES_MAX, column);
  }

  /** Copies what lies behind each other at an address to the pieces of a column. */
  scatterFrom(from: number, column: number): void {
    const { scratch, kernels } = this.#memory;
    kernels.scatterPieces(scratch + TABLE, column, from, this.#pieces);
  }

  /** Sets the pieces of a column to 0. */
  zero(column: number): void {
    const { scratch, kernels } = this.#memory;
    kernels.clearPieces(scratch + TABLE, column, this.#pieces);
  }
}

/** Returns how many pieces of elements of a type fit beside each other, if each has so many elements. */
export function fitsPiece(dtype: Dtype, elements: number): boolean {
  return elements * DTYPES[dtype].bytes <= PIECE_BYTES_MAX;
}
