// Proves how many columns a text takes in a terminal, whatever script it is in, and that a text which is
// cut keeps both ends, whole characters and no more columns than it may.
import fc from "fast-check";
import { expect, test } from "vitest";
import { cutMiddle, textWidth } from "../../../src/cli/output/wrap.ts";

test.each([
  ["weights", 7],
  ["größe", 5],
  ["e\u0301", 1],
  ["重み", 4],
  ["ｗ", 2],
  ["한글", 4],
  ["🚀", 2],
  ["❤\ufe0f", 2],
  ["🇩🇪", 2],
  ["\u001b[31mred\u001b[39m", 3],
  ["", 0],
])("%j takes %i columns", (text, columns) => {
  expect(textWidth(text)).toBe(columns);
});

test.each([
  ["encoder.layer.11.weight", 23, "encoder.layer.11.weight"],
  ["encoder.layer.11.weight", 10, "encod…ight"],
  ["重重重重重み", 8, "重重…み"],
  ["重重重重重み", 7, "重…重み"],
  ["abc", 1, "…"],
  ["e\u0301e\u0301e\u0301e\u0301", 3, "e\u0301…e\u0301"],
])("%j in %i columns is %j", (text, columns, cut) => {
  expect(cutMiddle(text, columns)).toBe(cut);
  expect(textWidth(cutMiddle(text, columns))).toBeLessThanOrEqual(columns);
});

test("a text of ASCII is cut where one of other characters is", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", ".", "0"), maxLength: 40 });
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 45 }), (plain, columns) => {
      const cyrillic = plain.replaceAll("a", "\u0430");
      expect(cutMiddle(plain, columns)).toBe(
        cutMiddle(cyrillic, columns).replaceAll("\u0430", "a"),
      );
    }),
  );
});
