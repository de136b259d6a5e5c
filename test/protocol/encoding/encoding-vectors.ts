import { bytesOf, ENCODINGS, type Encoding } from "../../../src/protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { toHex, toJson } from "../vector-json.ts";

/** Bits of float32 elements: ordinary, halfway between neighbours, next to that, at the ends, NaN. */
const ENCODED = [
  0x00000000, 0x80000000, 0x3f800000, 0xc0200000, 0x3dcccccd, 0x40490fdb, 0x3f808000, 0x3f818000,
  0x3f808001, 0x3f807fff, 0x3f801000, 0x3f803000, 0x3f801001, 0x3f800fff, 0xbf803000, 0x477fe000,
  0x477fefff, 0x477ff000, 0xc77ff000, 0x47800000, 0x38800000, 0x387fffff, 0x387fd000, 0x387fc000,
  0x33800000, 0x33c00000, 0x34200000, 0x33000000, 0x33000001, 0x32ffffff, 0xb3000001, 0x7f7f0000,
  0x7f7f7fff, 0x7f7f8000, 0x7f7fffff, 0xff7fffff, 0x00800000, 0x007fffff, 0x00010000, 0x00018000,
  0x00008000, 0x00008001, 0x00000001, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001,
  0xffffffff,
];

/** Patterns, the same for both encodings. */
const DECODED = [
  0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3c00, 0x3f80, 0xc100, 0x7bff, 0x7c00, 0xfc00, 0x7c01,
  0x7e00, 0xfe01, 0x7f7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffff,
];

function encoded(encoding: Encoding, element: Float32Array): string {
  const bytes = new Uint8Array(ENCODINGS[encoding].bytes);
  encodeElements(encoding, element, bytes);
  return toHex(bytes);
}

function decoded(encoding: Encoding, bytes: Uint8Array): string {
  const element = new Float32Array(1);
  decodeElements(encoding, bytes, element);
  return toHex(bytesOf(element));
}

/** float32 elements as they are encoded, and encoded elements as they are read. */
export function elementEncodingCases(): Readonly<Record<string, readonly object[]>> {
  return {
    encoded: ENCODED.map((bits) => {
      const element = new Float32Array(Uint32Array.of(bits).buffer);
      return {
        value: toJson(element[0]),
        float32: toHex(bytesOf(element)),
        bfloat16: encoded("bfloat16", element),
        float16: encoded("float16", element),
      };
    }),
    decoded: DECODED.map((pattern) => {
      const bytes = new Uint8Array(Uint16Array.of(pattern).buffer);
      return {
        hex: toHex(bytes),
        bfloat16: decoded("bfloat16", bytes),
        float16: decoded("float16", bytes),
      };
    }),
  };
}
