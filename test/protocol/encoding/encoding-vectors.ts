import {
  bytesOf,
  type Encoding,
  encodedBytes,
  type GroupedEncoding,
} from "../../../src/protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { codeOf } from "../refusal.ts";
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

/** Encodes the elements of one entry. */
function encoded(encoding: Encoding, element: Float32Array): string {
  const bytes = new Uint8Array(encodedBytes("float32", encoding, element.length));
  encodeElements(encoding, element, bytes);
  return toHex(bytes);
}

function decoded(encoding: Encoding, bytes: Uint8Array): string {
  const element = new Float32Array(1);
  decodeElements(encoding, bytes, element);
  return toHex(bytesOf(element));
}

const LARGEST = 2 ** 128 - 2 ** 104;

/** Elements of one entry, which are encoded in groups. */
const GROUPED: readonly (readonly [what: string, elements: Float32Array])[] = [
  ["zeros, one with a sign", Float32Array.of(0, -0, 0)],
  ["one element", Float32Array.of(-2.5)],
  ["halfway between codes of int8", Float32Array.of(127, 0.5, 1.5, -2.5, 126.5, -0.5, 3.4999998)],
  [
    "at the thresholds of e3m0 and just below them",
    Float32Array.of(1, ...[7, 6, 5, 4, 3, 2, 1].flatMap((level) => threshold(level))),
  ],
  ["the largest numbers", Float32Array.of(LARGEST, -LARGEST, LARGEST / 127, 1)],
  ["denormal numbers", Float32Array.of(2 ** -149, -(2 ** -148), 190 * 2 ** -149)],
  ["a denormal scale", Float32Array.from([1, -3, 64, 90, -127, 100], (x) => x * 2 ** -145)],
  ["what is too small for a scale of int8", Float32Array.of(60 * 2 ** -149, 2 ** -149)],
  ["an infinity", Float32Array.of(1, Number.NEGATIVE_INFINITY, 2)],
  ["a NaN beside an infinity", Float32Array.of(1, Number.NaN, Number.POSITIVE_INFINITY)],
  ["a whole group", wave(256)],
  ["a group and one element", wave(257)],
  [
    "three groups, of which the second is not finite",
    wave(600).map((x, i) => (i === 300 ? Number.NaN : x)),
  ],
];

/** A level's least part of the scale, and the float32 below it. */
function threshold(level: number): number[] {
  const least = level === 1 ? 2 ** -7 : 1.5 * 2 ** (level - 8);
  return [least, -least * (1 - 2 ** -24)];
}

/** Elements of different sizes, of which each float32 is exact in every language. */
function wave(elements: number): Float32Array {
  return Float32Array.from({ length: elements }, (_, i) => ((i * 37) % 101) - 50 + i / 1024);
}

/** Bytes of an entry, and the number of its elements. */
const GROUPED_BYTES: readonly (readonly [GroupedEncoding, elements: number, hex: string])[] = [
  ["int8", 3, "0000003f81007f"],
  ["int8", 2, "01000000027f"],
  ["int8", 1, "0000807f00"],
  ["int8", 2, "0100c07f0001"],
  ["int8", 2, "ffff7f7f7f81"],
  ["int8", 1, "0000003f80"],
  ["int8", 1, "0000008001"],
  ["int8", 1, "000080bf01"],
  ["int8", 1, "0000c0ff00"],
  ["e3m0", 16, "0000803f1032547690badcfe"],
  ["e3m0", 3, "030000007f06"],
  ["e3m0", 2, "0000807f00"],
  ["e3m0", 1, "0000c07f00"],
  ["e3m0", 2, "0000803f81"],
  ["e3m0", 2, "0000803f18"],
  ["e3m0", 1, "0000803f10"],
  ["e3m0", 2, "0000008011"],
];

/** Entries that are encoded in groups, and such entries read; `code` where they are refused. */
export function groupCases(): Readonly<Record<string, readonly object[]>> {
  return {
    groups: GROUPED.map(([what, elements]) => ({
      what,
      float32: toHex(bytesOf(elements)),
      int8: encoded("int8", elements),
      e3m0: encoded("e3m0", elements),
    })),
    groupsRead: GROUPED_BYTES.map(([encoding, elements, hex]) => {
      const floats = new Float32Array(elements);
      const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
      const code = codeOf(() => decodeElements(encoding, bytes, floats));
      const read = code === "" ? { float32: toHex(bytesOf(floats)) } : { code };
      return { encoding, elements, hex, ...read };
    }),
  };
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
