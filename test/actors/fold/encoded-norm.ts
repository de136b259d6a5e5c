import type { Encoding } from "../../../src/protocol/dtypes.ts";
import { decodeElements, float32Norm } from "../../../src/protocol/encoding/encoding.ts";

/** The L2 norm, in float64, of so many elements in the encoded form of one entry. */
export function encodedNorm(encoding: Encoding, encoded: Uint8Array, elements: number): number {
  const values = new Float32Array(elements);
  decodeElements(encoding, encoded, values);
  return float32Norm(values);
}
