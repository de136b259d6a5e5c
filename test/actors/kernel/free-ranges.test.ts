// Free ranges against a model that keeps one flag per byte: after any sequence of taking and giving
// the ranges are exactly the free bytes, merged, and the smallest that fits is taken.

import fc from "fast-check";
import { expect, test } from "vitest";
import { FreeRanges } from "../../../src/actors/kernel/shard-memory.ts";

const SPACE = 64;

/** The runs of free bytes of the model, as `[start, bytes]`. */
function runs(free: readonly boolean[]): [number, number][] {
  const found: [number, number][] = [];
  for (let at = 0; at < free.length; at++) {
    if (!free[at]) continue;
    const last = found.at(-1);
    if (last !== undefined && last[0] + last[1] === at) last[1]++;
    else found.push([at, 1]);
  }
  return found;
}

test("ranges equal a map of the bytes", () => {
  const step = fc.record({
    give: fc.boolean(),
    at: fc.nat(SPACE - 1),
    bytes: fc.integer({ min: 1, max: 12 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const ranges = new FreeRanges();
      const free: boolean[] = new Array(SPACE).fill(false);
      for (const { give, at, bytes } of steps) {
        if (give) {
          const end = Math.min(at + bytes, SPACE);
          if (free.slice(at, end).includes(true)) {
            expect(() => ranges.give(at, end - at)).toThrow("free already");
          } else {
            ranges.give(at, end - at);
            free.fill(true, at, end);
          }
        } else {
          const fitting = runs(free).filter(([, length]) => length >= bytes);
          const smallest = Math.min(...fitting.map(([, length]) => length));
          const expected = fitting.find(([, length]) => length === smallest)?.[0];
          expect(ranges.take(bytes)).toBe(expected);
          if (expected !== undefined) free.fill(false, expected, expected + bytes);
        }
        const left = runs(free);
        expect(ranges.count).toBe(left.length);
        const [start, length] = left.at(-1) ?? [0, 0];
        expect(ranges.bytesBefore(SPACE)).toBe(start + length === SPACE ? length : 0);
      }
    }),
    { numRuns: 300 },
  );
});
