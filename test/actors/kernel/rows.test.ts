// Proves the kernels of row lists against loops in JavaScript: copies to and from places of a column,
// groups by update count, touched flags and counts, each without touching what is beside it.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";

const memory = ShardMemory.create();
const { kernels } = memory;
const BYTES = 64 * 1024;
const [column, packed, list, work] = [0, 1, 2, 3].map(() => memory.allocate(BYTES)) as [
  number,
  number,
  number,
  number,
];

function numbersAt(pointer: number, n: number): Uint32Array {
  const { buffer, byteOffset } = memory.bytes(pointer, 4 * n);
  return new Uint32Array(buffer, byteOffset, n);
}

/** Writes a list of rows and fills two ranges with bytes that differ. */
function prepare(rows: readonly number[]): void {
  numbersAt(list, rows.length).set(rows);
  memory.bytes(column, BYTES).forEach((_, i, bytes) => {
    bytes[i] = (i * 7) & 0xff;
  });
  memory.bytes(packed, BYTES).forEach((_, i, bytes) => {
    bytes[i] = (i * 11 + 5) & 0xff;
  });
}

const someRows = fc.uniqueArray(fc.nat(200), { minLength: 1, maxLength: 60 });
const rowBytes = fc.integer({ min: 1, max: 40 }).map((words) => 4 * words);

test("rows are gathered in the order of the list", () => {
  fc.assert(
    fc.property(someRows, rowBytes, (rows, bytes) => {
      prepare(rows);
      const wanted = memory.bytes(packed, BYTES).slice();
      rows.forEach((row, i) => {
        wanted.set(memory.bytes(column + row * bytes, bytes), i * bytes);
      });
      kernels.gatherRows(packed, column, list, rows.length, bytes);
      expect(Buffer.compare(memory.bytes(packed, BYTES), wanted)).toBe(0);
    }),
  );
});

test("rows are scattered to their places, or cleared, and no others", () => {
  fc.assert(
    fc.property(someRows, rowBytes, (rows, bytes) => {
      prepare(rows);
      const wanted = memory.bytes(column, BYTES).slice();
      rows.forEach((row, i) => {
        wanted.set(memory.bytes(packed + i * bytes, bytes), row * bytes);
      });
      kernels.scatterRows(column, list, packed, rows.length, bytes);
      expect(Buffer.compare(memory.bytes(column, BYTES), wanted)).toBe(0);
      for (const row of rows) wanted.fill(0, row * bytes, (row + 1) * bytes);
      kernels.clearRows(column, list, rows.length, bytes);
      expect(Buffer.compare(memory.bytes(column, BYTES), wanted)).toBe(0);
    }),
  );
});

describe("update counts", () => {
  const someCounts = fc.oneof(
    fc.array(fc.nat(3), { minLength: 1, maxLength: 300 }),
    fc.array(fc.integer({ min: 0, max: 0xffffffff }), { minLength: 1, maxLength: 300 }),
    fc.array(fc.constantFrom(0, 0x100, 0x10000, 0x1000000, 0xffffffff), { minLength: 1 }),
  );

  test("rows are grouped by their count, and keep their order in a group", () => {
    fc.assert(
      fc.property(someCounts, (counts) => {
        const n = counts.length;
        numbersAt(column, n).set(counts);
        const rows = counts.map((_, row) => row).reverse();
        numbersAt(list, n).set(rows);
        const [groups, order, sorted] = [packed, packed + 16 * 1024, packed + 32 * 1024];
        const found = kernels.groupRows(groups, order, sorted, column, list, n, work);
        const wanted = [...new Set(counts)].sort((a, b) => a - b);
        const table = [...numbersAt(groups, 2 * found)];
        expect(table.filter((_, i) => i % 2 === 0)).toEqual(wanted);
        const places = wanted.map((count) =>
          rows.flatMap((row, i) => (counts[row] === count ? [i] : [])),
        );
        let end = 0;
        expect(table.filter((_, i) => i % 2 === 1)).toEqual(
          places.map((own) => (end += own.length)),
        );
        if (found === 1) return;
        expect([...numbersAt(order, n)]).toEqual(places.flat());
        expect([...numbersAt(sorted, n)]).toEqual(places.flat().map((place) => rows[place]));
      }),
    );
  });

  test("a count rises by one, up to 2^32 - 1", () => {
    fc.assert(
      fc.property(someCounts, (counts) => {
        const after = counts.map((count) => Math.min(count + 1, 0xffffffff));
        numbersAt(column, counts.length + 1).set([...counts, 7]);
        kernels.countAll(column, counts.length);
        expect([...numbersAt(column, counts.length + 1)]).toEqual([...after, 7]);
        numbersAt(column, counts.length).set(counts);
        kernels.numberRows(list, 0, counts.length);
        kernels.countRows(column, list, counts.length);
        expect([...numbersAt(column, counts.length + 1)]).toEqual([...after, 7]);
      }),
    );
  });

  test("neighbours with the same count are distinguished from others", () => {
    numbersAt(column, 6).set([5, 5, 5, 6, 6, 6]);
    expect(kernels.sameCounts(column, 0, 6)).toBe(3);
    expect(kernels.sameCounts(column, 1, 6)).toBe(2);
    expect(kernels.sameCounts(column, 3, 5)).toBe(2);
  });
});

test("marked rows are found in pieces", () => {
  fc.assert(
    fc.property(someRows, fc.integer({ min: 1, max: 20 }), (rows, most) => {
      memory.bytes(column, 256).fill(0);
      numbersAt(list, rows.length).set(rows);
      kernels.touchRows(column, list, rows.length);
      const found: number[] = [];
      for (let first = 0; ; ) {
        const n = kernels.touchedRows(packed, column, first, 201, most);
        if (n === 0) break;
        found.push(...numbersAt(packed, n));
        first = (found.at(-1) ?? 0) + 1;
      }
      expect(found).toEqual(rows.toSorted((a, b) => a - b));
    }),
  );
});
