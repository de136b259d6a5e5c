// Proves that times of `pserver log` are spelled as `Date.toISOString` spells them, in whatever order they come.
import fc from "fast-check";
import { expect, test } from "vitest";
import { clockText, dateText, dateTimeText } from "../../../src/history/reports/update-entry.ts";

test("times are those of Date", () => {
  const timeMs = fc.oneof(
    fc.double({ min: 0, max: 253_402_300_799_999, noNaN: true }),
    fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }).map(Number),
    fc.integer({ min: 0, max: 30_000 }).map((day) => 86_400_000 * day - 0.5),
  );
  fc.assert(
    fc.property(timeMs, (ms) => {
      const text = new Date(ms).toISOString();
      expect(dateTimeText(ms)).toBe(text);
      expect(`${dateText(ms)}T${clockText(ms)}Z`).toBe(text);
    }),
  );
});

test("an invalid time is refused as Date refuses it", () => {
  expect(() => dateTimeText(Number.NaN)).toThrow(RangeError);
  expect(() => dateTimeText(1e20)).toThrow(RangeError);
});
