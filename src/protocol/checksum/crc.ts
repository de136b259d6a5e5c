import { crc32 } from "node:zlib";
import { LONG_BYTES, longChecksum } from "./long-checksum.ts";

// A CRC is the remainder of the message, read as a polynomial over GF(2), by the polynomial below.
// Bits are reflected as in zlib: the highest power of x has the lowest bit.

const POLYNOMIAL = 0xedb88320;
/** The polynomial 1. */
const ONE = 0x80000000;
/** The polynomial x. */
const X = 0x40000000;

/** CRC-32 (IEEE) of some bytes; `previous` continues an earlier one. */
export function checksum(bytes: Uint8Array, previous = 0): number {
  if (bytes.length < LONG_BYTES) return crc32(bytes, previous);
  return longChecksum(bytes, previous);
}

/**
 * The checksum of two byte strings after each other, of which only their own checksums and the
 * length of the second are known. Takes about a microsecond, whatever the length.
 */
export function joinChecksums(first: number, second: number, secondBytes: number): number {
  // Appending a byte multiplies what was before by x^8.
  return (product(powerOfX(8 * secondBytes), first) ^ second) >>> 0;
}

/** x to a power, as a remainder. */
function powerOfX(power: number): number {
  let result = ONE;
  let square = X;
  for (let rest = power; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result = product(square, result);
    square = product(square, square);
  }
  return result;
}

/** The remainder of a product: adds up `b` times each power of x that is in `a`. */
function product(a: number, b: number): number {
  let sum = 0;
  let shifted = b;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) sum ^= shifted;
    // Times x: the highest power moves out and is replaced by its remainder.
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ POLYNOMIAL;
  }
  return sum >>> 0;
}
