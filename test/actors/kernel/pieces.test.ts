// Proves the kernels on pieces of blocks: pieces of any length are gathered, scattered and cleared, each in its column and
// nothing beside it; and many runs of elements that are measured in one call have the statistics of each.
import fc from "fast-check";
import { expect, test } from "vitest";
import { measure, statisticsAt } from "../../../src/actors/fold/statistics.ts";
import { ShardMemory } from "../../../src/actors/kernel/shard-memory.ts";
import { allocateData, bytesOf, DTYPES, type Dtype, isHalf } from "../../../src/protocol/dtypes.ts";

const ROW_WORDS = 5;

test("pieces are gathered, cleared and scattered, and nothing beside them changes", () => {
  const memory = ShardMemory.create();
  const { kernels } = memory;
  const size = 4096;
  const [block, table, packed] = [size, size, size].map((bytes) => memory.allocate(bytes)) as [
    number,
    number,
    number,
  ];
  const piece = fc.record({ gap: fc.integer({ min: 1, max: 5 }), words: fc.nat(20) });
  const column = fc.nat(3);
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), column, (pieces, chosen) => {
      const values = memory.bytes(block, size);
      values.forEach((_, i) => {
        values[i] = i * 7;
      });
      const before = values.slice();
      const rows = memory.bytes(table, size);
      const words = new Uint32Array(rows.buffer, rows.byteOffset, size / 4).fill(0);
      const places: { start: number; bytes: number }[] = [];
      let at = 0;
      for (const { gap, words: length } of pieces) {
        at += gap * 4;
        places.push({ start: at, bytes: length * 4 });
        words[(places.length - 1) * ROW_WORDS] = length * 4;
        words[(places.length - 1) * ROW_WORDS + 1 + chosen] = block + at;
        at += length * 4;
      }
      const bytes = places.reduce((sum, place) => sum + place.bytes, 0);
      const expected = places.flatMap(({ start, bytes: n }) => [...before.slice(start, start + n)]);
      kernels.gatherPieces(packed, table, chosen, places.length);
      expect([...memory.bytes(packed, bytes)]).toEqual(expected);
      kernels.clearPieces(table, chosen, places.length);
      const cleared = before.slice();
      for (const { start, bytes: n } of places) cleared.fill(0, start, start + n);
      expect(Buffer.compare(values, cleared)).toBe(0);
      kernels.scatterPieces(table, chosen, packed, places.length);
      expect(Buffer.compare(values, before)).toBe(0);
    }),
    { numRuns: 60 },
  );
});

/** Half floats are measured as float32. */
const MEASURED_DTYPES = (Object.keys(DTYPES) as Dtype[]).filter((dtype) => !isHalf(dtype));

test.each(MEASURED_DTYPES)("runs of %s are measured as each by itself", (dtype) => {
  const memory = ShardMemory.create();
  const isWide = DTYPES[dtype].bytes === 8 && !DTYPES[dtype].float;
  const special = DTYPES[dtype].float ? [Number.NaN, Number.POSITIVE_INFINITY, -0] : [];
  const most = dtype === "bool" ? 1 : DTYPES[dtype].bytes === 1 ? 100 : 1000;
  const element = fc.oneof(fc.integer({ min: 0, max: most }), fc.constantFrom(0, ...special));
  const runs = fc.array(fc.array(element, { minLength: 1, maxLength: 9 }), { maxLength: 20 });
  fc.assert(
    fc.property(runs, (lists) => {
      const arrays = lists.map((list) => {
        const data = allocateData(dtype, list.length);
        list.forEach((value, i) => {
          data[i] = (isWide ? BigInt(value) : value) as never;
        });
        return data;
      });
      const expected = arrays.map((data) => measure(memory, { dtype, bytes: bytesOf(data) }));
      const { scratch, kernels } = memory;
      const all = Buffer.concat(arrays.map(bytesOf));
      memory.bytes(scratch, all.length).set(all);
      const counts = memory.bytes(scratch + 8192, 4 * lists.length);
      new Uint32Array(counts.buffer, counts.byteOffset, lists.length).set(
        lists.map(({ length }) => length),
      );
      const results = scratch + 16_384;
      const { code } = DTYPES[dtype];
      kernels.measurePieces(results, scratch, scratch + 8192, lists.length, code);
      const found = memory.bytes(results, 48 * lists.length);
      const measured = new Float64Array(found.buffer, found.byteOffset, 6 * lists.length);
      const statistics = lists.map(({ length }, i) => statisticsAt(measured, 6 * i, length));
      expect(statistics).toEqual(expected);
    }),
    { numRuns: 40 },
  );
});
