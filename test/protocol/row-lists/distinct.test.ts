// Proves that lists of numbers are sorted, rid of repeats and checked as loops over them would do it:
// lists of any length, in any order, with numbers beyond 2^32.
import fc from "fast-check";
import { expect, test } from "vitest";
import { countTo, distinct, isAscending } from "../../../src/protocol/row-lists/row-lists.ts";

const someNumbers = fc.oneof(
  fc.array(fc.nat(9), { maxLength: 50 }),
  fc.array(fc.nat(70_000), { maxLength: 500, size: "max" }),
  fc.array(fc.maxSafeNat(), { maxLength: 50 }),
);

test("the distinct numbers are ascending, and every number has its place", () => {
  fc.assert(
    fc.property(someNumbers, (list) => {
      const numbers = Float64Array.from(list);
      const { values, places } = distinct(numbers);
      expect([...values]).toEqual([...new Set(list)].sort((a, b) => a - b));
      expect([...places].map((place) => values[place])).toEqual(list);
      expect([...numbers]).toEqual(list);
    }),
  );
});

test("ascending numbers are not copied", () => {
  const numbers = Float64Array.of(2, 3, 2 ** 40);
  expect(distinct(numbers).values).toBe(numbers);
  expect(distinct(numbers).places).toEqual(countTo(3));
});

test("many numbers in one list are sorted after few in another", () => {
  expect(distinct(Float64Array.of(3, 1)).values).toEqual(Float64Array.of(1, 3));
  const n = 1_000_000;
  const { values, places } = distinct(Float64Array.from({ length: n }, (_, i) => n - 1 - i));
  expect(values.every((value, i) => value === i)).toBe(true);
  expect(places.every((place, i) => place === n - 1 - i)).toBe(true);
  expect(distinct(Float64Array.of(3, 1)).values).toEqual(Float64Array.of(1, 3));
});

test("a pair out of order is found wherever it is", () => {
  const lengths = fc.integer({ min: 2, max: 200 });
  fc.assert(
    fc.property(lengths, fc.nat(), fc.nat(1), (length, at, less) => {
      const numbers = Uint32Array.from({ length }, (_, i) => 0xffffffff - 2 * (length - i));
      expect(isAscending(numbers)).toBe(true);
      const place = 1 + (at % (length - 1));
      numbers[place] = (numbers[place - 1] as number) - less;
      expect(isAscending(numbers)).toBe(false);
    }),
  );
});

test("pairs at the borders of chunks are compared, too", () => {
  const numbers = countTo(100_000);
  expect(isAscending(numbers)).toBe(true);
  for (const at of [16_382, 16_383, 16_384, 32_766, 32_767, 65_535, 65_536, 99_999]) {
    numbers[at] = at - 1;
    expect([at, isAscending(numbers)]).toEqual([at, false]);
    numbers[at] = at;
  }
});
