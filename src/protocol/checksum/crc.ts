import { crc32 } from "node:zlib";
import { forgetSurvey, LONG_BYTES, longChecksum } from "./long-checksum.ts";

// A CRC is the remainder of the message, read as a polynomial over GF(2), by the polynomial below.
// Bits are reflected as in zlib: the highest power of x has the lowest bit.

const POLYNOMIAL = 0xedb88320;
/** The polynomial 1. */
const ONE = 0x80000000;
/** The polynomial x. */
const X = 0x40000000;

/** CRC-32 (IEEE) of bytes; `previous` continues an earlier checksum. */
export function checksum(bytes: Uint8Array, previous = 0): number {
  if (bytes.length < LONG_BYTES) {
    forgetSurvey();
    return crc32(bytes, previous);
  }
  return longChecksum(bytes, previous);
}

/**
 * The checksum of two concatenated byte strings, computed from their checksums and the length of the
 * second. Takes about a microsecond, whatever the length.
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

/** The remainder of a product: the sum of `b` times each power of x in `a`. */
function product(a: number, b: number): number {
  let sum = 0;
  let shifted = b;
  for (let bit = ONE; bit !== 0; bit >>>= 1) {
    if ((a & bit) !== 0) sum ^= shifted;
    // Multiplies by x: the highest power is shifted out and replaced by its remainder.
    shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ POLYNOMIAL;
  }
  return sum >>> 0;
}
