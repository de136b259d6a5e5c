import { ENCODINGS, type Encoding } from "../../../src/protocol/dtypes.ts";
import { decodeElements, float32Norm } from "../../../src/protocol/encoding/encoding.ts";

/** The L2 norm of encoded elements, in float64. */
export function encodedNorm(encoding: Encoding, encoded: Uint8Array): number {
  const values = new Float32Array(encoded.length / ENCODINGS[encoding].bytes);
  decodeElements(encoding, encoded, values);
  return float32Norm(values);
}
