import { GROUP_ELEMENTS, type GroupedEncoding, type HalfEncoding } from "../dtypes.ts";
import { ENCODING_WASM_BASE64 } from "./wasm.ts";

/** Converts `n` elements at `from` into as many at `to`; see assembly/index.ts. */
type ConvertKernel = (to: number, from: number, n: number) => void;

/**
 * Converts as a {@link ConvertKernel} does. Returns the sum of the squares of the encoded elements; it is not
 * finite if an element is not.
 */
type SummingKernel = (to: number, from: number, n: number) => number;

/** Encodes the elements of `n` entries, whose lengths are at `counts`. */
type NarrowGroups = (
  scales: number,
  codes: number,
  from: number,
  counts: number,
  n: number,
) => void;

/** Decodes what a {@link NarrowGroups} writes; returns what is wrong with it, as bits. */
type WidenGroups = (to: number, scales: number, codes: number, counts: number, n: number) => number;

/** Exports of assembly/index.ts. */
interface EncodingKernels {
  readonly widenBf16: ConvertKernel;
  readonly widenF16: ConvertKernel;
  readonly narrowBf16: ConvertKernel;
  readonly narrowF16: ConvertKernel;
  readonly narrowSquaresBf16: SummingKernel;
  readonly narrowSquaresF16: SummingKernel;
  readonly narrowInt8: NarrowGroups;
  readonly widenInt8: WidenGroups;
  readonly narrowE3m0: NarrowGroups;
  readonly widenE3m0: WidenGroups;
  readonly addF32: ConvertKernel;
  readonly errorsF32: (
    errors: number,
    values: number,
    sent: number,
    scales: number,
    counts: number,
    n: number,
  ) => void;
  readonly squaresF32: (from: number, n: number) => number;
  readonly largestF32: (from: number, n: number) => number;
}

/** The functions of each encoding. */
const KERNELS = {
  bfloat16: { narrow: "narrowBf16", narrowSquares: "narrowSquaresBf16", widen: "widenBf16" },
  float16: { narrow: "narrowF16", narrowSquares: "narrowSquaresF16", widen: "widenF16" },
  int8: { narrow: "narrowInt8", widen: "widenInt8" },
  e3m0: { narrow: "narrowE3m0", widen: "widenE3m0" },
} as const;

/** What is wrong with received groups: a scale with a sign. The other bit, 2, is for a code that is never written. */
export const BAD_SCALE = 1;

/** Elements converted at a time: whole groups, and few enough to stay in a near cache. */
export const CHUNK_ELEMENTS: number = 64 * GROUP_ELEMENTS;

const PAGE_BYTES = 65_536;
const ARRAY_BYTES = CHUNK_ELEMENTS * 4;
// The module's constants have the first page.
const FLOATS = PAGE_BYTES;
const CODES = FLOATS + ARRAY_BYTES;
const SCALES = CODES + ARRAY_BYTES;
const COUNTS = SCALES + ARRAY_BYTES;
const SENT = COUNTS + ARRAY_BYTES;
const ERRORS = SENT + ARRAY_BYTES;
const END = ERRORS + ARRAY_BYTES;

/** Memory of the kernels for a chunk of elements, and the operations on it. */
export class EncodingChunk {
  /** The float32 elements of the chunk, at most {@link CHUNK_ELEMENTS}. */
  readonly floats: Float32Array;
  /** The encoded elements of the chunk; in a grouped encoding without scales. */
  readonly codes: Uint8Array;
  /** The scales of the chunk's groups. */
  readonly scales: Uint8Array;
  /** The lengths of the entries whose elements the chunk has, in a grouped encoding. */
  readonly counts: Uint32Array;
  /** For each of the chunk's elements what rounding has left out before, see {@link correct}. */
  readonly errors: Float32Array;
  readonly #kernels: EncodingKernels;

  constructor() {
    const pages = Math.ceil(END / PAGE_BYTES);
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
    const module = new WebAssembly.Module(Buffer.from(ENCODING_WASM_BASE64, "base64"));
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    this.#kernels = exports as unknown as EncodingKernels;
    this.floats = new Float32Array(memory.buffer, FLOATS, CHUNK_ELEMENTS);
    this.codes = new Uint8Array(memory.buffer, CODES, CHUNK_ELEMENTS * 2);
    this.scales = new Uint8Array(memory.buffer, SCALES, ARRAY_BYTES);
    this.counts = new Uint32Array(memory.buffer, COUNTS, CHUNK_ELEMENTS);
    this.errors = new Float32Array(memory.buffer, ERRORS, CHUNK_ELEMENTS);
  }

  /** Encodes the first `n` floats into the first `n` encoded elements. */
  narrow(encoding: HalfEncoding, n: number): void {
    this.#kernels[KERNELS[encoding].narrow](CODES, FLOATS, n);
  }

  /**
   * Encodes as {@link narrow} does, and returns the sum of the squares of what was encoded. Afterwards the
   * first `n` floats are either unchanged or rounded as they were encoded.
   */
  narrowSquares(encoding: HalfEncoding, n: number): number {
    const sum = this.#kernels[KERNELS[encoding].narrowSquares](CODES, FLOATS, n);
    if (Number.isFinite(sum)) return sum;
    // The kernel reports only that an element is not finite, not whether it is NaN.
    this.widen(encoding, n);
    return this.sumOfSquares(n);
  }

  /** Decodes the first `n` encoded elements into the first `n` floats. */
  widen(encoding: HalfEncoding, n: number): void {
    this.#kernels[KERNELS[encoding].widen](FLOATS, CODES, n);
  }

  /** Encodes the floats of the first `entries` entries, whose lengths are in {@link counts}. */
  narrowGroups(encoding: GroupedEncoding, entries: number): void {
    this.#kernels[KERNELS[encoding].narrow](SCALES, CODES, FLOATS, COUNTS, entries);
  }

  /** Decodes the first `entries` entries into floats; returns what is wrong with them, see {@link BAD_SCALE}, or 0. */
  widenGroups(encoding: GroupedEncoding, entries: number): number {
    return this.#kernels[KERNELS[encoding].widen](FLOATS, SCALES, CODES, COUNTS, entries);
  }

  /** Adds the errors to the first `n` floats. */
  correct(n: number): void {
    this.#kernels.addF32(FLOATS, ERRORS, n);
  }

  /** Replaces the errors by what {@link narrowGroups} has left out of the floats; those of groups not finite stay. */
  keepErrors(encoding: GroupedEncoding, entries: number): void {
    this.#kernels[KERNELS[encoding].widen](SENT, SCALES, CODES, COUNTS, entries);
    this.#kernels.errorsF32(ERRORS, FLOATS, SENT, SCALES, COUNTS, entries);
  }

  /**
   * Computes the sum of the squares of the first `n` floats, in float64; NaN or infinite exactly if one of
   * them is.
   */
  sumOfSquares(n: number): number {
    return this.#kernels.squaresF32(FLOATS, n);
  }

  /**
   * Returns the largest of the first `n` floats' bits without their signs; those of a NaN are larger than any
   * number's.
   */
  largest(n: number): number {
    return this.#kernels.largestF32(FLOATS, n);
  }
}

let ofThread: EncodingChunk | undefined;

/** Returns the chunk of this thread, made at its first use. Its contents are undefined between calls. */
export function encodingChunk(): EncodingChunk {
  ofThread ??= new EncodingChunk();
  return ofThread;
}
