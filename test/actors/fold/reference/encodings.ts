import type { Encoding } from "../../../../src/protocol/dtypes.ts";

/** The number that two bytes of an encoding stand for, by the definition of its fields. */
export function referenceDecode(encoding: Encoding, bits: number): number {
  const [exponentBits, fractionBits] = encoding === "bfloat16" ? [8, 7] : [5, 10];
  const sign = bits >>> 15 === 0 ? 1 : -1;
  const fraction = (bits & (2 ** fractionBits - 1)) / 2 ** fractionBits;
  const exponent = (bits >>> fractionBits) & (2 ** exponentBits - 1);
  const bias = 2 ** (exponentBits - 1) - 1;
  if (exponent === 2 ** exponentBits - 1) {
    return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  }
  return exponent === 0
    ? sign * fraction * 2 ** (1 - bias)
    : sign * (1 + fraction) * 2 ** (exponent - bias);
}

/** All elements of an encoded tensor, little-endian. */
export function referenceDecodeAll(encoding: Encoding, bytes: Uint8Array): Float64Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float64Array.from({ length: bytes.length / 2 }, (_, i) =>
    referenceDecode(encoding, view.getUint16(2 * i, true)),
  );
}
