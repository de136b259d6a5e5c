// Proves the limits of guards against a reference in plain logarithms: the median and the median absolute deviation of
// the last norms, for windows of every length, in any order; and what a history passes over.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NormHistory } from "../../../../src/actors/fold/guards/norm-history.ts";
import { ShardMemory } from "../../../../src/actors/kernel/shard-memory.ts";
import { toGuard } from "../../../../src/protocol/config/index.ts";

const { kernels } = ShardMemory.create();

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const upper = sorted.length >> 1;
  const [a = Number.NaN, b = Number.NaN] = sorted.slice((sorted.length - 1) >> 1, upper + 1);
  return sorted.length % 2 === 1 ? a : (a + b) / 2;
}

/** The limit by its definition. */
function reference(norms: readonly number[], deviations: number): number {
  const logs = norms.map(Math.log);
  const centre = median(logs);
  const mad = median(logs.map((log) => Math.abs(log - centre)));
  return Math.exp(centre + deviations * Math.max(1.4826 * mad, Math.log(1.05)));
}

function historyOf(norms: readonly number[], window: number): NormHistory {
  const history = new NormHistory(window);
  for (const norm of norms) history.add(norm);
  return history;
}

const norm = fc.oneof(fc.double({ min: 1e-6, max: 1e6, noNaN: true }), fc.constantFrom(1, 2, 4));

describe("the limit", () => {
  test("is that of median and median absolute deviation of the last norms' logarithms", () => {
    fc.assert(
      fc.property(
        fc.array(norm, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 20 }),
        fc.double({ min: 0.5, max: 4, noNaN: true }),
        (norms, window, deviations) => {
          const guard = toGuard({ window, warmup: 1, deviations });
          const found = historyOf(norms, window).limit(kernels, guard);
          const last = norms.slice(-window);
          const expected = reference(last, deviations);
          expect(found?.norms).toBe(last.length);
          expect(Math.log(found?.median ?? 0)).toBeCloseTo(median(last.map(Math.log)), 9);
          expect(Math.abs(Math.log((found?.limit ?? 0) / expected))).toBeLessThan(1e-9);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("of a factor is so many times the median", () => {
    const guard = toGuard({ factor: 2.5, window: 5, warmup: 1 });
    expect(historyOf([9, 1, 4, 2, 8], 5).limit(kernels, guard)).toEqual({
      ...{ limit: 10, median: 4, norms: 5 },
    });
  });

  test("is not set before the history is warm", () => {
    const guard = toGuard({ window: 4, warmup: 3 });
    expect(historyOf([1, 1], 4).limit(kernels, guard)).toBeUndefined();
    expect(historyOf([1, 1, 1], 4).limit(kernels, guard)).toBeDefined();
  });

  test("of norms that are all the same leaves room of 1.05 to the power of the deviations", () => {
    const guard = toGuard({ window: 4, warmup: 1, deviations: 2 });
    expect(historyOf([3, 3, 3], 4).limit(kernels, guard)?.limit).toBeCloseTo(3 * 1.05 ** 2, 12);
  });
});

test("a history of norms that no float64 can tell apart sets a limit that nothing is above", () => {
  const guard = toGuard({ window: 4, warmup: 1 });
  expect(historyOf([1e-300, 1e300], 4).limit(kernels, guard)?.limit).toBe(Infinity);
});

test("a history of an even number of equal norms has these as its median, up to rounding", () => {
  const guard = toGuard({ window: 4, warmup: 1 });
  for (const norm of [0.1, 2, 3, 1 / 3, 5e-9, 12345.678]) {
    const found = historyOf([norm, norm], 4).limit(kernels, guard);
    expect((found?.median ?? 0) / norm).toBeCloseTo(1, 12);
    expect((found?.limit ?? 0) / norm).toBeCloseTo(1.05 ** 6, 12);
  }
});

test("norms of 0 are no part of a history", () => {
  expect([...historyOf([0, 1, 0, 2, 0], 4).norms]).toEqual([1, 2]);
});

test("a history has no more norms than its window, the last ones", () => {
  expect([...historyOf([5, 4, 3, 2, 1], 3).norms]).toEqual([3, 2, 1]);
});
