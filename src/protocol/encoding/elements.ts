import { PserverError } from "../errors.ts";
import { CHUNK_ELEMENTS, encodingChunk } from "./chunk.ts";
import { ENCODINGS, type Encoding, infiniteFrom } from "./encodings.ts";

/** Up to so many elements a loop is faster than a copy for the kernel. */
const LOOP_ELEMENTS_MAX = 64;

/**
 * Encodes elements, each rounded to nearest, ties to even. Elements out of range become infinities; NaN
 * becomes the canonical quiet NaN, 0x7fc0 or 0x7e00. The two ranges must not overlap.
 * @param to little-endian, two bytes an element, at any alignment.
 * @throws BAD_LENGTH if `to` is not as long as the encoded elements are.
 */
export function encodeElements(encoding: Encoding, from: Float32Array, to: Uint8Array): void {
  checkBytes(encoding, to, from.length);
  const { bytes } = ENCODINGS[encoding];
  const chunk = encodingChunk();
  eachChunk(from.length, (start, n) => {
    chunk.floats.set(from.subarray(start, start + n));
    chunk.narrow(encoding, n);
    to.set(chunk.halves.subarray(0, n * bytes), start * bytes);
  });
}

/**
 * The L2 norm, in float64, that elements have once they are encoded; NaN or infinite exactly if an encoded
 * element is.
 */
export function normAsEncoded(encoding: Encoding, elements: Float32Array): number {
  const chunk = encodingChunk();
  let sum = 0;
  eachChunk(elements.length, (start, n) => {
    chunk.floats.set(elements.subarray(start, start + n));
    sum += chunk.narrowSquares(encoding, n);
  });
  return Math.sqrt(sum);
}

/**
 * The float32 elements that were encoded: exact, and a NaN keeps its sign and fraction. The two
 * ranges must not overlap.
 * @param from little-endian, two bytes an element, at any alignment.
 * @throws BAD_LENGTH if `from` is not as long as the encoded elements are.
 */
export function decodeElements(encoding: Encoding, from: Uint8Array, to: Float32Array): void {
  checkBytes(encoding, from, to.length);
  const { bytes } = ENCODINGS[encoding];
  const chunk = encodingChunk();
  eachChunk(to.length, (start, n) => {
    chunk.halves.set(from.subarray(start * bytes, (start + n) * bytes));
    chunk.widen(encoding, n);
    to.set(chunk.floats.subarray(0, n), start);
  });
}

/** The L2 norm of float32 elements as they are, in float64; NaN or infinite exactly if one is. */
export function float32Norm(elements: Float32Array): number {
  const chunk = encodingChunk();
  let sum = 0;
  eachChunk(elements.length, (start, n) => {
    chunk.floats.set(elements.subarray(start, start + n));
    sum += chunk.sumOfSquares(n);
  });
  return Math.sqrt(sum);
}

/** Whether all elements are finite once encoded; without an `encoding`, as they are. */
export function staysFinite(elements: Float32Array, encoding?: Encoding): boolean {
  const bound = infiniteFrom(encoding);
  if (elements.length <= LOOP_ELEMENTS_MAX) return elements.every((x) => Math.abs(x) < bound);
  const [boundBits = 0] = new Int32Array(Float32Array.of(bound).buffer);
  const chunk = encodingChunk();
  let largest = 0;
  eachChunk(elements.length, (start, n) => {
    chunk.floats.set(elements.subarray(start, start + n));
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
  const expected = elements * ENCODINGS[encoding].bytes;
  if (encoded.length === expected) return;
  throw new PserverError(
    "BAD_LENGTH",
    `${elements} ${encoding} elements take ${expected} bytes; received ${encoded.length}`,
    { expected, received: encoded.length },
  );
}
