// Proves that elements are encoded and decoded alike wherever they lie: at any alignment, in any
// number, on both sides of the ends of vectors, runs and chunks; that nothing else is written; that
// norms are those of the encoded values; and what is refused.
import { describe, expect, test } from "vitest";
import {
  bytesOf,
  DTYPES,
  type Dtype,
  ENCODINGS,
  encodedBytes,
  type HalfEncoding,
  isEncoding,
} from "../../../src/protocol/dtypes.ts";
import { CHUNK_ELEMENTS } from "../../../src/protocol/encoding/chunk.ts";
import {
  decodeElements,
  encodeElements,
  float32Norm,
  normAsEncoded,
  staysFinite,
} from "../../../src/protocol/encoding/encoding.ts";

import { ENCODING_WASM_BASE64 } from "../../../src/protocol/encoding/wasm.ts";
import { trickyData, words } from "../../actors/kernel/operands.ts";
import { codeOf, refusalOf } from "../refusal.ts";
import { patternsOf } from "./rounding-reference.ts";

const ALL: readonly HalfEncoding[] = ["bfloat16", "float16"];
const RUN = 1024;
const BORDERS = [RUN, CHUNK_ELEMENTS, 2 * CHUNK_ELEMENTS].flatMap((n) => [n - 1, n, n + 1]);
const SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, ...BORDERS];
const GUARD = 0xa5;

function tricky(n: number): Float32Array {
  return trickyData("float32", n, words(n + 1)) as Float32Array;
}

/** Finite numbers of many sizes, which float16 holds too. */
function ordinary(n: number): Float32Array {
  const next = words(n + 1);
  return Float32Array.from({ length: n }, () => (next() / 2 ** 31 - 1) * 2 ** -(next() % 24));
}

/** Room for `bytes` bytes, between guards as long as `offset`. */
function guarded(bytes: number, offset: number): { whole: Uint8Array; part: Uint8Array } {
  const whole = new Uint8Array(bytes + 2 * offset).fill(GUARD);
  return { whole, part: whole.subarray(offset, offset + bytes) };
}

function bytesOfPatterns(patterns: Uint16Array): Uint8Array {
  return new Uint8Array(patterns.buffer);
}

/** The plain norm of the encoded values. */
function plainNorm(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}

function expectClose(norm: number, expected: number): void {
  expect(Math.abs(norm - expected)).toBeLessThanOrEqual(expected * 1e-12);
}

describe.each(ALL)("%s", (encoding) => {
  test.each(SIZES)("%i elements", (n) => {
    const values = tricky(n);
    const expected = bytesOfPatterns(patternsOf(encoding, values));
    const { whole, part } = guarded(expected.length, 13);
    encodeElements(encoding, values, part);
    expect(Buffer.compare(part, expected)).toBe(0);
    expect(whole.subarray(0, 13).every((byte) => byte === GUARD)).toBe(true);
    expect(whole.subarray(13 + expected.length).every((byte) => byte === GUARD)).toBe(true);
  });

  test.each(SIZES)("%i elements read from any alignment give what each gives alone", (n) => {
    const patterns = Uint16Array.from({ length: n }, words(n + 1));
    const all = Float32Array.from({ length: 65_536 });
    decodeElements(encoding, bytesOfPatterns(Uint16Array.from(all, (_, i) => i)), all);
    const expected = Uint32Array.from(
      patterns,
      (pattern) => new Uint32Array(all.buffer)[pattern] ?? 0,
    );
    for (const offset of [0, 1, 2, 3]) {
      const { part } = guarded(2 * n, offset);
      part.set(bytesOfPatterns(patterns));
      const room = new Float32Array(n + 2).fill(-1);
      decodeElements(encoding, part, room.subarray(1, n + 1));
      expect(Buffer.compare(bytesOf(room.slice(1, n + 1)), new Uint8Array(expected.buffer))).toBe(
        0,
      );
      expect([room[0], room[n + 1]]).toEqual([-1, -1]);
    }
  });

  test("elements of an array that starts anywhere, into bytes that start anywhere", () => {
    const values = tricky(40);
    for (let from = 0; from < 9; from++) {
      const some = values.subarray(from, from + 19);
      const { part } = guarded(38, from + 1);
      encodeElements(encoding, some, part);
      expect([...part]).toEqual([...bytesOfPatterns(patternsOf(encoding, some))]);
    }
  });

  test("what rounds to infinity, or is NaN, changes no other element, wherever it lies", () => {
    const n = RUN + 12;
    const usual = ordinary(n);
    for (const at of [0, 5, 8, RUN - 1, RUN, RUN + 7, n - 1]) {
      for (const special of [3.4e38, -65_520, Number.POSITIVE_INFINITY, Number.NaN]) {
        const values = usual.slice();
        values[at] = special;
        const encoded = new Uint8Array(2 * n);
        encodeElements(encoding, values, encoded);
        expect(Buffer.compare(encoded, bytesOfPatterns(patternsOf(encoding, values)))).toBe(0);
      }
    }
  });

  test.each(SIZES)("the norm of %i encoded elements", (n) => {
    const encoded = new Uint8Array(2 * n);
    encodeElements(encoding, ordinary(n), encoded);
    const values = new Float32Array(n);
    decodeElements(encoding, encoded, values);
    expectClose(normAsEncoded(encoding, ordinary(n)), plainNorm(values));
    expectClose(float32Norm(values), plainNorm(values));
  });

  test.each<[string, number[], number]>([
    ["a NaN", [Number.NaN], Number.NaN],
    ["an infinity", [Number.NEGATIVE_INFINITY], Number.POSITIVE_INFINITY],
    ["an infinity and a NaN", [Number.POSITIVE_INFINITY, Number.NaN], Number.NaN],
    ["what rounds to infinity", [-3.4028234663852886e38], Number.POSITIVE_INFINITY],
  ])("the norm with %s, at any place", (_what, special, expected) => {
    for (const at of [0, 3, 9, RUN + 1, CHUNK_ELEMENTS + 5]) {
      const values = ordinary(CHUNK_ELEMENTS + 9);
      values.set(special, at);
      expect(normAsEncoded(encoding, values)).toBe(expected);
    }
  });

  test("whether elements stay finite, at any place", () => {
    const limit = Math.fround(ENCODINGS[encoding].infiniteFrom);
    const under = new Float32Array(1);
    new Int32Array(under.buffer)[0] = (new Int32Array(Float32Array.of(limit).buffer)[0] ?? 0) - 1;
    const [largest = 0] = under;
    for (const n of [...SIZES, CHUNK_ELEMENTS + 9]) {
      const values = new Float32Array(n).fill(largest).fill(-largest, 0, n / 2);
      expect(staysFinite(values, encoding)).toBe(true);
      for (const at of [0, 3, n - 1, CHUNK_ELEMENTS + 5].filter(
        (place) => 0 <= place && place < n,
      )) {
        for (const special of [limit, -limit, Number.NaN, Number.NEGATIVE_INFINITY]) {
          const broken = values.slice();
          broken[at] = special;
          expect(staysFinite(broken, encoding), `${special} at ${at} of ${n}`).toBe(false);
          expect(staysFinite(broken), `${special} at ${at} of ${n}`).toBe(Number.isFinite(special));
          expect(Number.isFinite(normAsEncoded(encoding, broken))).toBe(false);
        }
      }
      expect(Number.isFinite(normAsEncoded(encoding, values))).toBe(true);
    }
  });

  test("refuses another number of bytes than the elements take, and writes none", () => {
    for (const bytes of [0, 5, 7, 8]) {
      const encoded = new Uint8Array(bytes).fill(GUARD);
      const values = Float32Array.of(1, 2, 3);
      expect(codeOf(() => encodeElements(encoding, values, encoded))).toBe("BAD_LENGTH");
      expect(codeOf(() => decodeElements(encoding, encoded, values))).toBe("BAD_LENGTH");
      expect([...values]).toEqual([1, 2, 3]);
      expect(encoded.every((byte) => byte === GUARD)).toBe(true);
    }
    const error = refusalOf(() => encodeElements(encoding, Float32Array.of(1), new Uint8Array(3)));
    expect(error.message).toBe(`1 ${encoding} elements take 2 bytes; received 3`);
  });
});

test("65520 is finite in bfloat16 and infinite in float16, in the norm too", () => {
  const values = new Float32Array(9).fill(65_520, 2, 3);
  expect(normAsEncoded("bfloat16", values)).toBe(65_536);
  expect(normAsEncoded("float16", values)).toBe(Number.POSITIVE_INFINITY);
});

test("the norm of the largest float32 does not overflow", () => {
  const largest = 3.4028234663852886e38;
  expectClose(float32Norm(new Float32Array(100).fill(largest)), largest * 10);
});

describe("the kernels", () => {
  const memory = new WebAssembly.Memory({ initial: 2 });
  const module = new WebAssembly.Module(Buffer.from(ENCODING_WASM_BASE64, "base64"));
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  const widen = exports as Record<string, (to: number, from: number, n: number) => void>;

  test.each([
    ["bfloat16", "widenBf16"],
    ["float16", "widenF16"],
  ] as const)("widen %s that lie at the end of the memory for the result", (encoding, kernel) => {
    for (const n of [1, 7, 8, 9, 31, 1000]) {
      const patterns = bytesOfPatterns(Uint16Array.from({ length: n }, words(n)));
      const room = new Uint8Array(memory.buffer, 65_536, 4 * n);
      room.set(patterns, 2 * n);
      widen[kernel]?.(65_536, 65_536 + 2 * n, n);
      const expected = new Float32Array(n);
      decodeElements(encoding, patterns, expected);
      expect(Buffer.compare(room, bytesOf(expected))).toBe(0);
    }
  });
});

describe("an encoding", () => {
  test("is one of two names", () => {
    expect(["bfloat16", "float16"].every(isEncoding)).toBe(true);
    expect(["", "float32", "toString", undefined, null, 1].some(isEncoding)).toBe(false);
  });

  test("halves the bytes of float32, and no other type has one", () => {
    for (const dtype of Object.keys(DTYPES) as Dtype[]) {
      expect(encodedBytes(dtype, undefined, 3)).toBe(3 * DTYPES[dtype].bytes);
    }
    for (const encoding of ALL) {
      expect(encodedBytes("float32", encoding, 3)).toBe(6);
      const error = refusalOf(() => encodedBytes("float64", encoding, 3));
      expect(error.code).toBe("UNSUPPORTED");
      expect(error.message).toBe(`encoding: ${encoding} is for float32 elements; received float64`);
      expect(codeOf(() => encodedBytes("int32", encoding, 3))).toBe("UNSUPPORTED");
    }
  });
});
