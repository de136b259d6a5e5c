// Proves the index of a part: it comes back as it was written, and one that is out of order, out of
// range or cut off is refused.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeMessage, encodeMessage } from "../../src/protocol/codec.ts";
import {
  blockRows,
  type PartIndex,
  parsePartEntry,
  partCounts,
  partElements,
  partEntry,
  partIndexBytes,
  readPartIndex,
  writePartIndex,
} from "../../src/protocol/messages/parts.ts";
import { codeOf } from "./refusal.ts";

const BLOCK = { rows: 1000, rowElements: 50 };

/** Ascending numbers below a limit, at least one. */
function numbers(below: number): fc.Arbitrary<Uint32Array> {
  return fc
    .uniqueArray(fc.nat(below - 1), { minLength: 1, maxLength: 12 })
    .map((list) => Uint32Array.from(list).sort());
}

function written(index: PartIndex, elementBytes: number): Uint8Array {
  const bytes = partIndexBytes(partCounts(index));
  const data = new Uint8Array(bytes + elementBytes).fill(7);
  expect(writePartIndex(data, index)).toBe(bytes);
  return data;
}

test("an index comes back, with the elements after it", () => {
  const index = fc.record(
    { rows: numbers(BLOCK.rows), inner: numbers(BLOCK.rowElements) },
    { requiredKeys: ["rows"] },
  );
  fc.assert(
    fc.property(index, fc.nat(40), (given, elementBytes) => {
      const data = written(given, elementBytes);
      const read = readPartIndex(partCounts(given), data, BLOCK);
      expect([...read.rows]).toEqual([...given.rows]);
      expect(read.inner && [...read.inner]).toEqual(given.inner && [...given.inner]);
      expect([...read.elements]).toEqual(new Array(elementBytes).fill(7));
    }),
  );
});

test("its counts come back", () => {
  for (const counts of [{ rows: 3 }, { rows: 3, inner: 9 }]) {
    const { fields } = decodeMessage(encodeMessage({ part: partEntry(counts) }));
    expect(parsePartEntry(fields)).toEqual(counts);
  }
  expect(parsePartEntry({})).toBeUndefined();
});

test.each([[[]], [[0]], [[1, 0]], [[1, 2, 3]], [["1"]], [7], [[2 ** 31 + 1]]])(
  "no counts: %j",
  (part) => {
    expect(codeOf(() => parsePartEntry({ part }))).toBe("BAD_MESSAGE");
  },
);

describe("an index is refused", () => {
  test.each([
    ["out of order", [3, 2], undefined],
    ["with a number twice", [3, 3], undefined],
    ["beyond the rows", [1000], undefined],
    ["with offsets out of order", [1], [2, 1]],
    ["with an offset beyond the row", [1], [50]],
  ])("%s", (_what, rows, inner) => {
    const index = {
      rows: Uint32Array.from(rows),
      ...(inner === undefined ? {} : { inner: Uint32Array.from(inner) }),
    };
    const data = written(index, 0);
    expect(codeOf(() => readPartIndex(partCounts(index), data, BLOCK))).toBe("BAD_INDEX");
  });

  test("that is cut off, or claims more than any message holds", () => {
    const data = written({ rows: Uint32Array.of(1, 2, 3) }, 0);
    expect(codeOf(() => readPartIndex({ rows: 3 }, data.subarray(1), BLOCK))).toBe("BAD_LENGTH");
    expect(codeOf(() => readPartIndex({ rows: 2 ** 31, inner: 2 ** 31 }, data, BLOCK))).toBe(
      "BAD_LENGTH",
    );
  });
});

describe("the rows of a block", () => {
  test.each([
    ["of a vector are its elements", [10], 4, 3, { rows: 3, rowElements: 1 }],
    ["of a scalar are one", [], 0, 1, { rows: 1, rowElements: 1 }],
    ["are those of axis 0", [10, 3, 2], 12, 24, { rows: 4, rowElements: 6 }],
    ["are one where it is cut within a row", [2, 100], 60, 60, { rows: 1, rowElements: 60 }],
    ["are one where it ends within a row", [2, 100], 100, 50, { rows: 1, rowElements: 50 }],
  ])("%s", (_what, shape, start, count, expected) => {
    expect(blockRows({ shape, start, count })).toEqual(expected);
  });
});

test("a part has rows times offsets, or whole rows", () => {
  expect(partElements({ rows: 3 }, BLOCK)).toBe(150);
  expect(partElements({ rows: 3, inner: 4 }, BLOCK)).toBe(12);
});
