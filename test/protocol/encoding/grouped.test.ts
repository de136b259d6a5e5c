// Proves that elements are encoded in groups, each with its scale, as the format says: bit for bit as a reference in
// float64 does, which finds codes by comparing; wherever a group, an entry or a chunk ends; that they are decoded
// exactly; that what rounding leaves out is kept and added; and that groups that no client writes are refused.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bytesOf,
  codeBytes,
  elementsIn,
  encodedBytes,
  type GroupedEncoding,
  groupCount,
} from "../../../src/protocol/dtypes.ts";
import { CHUNK_ELEMENTS } from "../../../src/protocol/encoding/chunk.ts";
import {
  decodeElements,
  encodeElements,
  normAsEncoded,
} from "../../../src/protocol/encoding/encoding.ts";
import {
  decodeGroups,
  encodeGroups,
  encodeWithErrors,
  squaresAsGroups,
} from "../../../src/protocol/encoding/grouped.ts";
import { trickyData, words } from "../../actors/kernel/operands.ts";
import { codeOf, refusalOf } from "../refusal.ts";
import { decodedGroups, encodedGroups } from "./group-reference.ts";

const SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 255, 256, 257, 511, 513, 700];
const LONG = [CHUNK_ELEMENTS - 1, CHUNK_ELEMENTS, CHUNK_ELEMENTS + 1, 2 * CHUNK_ELEMENTS + 257];

function encode(encoding: GroupedEncoding, elements: Float32Array): Uint8Array {
  const bytes = new Uint8Array(encodedBytes("float32", encoding, elements.length));
  encodeElements(encoding, elements, bytes);
  return bytes;
}

function decode(encoding: GroupedEncoding, elements: number, bytes: Uint8Array): Float32Array {
  const floats = new Float32Array(elements);
  decodeElements(encoding, bytes, floats);
  return floats;
}

/** Finite numbers of many sizes. */
function ordinary(n: number): Float32Array {
  const next = words(n + 1);
  return Float32Array.from({ length: n }, () => (next() / 2 ** 31 - 1) * 2 ** -(next() % 9));
}

function expectAsReference(encoding: GroupedEncoding, elements: Float32Array): void {
  const bytes = encode(encoding, elements);
  expect(Buffer.compare(bytes, encodedGroups(encoding, elements))).toBe(0);
  const floats = decode(encoding, elements.length, bytes);
  const expected = decodedGroups(encoding, elements.length, bytes);
  expect(floats).toEqual(expected);
}

describe.each(["int8", "e3m0"] as const)("%s", (encoding) => {
  test.each([...SIZES, ...LONG])("%i ordinary elements are as the reference has them", (n) => {
    expectAsReference(encoding, ordinary(n));
  });

  test.each(SIZES)("%i elements of all kinds are as the reference has them", (n) => {
    expectAsReference(encoding, trickyData("float32", n, words(n)) as Float32Array);
  });

  test("any elements are as the reference has them", () => {
    const element = fc.oneof(
      { weight: 4, arbitrary: fc.float({ noNaN: true, noDefaultInfinity: true }) },
      { weight: 4, arbitrary: fc.integer({ min: -254, max: 254 }).map((x) => x / 2) },
      { weight: 1, arbitrary: fc.float({ min: 2 ** 127 }) },
      { weight: 1, arbitrary: fc.integer({ min: -300, max: 300 }).map((x) => x * 2 ** -149) },
    );
    const lists = fc.array(element, { minLength: 1, maxLength: 40 });
    fc.assert(fc.property(lists, (list) => expectAsReference(encoding, Float32Array.from(list))));
  });

  test("the largest number is read as a number, near itself", () => {
    const largest = 2 ** 128 - 2 ** 104;
    for (const size of [largest, largest * (1 - 2 ** -24), largest * (1 - 2 ** -20)]) {
      const [read = 0] = decode(encoding, 1, encode(encoding, Float32Array.of(size)));
      expect(read / size).toBeCloseTo(1, 5);
    }
  });

  test("what is encoded is at most half a step of its group away", () => {
    const elements = ordinary(2048);
    const read = decode(encoding, 2048, encode(encoding, elements));
    elements.forEach((x, i) => {
      const group = elements.subarray(i - (i % 256), i - (i % 256) + 256);
      const most = Math.max(...group.map(Math.abs));
      // Between two powers of two the middle is a third of the lower one away from it.
      const step = encoding === "int8" ? most / 254 : Math.max(Math.abs(x) / 3, most / 128);
      expect(Math.abs((read[i] as number) - x)).toBeLessThanOrEqual(step * 1.001);
    });
  });

  test("entries begin new groups, and codes of each begin at a byte", () => {
    const counts = [3, 256, 1, 300, CHUNK_ELEMENTS + 700, 5, 16_000, 800, 1];
    const all = ordinary(counts.reduce((sum, count) => sum + count, 0));
    const scales = new Uint8Array(4 * counts.reduce((sum, count) => sum + groupCount(count), 0));
    const codes = new Uint8Array(
      counts.reduce((sum, count) => sum + codeBytes(encoding, count), 0),
    );
    encodeGroups(encoding, counts, all, { scales, codes });
    const parts: { scales: Uint8Array[]; codes: Uint8Array[] } = { scales: [], codes: [] };
    const floats: number[] = [];
    let at = 0;
    for (const count of counts) {
      const alone = encode(encoding, all.subarray(at, at + count));
      parts.scales.push(alone.subarray(0, 4 * groupCount(count)));
      parts.codes.push(alone.subarray(4 * groupCount(count)));
      floats.push(...decode(encoding, count, alone));
      at += count;
    }
    expect(Buffer.compare(scales, Buffer.concat(parts.scales))).toBe(0);
    expect(Buffer.compare(codes, Buffer.concat(parts.codes))).toBe(0);
    const read = new Float32Array(all.length);
    decodeGroups(encoding, counts, { scales, codes }, read);
    expect(Buffer.compare(bytesOf(read), bytesOf(Float32Array.from(floats)))).toBe(0);
    const squares = floats.reduce((sum, x) => sum + x * x, 0);
    expect(squaresAsGroups(encoding, counts, all)).toBeCloseTo(squares, 6);
  });

  test("elements lie at any alignment, and nothing beside them is written", () => {
    for (let offset = 0; offset < 9; offset++) {
      const elements = ordinary(290).subarray(offset);
      const bytes = new Uint8Array(2 * offset + encodedBytes("float32", encoding, elements.length));
      const part = bytes.fill(0xa5).subarray(offset, bytes.length - offset);
      encodeElements(encoding, elements, part);
      expect(Buffer.compare(part, encodedGroups(encoding, elements))).toBe(0);
      const beside = [...bytes.subarray(0, offset), ...bytes.subarray(bytes.length - offset)];
      expect(beside.every((byte) => byte === 0xa5)).toBe(true);
      const room = new Float32Array(elements.length + 2).fill(-1);
      decodeElements(encoding, part, room.subarray(1, elements.length + 1));
      expect([room[0], room.at(-1)]).toEqual([-1, -1]);
    }
  });

  test("a group with a NaN or an infinity has that scale, and others stay as they are", () => {
    for (const [special, bits] of [
      [Number.NaN, 0x7fc00000],
      [Number.NEGATIVE_INFINITY, 0x7f800000],
    ] as const) {
      const elements = ordinary(600);
      const usual = encode(encoding, elements);
      elements[300] = special;
      const bytes = encode(encoding, elements);
      const scale = new DataView(bytes.buffer).getUint32(4, true);
      expect(scale).toBe(bits);
      const read = decode(encoding, 600, bytes);
      expect(new Set(new Uint32Array(read.buffer).subarray(256, 512))).toEqual(new Set([bits]));
      const before = decode(encoding, 600, usual);
      expect(read.subarray(0, 256)).toEqual(before.subarray(0, 256));
      expect(read.subarray(512)).toEqual(before.subarray(512));
      expect(Number.isFinite(normAsEncoded(encoding, elements))).toBe(false);
    }
  });

  test("what is left out is added to the next elements, and in the sum nothing is lost", () => {
    const counts = [3, 300, 17_000];
    const n = 17_303;
    const errors = new Float32Array(n);
    const scales = new Uint8Array(4 * 70);
    const codes = new Uint8Array(
      counts.reduce((sum, count) => sum + codeBytes(encoding, count), 0),
    );
    const read = new Float32Array(n);
    for (let round = 0; round < 3; round++) {
      const elements = ordinary(n).map((x) => x * (round + 1));
      const sums = elements.map((x, i) => x + (errors[i] as number));
      encodeWithErrors(encoding, counts, elements, errors, { scales, codes });
      const expected = {
        scales: new Uint8Array(scales.length),
        codes: new Uint8Array(codes.length),
      };
      encodeGroups(encoding, counts, sums, expected);
      expect(Buffer.compare(codes, expected.codes)).toBe(0);
      expect(Buffer.compare(scales, expected.scales)).toBe(0);
      decodeGroups(encoding, counts, { scales, codes }, read);
      expect(errors).toEqual(sums.map((x, i) => x - (read[i] as number)));
    }
    expect(errors.some((error) => error !== 0)).toBe(true);
  });

  test("the errors of a group that is not finite stay, and those of others do not", () => {
    const errors = new Float32Array(300).fill(0.25);
    const elements = ordinary(300);
    elements[7] = Number.NaN;
    const to = { scales: new Uint8Array(8), codes: new Uint8Array(300) };
    encodeWithErrors(encoding, [300], elements, errors, to);
    expect(new Set(errors.subarray(0, 256))).toEqual(new Set([0.25]));
    expect(errors.subarray(256).every((error) => error !== 0.25)).toBe(true);
  });

  test("scales with a sign are refused, whatever they are", () => {
    for (const scale of [-1, -0, Number.NEGATIVE_INFINITY]) {
      const bytes = encode(encoding, ordinary(513));
      new DataView(bytes.buffer).setFloat32(8, scale, true);
      const refusal = refusalOf(() => decode(encoding, 513, bytes));
      expect(refusal.code).toBe("BAD_VALUE");
      expect(refusal.message).toMatch(/expected scales without a sign/);
    }
  });

  test("bytes of another number of elements are refused", () => {
    for (const n of SIZES) {
      const bytes = encode(encoding, ordinary(n));
      expect(codeOf(() => decode(encoding, n + 2, bytes))).toBe("BAD_LENGTH");
      expect(codeOf(() => decode(encoding, n, bytes.subarray(1)))).toBe("BAD_LENGTH");
    }
  });

  test("the number of elements is found from their bytes", () => {
    for (const n of [...SIZES, ...LONG]) {
      const found = elementsIn("float32", encoding, encodedBytes("float32", encoding, n));
      expect(found).toBe(encoding === "int8" ? n : n + (n % 2));
    }
    const group = encodedBytes("float32", encoding, 256);
    for (const bytes of [0, 1, 4, group + 1, group + 4, 3 * group + 2]) {
      expect(elementsIn("float32", encoding, bytes), `${bytes}`).toBeUndefined();
    }
  });
});

test("a code of int8 that is never written is refused, wherever it lies", () => {
  for (const n of SIZES) {
    for (const at of [0, n - 1, Math.floor(n / 2)]) {
      const bytes = encode("int8", ordinary(n));
      bytes[4 * groupCount(n) + at] = 0x80;
      expect(
        codeOf(() => decode("int8", n, bytes)),
        `${at} of ${n}`,
      ).toBe("BAD_VALUE");
    }
  }
});

test("a code of e3m0 that is never written, or that no element has, is refused", () => {
  for (const n of SIZES) {
    for (const at of [0, n - 1, Math.floor(n / 2)]) {
      const bytes = encode("e3m0", new Float32Array(n));
      bytes[4 * groupCount(n) + Math.floor(at / 2)] = at % 2 === 0 ? 0x08 : 0x80;
      expect(
        codeOf(() => decode("e3m0", n, bytes)),
        `${at} of ${n}`,
      ).toBe("BAD_VALUE");
    }
    if (n % 2 === 0) continue;
    const bytes = encode("e3m0", new Float32Array(n));
    bytes[bytes.length - 1] = 0x10;
    expect(
      codeOf(() => decode("e3m0", n, bytes)),
      `behind ${n}`,
    ).toBe("BAD_VALUE");
  }
});
