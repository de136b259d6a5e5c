import { type Encoding, encodedBytes, infiniteFrom, isGrouped } from "../dtypes.ts";
import { PserverError } from "../errors.ts";
import { CHUNK_ELEMENTS, encodingChunk } from "./chunk.ts";
import { decodeGroups, encodeGroups, splitGroups, squaresAsGroups } from "./grouped.ts";

/** Bytes of an element in bfloat16 and float16. */
const HALF_BYTES = 2;

/** Up to this many elements a loop is faster than copying them for the kernel. */
const LOOP_ELEMENTS_MAX = 64;

/**
 * Encodes the elements of one entry, each rounded to nearest, ties to even. In bfloat16 and float16 elements out of
 * range become infinities, and NaN becomes the canonical quiet NaN, 0x7fc0 or 0x7e00; for the others see
 * `encodeGroups`. The two ranges must not overlap.
 * @param to at any alignment.
 * @throws BAD_LENGTH if `to` is not as long as the encoded elements are.
 */
export function encodeElements(encoding: Encoding, from: Float32Array, to: Uint8Array): void {
  checkBytes(encoding, to, from.length);
  if (isGrouped(encoding)) {
    encodeGroups(encoding, [from.length], from, splitGroups(from.length, to));
    return;
  }
  const chunk = encodingChunk();
  eachChunk(from.length, (start, n) => {
    chunk.floats.set(from.subarray(start, start + n));
    chunk.narrow(encoding, n);
    to.set(chunk.codes.subarray(0, n * HALF_BYTES), start * HALF_BYTES);
  });
}

/**
 * Computes the L2 norm, in float64, of the elements of one entry as encoded; NaN or infinite exactly if an encoded
 * element is.
 */
export function normAsEncoded(encoding: Encoding, elements: Float32Array): number {
  if (isGrouped(encoding)) return Math.sqrt(squaresAsGroups(encoding, [elements.length], elements));
  const chunk = encodingChunk();
  let sum = 0;
  eachChunk(elements.length, (start, n) => {
    chunk.floats.set(elements.subarray(start, start + n));
    sum += chunk.narrowSquares(encoding, n);
  });
  return Math.sqrt(sum);
}

/**
 * Decodes the elements of one entry to float32, exactly; in bfloat16 and float16 a NaN keeps its sign and fraction. The
 * two ranges must not overlap.
 * @param from at any alignment.
 * @throws BAD_LENGTH if `from` is not as long as the encoded elements are; BAD_VALUE as `decodeGroups` does.
 */
export function decodeElements(encoding: Encoding, from: Uint8Array, to: Float32Array): void {
  checkBytes(encoding, from, to.length);
  if (isGrouped(encoding)) {
    decodeGroups(encoding, [to.length], splitGroups(to.length, from), to);
    return;
  }
  const chunk = encodingChunk();
  eachChunk(to.length, (start, n) => {
    chunk.codes.set(from.subarray(start * HALF_BYTES, (start + n) * HALF_BYTES));
    chunk.widen(encoding, n);
    to.set(chunk.floats.subarray(0, n), start);
  });
}

/** Computes the L2 norm of float32 elements, in float64; NaN or infinite exactly if one of them is. */
export function float32Norm(elements: Float32Array): number {
  const chunk = encodingChunk();
  let sum = 0;
  eachChunk(elements.length, (start, n) => {
    chunk.floats.set(elements.subarray(start, start + n));
    sum += chunk.sumOfSquares(n);
  });
  return Math.sqrt(sum);
}

/**
 * Returns whether all elements are finite, as encoded if there is an `encoding`; of their sums with `errors` if there
 * are some, as many as elements.
 */
export function staysFinite(
  elements: Float32Array,
  encoding?: Encoding,
  errors?: Float32Array,
): boolean {
  const bound = infiniteFrom(encoding);
  if (errors === undefined && elements.length <= LOOP_ELEMENTS_MAX) {
    return elements.every((x) => Math.abs(x) < bound);
  }
  const [boundBits = 0] = new Int32Array(Float32Array.of(bound).buffer);
  const chunk = encodingChunk();
  let largest = 0;
  eachChunk(elements.length, (start, n) => {
    chunk.floats.set(elements.subarray(start, start + n));
    if (errors !== undefined) {
      chunk.errors.set(errors.subarray(start, start + n));
      chunk.correct(n);
    }
    largest = Math.max(largest, chunk.largest(n));
  });
  return largest < boundBits;
}

function eachChunk(elements: number, visit: (start: number, n: number) => void): void {
  for (let start = 0; start < elements; start += CHUNK_ELEMENTS) {
    visit(start, Math.min(CHUNK_ELEMENTS, elements - start));
  }
}

function checkBytes(encoding: Encoding, encoded: Uint8Array, elements: number): void {
  const expected = encodedBytes("float32", encoding, elements);
  if (encoded.length === expected) return;
  throw new PserverError(
    "BAD_LENGTH",
    `${elements} ${encoding} elements take ${expected} bytes; received ${encoded.length}`,
    { expected, received: encoded.length },
  );
}
