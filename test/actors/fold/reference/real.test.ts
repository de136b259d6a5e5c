import { expect, test } from "vitest";
import { Random } from "../../../../examples/digits/random.ts";
import { PRECISIONS, Real } from "./real.ts";

// Proves that the error bounds which the references carry hold for float32: chains of operations on
// random numbers are computed both ways, in float32 with Math.fround after each one.

const { float32 } = PRECISIONS;
const { fround } = Math;

interface Pair {
  readonly exact: Real;
  readonly computed: number;
}

/** A pair for each operation on two pairs; operands that have no result are left out. */
function results(a: Pair, b: Pair): Pair[] {
  const limit = Math.abs(b.computed);
  const pairs = [
    { exact: a.exact.plus(b.exact), computed: fround(a.computed + b.computed) },
    { exact: a.exact.minus(b.exact), computed: fround(a.computed - b.computed) },
    { exact: a.exact.times(b.exact), computed: fround(a.computed * b.computed) },
    { exact: a.exact.over(b.exact), computed: fround(a.computed / b.computed) },
    { exact: a.exact.max(b.exact), computed: Math.max(a.computed, b.computed) },
    { exact: a.exact.squared(), computed: fround(a.computed * a.computed) },
    {
      exact: a.exact.shrunk(b.exact.max(b.exact.negated())),
      computed: fround(Math.sign(a.computed) * Math.max(fround(Math.abs(a.computed) - limit), 0)),
    },
    {
      exact: a.exact.clipped(b.exact.max(b.exact.negated())),
      computed: Math.min(Math.max(a.computed, -limit), limit),
    },
  ];
  if (a.computed >= 0 && a.exact.value >= 0) {
    pairs.push({ exact: a.exact.root(), computed: fround(Math.sqrt(a.computed)) });
  }
  const usable = (value: number): boolean => Math.abs(value) < 1e15;
  return pairs.filter(({ exact }) => usable(exact.value) && exact.error < 1e15);
}

test("bounds hold through chains of float32 operations, near zero and far from it", () => {
  const random = new Random(1);
  const wrong: Pair[] = [];
  let chains = 0;
  for (let run = 0; run < 500; run++) {
    const magnitude = 10 ** (random.below(44) - 40);
    let known: Pair[] = Array.from({ length: 3 }, () => {
      const computed = fround(random.normal() * magnitude);
      return { exact: Real.exact(computed, float32), computed };
    });
    for (let depth = 0; depth < 6; depth++) {
      const pick = (): Pair => known[random.below(known.length)] as Pair;
      for (const { exact, computed } of results(pick(), pick())) {
        if (!(Math.abs(exact.value - computed) <= exact.error)) wrong.push({ exact, computed });
        known = [...known.slice(-6), { exact, computed }];
        chains++;
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(chains).toBeGreaterThan(10_000);
});

test("bounds are near the errors that happen", () => {
  // Sums of ten thousand numbers: the bound is the worst case of all roundings together.
  const random = new Random(2);
  let exact = Real.exact(0, float32);
  let computed = 0;
  for (let i = 0; i < 10_000; i++) {
    const next = fround(random.uniform());
    exact = exact.plus(Real.exact(next, float32));
    computed = fround(computed + next);
  }
  const relative = exact.error / exact.value;
  expect(relative).toBeLessThan(10_000 * 2 ** -23);
  expect(Math.abs(computed - exact.value)).toBeGreaterThan(exact.error / 1_000);
});

test("a root near zero is as uncertain as its square", () => {
  const tiny = Real.exact(2 ** -100, float32).times(Real.exact(2 ** -100, float32));
  expect(tiny.value).toBe(2 ** -200);
  expect(fround(tiny.value)).toBe(0);
  expect(tiny.root().error).toBeGreaterThan(2 ** -100);
  expect(tiny.root().error).toBeLessThan(2 ** -73);
});
