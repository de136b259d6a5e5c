import {
  bytesOf,
  DTYPES,
  type Dtype,
  type Encoding,
  encodedBytes,
  type HalfDtype,
  type HalfEncoding,
  isGrouped,
  isHalf,
} from "../../protocol/dtypes.ts";
import { decodeElements } from "../../protocol/encoding/encoding.ts";
import type { BlockRows, PartIndex } from "../../protocol/messages/parts.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";

// The tensor bytes of a record are an unaligned view outside the shard's memory. They are copied chunk
// by chunk into its scratch, where they are aligned, in the processor's cache, and can be widened.

/** Bytes of encoded elements in one chunk: they fit into the first-level cache. */
export const ENCODED_CHUNK_BYTES = 16 * 1024;

/** Types that elements are computed in. */
export type ComputedDtype = Exclude<Dtype, HalfDtype>;

/** Returns the type in which elements are computed: half floats as float32, any others as they are. */
export function computedAs(dtype: Dtype): ComputedDtype {
  return isHalf(dtype) ? "float32" : dtype;
}

/** Elements in a record. */
export interface Payload {
  /** Element type of the block. In the scratch the elements are of the type that {@link computedAs} returns. */
  readonly dtype: Dtype;
  /** Encoding of the bytes; absent if the elements have the block's element type there. */
  readonly encoding?: HalfEncoding | undefined;
  readonly bytes: Uint8Array;
  /** What the record has in place of the bytes, if they were decoded from a grouped encoding. */
  readonly sent?: { readonly encoding: Encoding; readonly bytes: number } | undefined;
}

/** Bytes of decoded elements that are kept for the next record. */
const DECODED_BYTES_MAX = 8 * 1024 * 1024;

/** Memory for the elements of one record that are decoded before they are checked and applied. */
export class DecodedElements {
  #kept: ArrayBuffer | undefined;
  #used = 0;

  /** Begins a record: the elements of the one before are no longer needed. */
  begin(): void {
    this.#used = 0;
  }

  /** Returns room for so many elements, valid until the next record begins. */
  take(elements: number): Float32Array {
    const bytes = elements * DTYPES.float32.bytes;
    if (this.#used + bytes > DECODED_BYTES_MAX) return new Float32Array(elements);
    this.#kept ??= new ArrayBuffer(DECODED_BYTES_MAX);
    const room = new Float32Array(this.#kept, this.#used, elements);
    this.#used += bytes;
    return room;
  }
}

/** The decoded elements of the record that this thread folds. */
export const decodedElements: DecodedElements = new DecodedElements();

/**
 * Returns the elements of an update of one block as they are folded: decoded if their encoding is grouped, into room of
 * `memory` or, without it, into new memory.
 * @throws BAD_VALUE for groups that no client writes.
 */
export function payloadOf(
  { dtype, encoding }: { readonly dtype: Dtype; readonly encoding?: Encoding | undefined },
  bytes: Uint8Array,
  elements: number,
  memory?: DecodedElements,
): Payload {
  if (!isGrouped(encoding)) return { dtype, encoding, bytes };
  const floats = memory?.take(elements) ?? new Float32Array(elements);
  decodeElements(encoding, bytes, floats);
  return { dtype, bytes: bytesOf(floats), sent: { encoding, bytes: bytes.length } };
}

/** The kernels that round float32 to elements of each form. */
export const NARROW = { bfloat16: "narrowBf16", float16: "narrowF16" } as const satisfies Record<
  HalfEncoding,
  keyof Kernels
>;

/** The kernels that decode elements of each form to float32. */
export const WIDEN = { bfloat16: "widenBf16", float16: "widenF16" } as const satisfies Record<
  HalfEncoding,
  keyof Kernels
>;

/**
 * Copies the elements of a payload chunk by chunk, in order, to the start of the scratch and calls
 * `visit` with the number of elements of each chunk; it may overwrite the scratch.
 * `chunkBytes`: size of a chunk in the scratch, a multiple of 8; by default the whole scratch.
 */
export function eachChunk(
  memory: ShardMemory,
  payload: Payload,
  visit: (n: number) => void,
  chunkBytes: number = memory.scratchBytes,
): void {
  const { dtype, encoding, bytes } = payload;
  const form = encoding ?? (isHalf(dtype) ? dtype : undefined);
  const elementBytes = DTYPES[computedAs(dtype)].bytes;
  const wireBytes = wireBytesOf(payload);
  everyChunk(bytes, (chunkBytes / elementBytes) * wireBytes, (chunk) => {
    const n = chunk.length / wireBytes;
    if (form === undefined) {
      memory.stage(chunk);
    } else {
      // Encoded and widened elements end at the same address, so they can be widened in place.
      const encoded = memory.scratch + n * (elementBytes - wireBytes);
      memory.bytes(encoded, chunk.length).set(chunk);
      memory.kernels[WIDEN[form]](memory.scratch, encoded, n);
    }
    visit(n);
    return true;
  });
}

/**
 * Whether `test` is true for every chunk. It gets the address and number of the chunk's elements, still encoded, and
 * must not change them. Stops at the first false. A payload that fits into the scratch is one chunk and stays there,
 * so that {@link eachChunk} does not copy it again.
 */
export function everyEncodedChunk(
  memory: ShardMemory,
  payload: Payload,
  test: (pointer: number, n: number) => boolean,
): boolean {
  const { encoding, bytes } = payload;
  const staysWhole = encoding === undefined && bytes.length <= memory.scratchBytes;
  return everyChunk(bytes, staysWhole ? memory.scratchBytes : ENCODED_CHUNK_BYTES, (chunk) =>
    test(memory.stage(chunk), chunk.length / wireBytesOf(payload)),
  );
}

/** Returns the bytes of one element in the payload. */
function wireBytesOf({ dtype, encoding }: Payload): number {
  return encodedBytes(dtype, encoding, 1);
}

/**
 * Calls `test` for each chunk until it returns false. A single chunk is passed on as the same object, which {@link
 * ShardMemory.stage} recognizes.
 */
function everyChunk(
  bytes: Uint8Array,
  chunkBytes: number,
  test: (chunk: Uint8Array) => boolean,
): boolean {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const chunk = bytes.length <= chunkBytes ? bytes : bytes.subarray(at, at + chunkBytes);
    if (!test(chunk)) return false;
  }
  return true;
}

const FIRST = Uint32Array.of(0);
const ONE = Uint32Array.of(1);

/**
 * Walks over the elements of a part of a block, in the order of its tensor bytes, as contiguous ranges: {@link next}
 * moves to the next range, given by {@link start} and {@link count}.
 */
export class ElementRanges {
  /** First element of the current range, counted within the block. */
  start = 0;
  /** Elements of the current range. */
  count = 0;
  readonly #origins: Uint32Array;
  readonly #originElements: number;
  readonly #starts: Uint32Array;
  readonly #lengths: Uint32Array;
  readonly #runElements: number;
  #origin = 0;
  #run = -1;
  #at = 0;
  #left = 0;

  private constructor(
    origins: { readonly numbers: Uint32Array; readonly elements: number },
    runs: {
      readonly starts: Uint32Array;
      readonly lengths: Uint32Array;
      readonly elements: number;
    },
  ) {
    this.#origins = origins.numbers;
    this.#originElements = origins.elements;
    this.#starts = runs.starts;
    this.#lengths = runs.lengths;
    this.#runElements = runs.elements;
  }

  /** Begins before the first of all elements of a block, or of those of a part of it. */
  static of({ rows, rowElements }: BlockRows, part: PartIndex | undefined): ElementRanges {
    const start = { numbers: FIRST, elements: 0 };
    if (part === undefined) {
      return new ElementRanges(start, {
        starts: FIRST,
        lengths: ONE,
        elements: rows * rowElements,
      });
    }
    if (part.inner === undefined) {
      return new ElementRanges(start, { ...runsOf(part.rows), elements: rowElements });
    }
    const origins = { numbers: part.rows, elements: rowElements };
    return new ElementRanges(origins, { ...runsOf(part.inner), elements: 1 });
  }

  /**
   * Moves to the next range of at most `limit` elements; false at the end. A longer range is split.
   */
  next(limit: number): boolean {
    if (this.#left === 0 && !this.#nextRun()) return false;
    this.start = this.#at;
    this.count = Math.min(this.#left, limit);
    this.#at += this.count;
    this.#left -= this.count;
    return true;
  }

  #nextRun(): boolean {
    this.#run += 1;
    if (this.#run === this.#starts.length) {
      this.#run = 0;
      this.#origin += 1;
    }
    if (this.#origin >= this.#origins.length) return false;
    const origin = (this.#origins[this.#origin] as number) * this.#originElements;
    this.#at = origin + (this.#starts[this.#run] as number) * this.#runElements;
    this.#left = (this.#lengths[this.#run] as number) * this.#runElements;
    return true;
  }
}

/** Finds the runs of consecutive numbers in an ascending, non-empty list. */
function runsOf(numbers: Uint32Array): { starts: Uint32Array; lengths: Uint32Array } {
  const starts = new Uint32Array(numbers.length);
  const lengths = new Uint32Array(numbers.length);
  let runs = 0;
  let expected = -1;
  for (const number of numbers) {
    if (number !== expected) {
      starts[runs] = number;
      runs += 1;
    }
    lengths[runs - 1] = (lengths[runs - 1] as number) + 1;
    expected = number + 1;
  }
  return { starts: starts.subarray(0, runs), lengths: lengths.subarray(0, runs) };
}
