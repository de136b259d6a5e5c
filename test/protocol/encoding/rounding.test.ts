// Proves that all 65,536 patterns of either encoding are read as the format defines them, and that
// float32 is rounded to the nearest of them, ties to even: compared with a reference that searches
// for the nearest, at every point between two neighbours and next to it, at the ends of the range,
// and for any bits at all.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { HalfEncoding } from "../../../src/protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { ascendingSizes, FORMATS, numberOf, patternsOf } from "./rounding-reference.ts";

const ALL: readonly HalfEncoding[] = ["bfloat16", "float16"];
const PATTERNS = Uint16Array.from({ length: 65_536 }, (_, pattern) => pattern);

function encode(encoding: HalfEncoding, values: Float32Array): Uint16Array {
  const patterns = new Uint16Array(values.length);
  encodeElements(encoding, values, new Uint8Array(patterns.buffer));
  return patterns;
}

function decode(encoding: HalfEncoding, patterns: Uint16Array): Float32Array {
  const values = new Float32Array(patterns.length);
  decodeElements(encoding, new Uint8Array(patterns.buffer), values);
  return values;
}

function ofBits(...bits: number[]): Float32Array {
  return new Float32Array(Uint32Array.from(bits).buffer);
}

/** The float32 before and after each of `values`, which are neither negative nor 0. */
function neighbours(values: Float32Array): Float32Array {
  const bits = new Uint32Array(values.buffer);
  return ofBits(...Array.from(bits, (word) => word - 1), ...Array.from(bits, (word) => word + 1));
}

function expectNearest(encoding: HalfEncoding, values: Float32Array): void {
  const actual = encode(encoding, values);
  const expected = patternsOf(encoding, values);
  const wrong = expected.findIndex((pattern, i) => pattern !== actual[i]);
  expect([wrong, values[wrong], actual[wrong], expected[wrong]]).toEqual([-1, ...Array(3)]);
}

describe.each(ALL)("%s", (encoding) => {
  const { fractionBits, infinity, nan } = FORMATS[encoding];
  const isNan = (pattern: number): boolean => (pattern & 0x7fff) > infinity;

  test("every pattern is read exactly, signs of zeros included", () => {
    const values = decode(encoding, PATTERNS);
    const wrong = PATTERNS.filter((p) => !Object.is(values[p], numberOf(encoding, p)));
    expect([...wrong]).toEqual([]);
  });

  test("a NaN keeps its sign and fraction when it is read", () => {
    const patterns = PATTERNS.filter(isNan);
    expect(patterns).toHaveLength(2 * (2 ** fractionBits - 1));
    const expected = Uint32Array.from(patterns, (pattern) => {
      const fraction = pattern & (2 ** fractionBits - 1);
      return ((pattern & 0x8000) << 16) | 0x7f800000 | (fraction << (23 - fractionBits));
    });
    expect(new Uint32Array(decode(encoding, patterns).buffer)).toEqual(expected);
  });

  test("every pattern comes back from the float32 it is read as, a NaN as the canonical one", () => {
    const expected = PATTERNS.map((pattern) => (isNan(pattern) ? nan : pattern));
    expect(encode(encoding, decode(encoding, PATTERNS))).toEqual(expected);
  });

  test("between any two neighbours the middle goes to the even one, all else to the nearer", () => {
    const sizes = ascendingSizes(encoding);
    const middles = Float32Array.from(sizes.slice(1), (size, i) => (size + (sizes[i] ?? 0)) / 2);
    const even = Uint16Array.from(middles, (_, i) => i + (i % 2));
    expect(encode(encoding, middles)).toEqual(even);
    expect(
      encode(
        encoding,
        middles.map((middle) => -middle),
      ),
    ).toEqual(even.map((pattern) => pattern | 0x8000));
    const nearer = neighbours(middles);
    expectNearest(encoding, nearer);
    expectNearest(
      encoding,
      nearer.map((value) => -value),
    );
  });

  test("any bits", () => {
    const bits = fc.uint32Array({ maxLength: 40 });
    fc.assert(
      fc.property(bits, (words) => expectNearest(encoding, ofBits(...words))),
      { numRuns: 500 },
    );
  });

  test("any numbers of a size that gradients have", () => {
    const number = fc.float({ min: Math.fround(-1e-3), max: Math.fround(1e-3), noNaN: true });
    fc.assert(
      fc.property(fc.float32Array({ maxLength: 40 }), fc.array(number), (values, small) => {
        expectNearest(encoding, values);
        expectNearest(encoding, Float32Array.from(small));
      }),
      { numRuns: 500 },
    );
  });
});

test.each<[string, number, number, number]>([
  ["0", 0x00000000, 0x0000, 0x0000],
  ["-0", 0x80000000, 0x8000, 0x8000],
  ["1", 0x3f800000, 0x3f80, 0x3c00],
  ["1 + 2^-8, halfway for bfloat16, exact for float16", 0x3f808000, 0x3f80, 0x3c04],
  ["1 + 3 · 2^-8", 0x3f818000, 0x3f82, 0x3c0c],
  ["1 + 2^-11, halfway for float16", 0x3f801000, 0x3f80, 0x3c00],
  ["1 + 3 · 2^-11", 0x3f803000, 0x3f80, 0x3c02],
  ["-2.5", 0xc0200000, 0xc020, 0xc100],
  ["65504, the largest float16", 0x477fe000, 0x4780, 0x7bff],
  ["the float32 before 65520", 0x477fefff, 0x4780, 0x7bff],
  ["65520", 0x477ff000, 0x4780, 0x7c00],
  ["-65520", 0xc77ff000, 0xc780, 0xfc00],
  ["2^-14, the least float16 that is not denormal", 0x38800000, 0x3880, 0x0400],
  ["the float32 before it", 0x387fffff, 0x3880, 0x0400],
  ["2^-24, the least float16", 0x33800000, 0x3380, 0x0001],
  ["2^-25, halfway to 0", 0x33000000, 0x3300, 0x0000],
  ["the float32 after it", 0x33000001, 0x3300, 0x0001],
  ["the largest bfloat16", 0x7f7f0000, 0x7f7f, 0x7c00],
  ["halfway from there to 2^128", 0x7f7f8000, 0x7f80, 0x7c00],
  ["the float32 before it", 0x7f7f7fff, 0x7f7f, 0x7c00],
  ["the largest float32", 0xff7fffff, 0xff80, 0xfc00],
  ["the least float32", 0x00000001, 0x0000, 0x0000],
  ["2^-133, the least bfloat16", 0x00010000, 0x0001, 0x0000],
  ["half of it", 0x80008000, 0x8000, 0x8000],
  ["infinity", 0x7f800000, 0x7f80, 0x7c00],
  ["-infinity", 0xff800000, 0xff80, 0xfc00],
  ["the canonical NaN", 0x7fc00000, 0x7fc0, 0x7e00],
  ["a signalling NaN", 0x7f800001, 0x7fc0, 0x7e00],
  ["a NaN of all ones", 0xffffffff, 0x7fc0, 0x7e00],
])("known results: %s", (_what, bits, bfloat16, float16) => {
  // Alone and in a vector: both ways through the kernels.
  for (const n of [1, 8]) {
    const values = ofBits(...new Array<number>(n).fill(bits));
    expect(encode("bfloat16", values)).toEqual(new Uint16Array(n).fill(bfloat16));
    expect(encode("float16", values)).toEqual(new Uint16Array(n).fill(float16));
  }
});
