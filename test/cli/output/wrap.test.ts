// Proves that text is broken at blanks into lines that fit, that nothing of it is lost, that a word which
// does not fit stays whole, and that further lines stand below the first, whatever is coloured.
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { makePaint } from "../../../src/cli/output/colors.ts";
import {
  hangingLines,
  titledLines,
  wrapLines,
  wrapMessage,
  wrapText,
} from "../../../src/cli/output/wrap.ts";

test("breaks at blanks, and keeps text that fits as it is", () => {
  expect(wrapText("one  two", 8)).toEqual(["one  two"]);
  expect(wrapText("one two three", 8)).toEqual(["one two", "three"]);
  expect(wrapText("", 8)).toEqual([""]);
});

test("a word that does not fit has a line of its own", () => {
  expect(wrapText("see nats://broker.example:4222 now", 10)).toEqual([
    "see",
    "nats://broker.example:4222",
    "now",
  ]);
  expect(wrapText("nats://broker.example:4222 now", 10)).toEqual([
    "nats://broker.example:4222",
    "now",
  ]);
  expect(wrapText("a b", 0)).toEqual(["a", "b"]);
});

test("further lines stand below the first", () => {
  expect(hangingLines("-> ", "one two three", 10)).toEqual(["-> one two", "   three"]);
});

test("lines that are indented stay so", () => {
  expect(wrapLines("Title:\n  one two three\n\n", 10)).toBe("Title:\n  one two\n  three\n\n");
});

test("only the first line of a message begins at the edge", () => {
  expect(wrapMessage("one two\nthree four five", 12)).toBe("one two\n  three four\n  five");
  expect(wrapMessage("one two three", 8)).toBe("one two\n  three");
});

test("colours neither move nor widen lines", () => {
  const text = "one two three four five";
  const plain = titledLines("steps", text, { paint: makePaint(false), width: 24 });
  const colored = titledLines("steps", text, { paint: makePaint(true), width: 24 }, "warn");
  expect(plain).toEqual(["  steps      one two", "             three four", "             five"]);
  expect(colored.map(stripVTControlCharacters)).toEqual(plain);
  // Each line has its own colour: a pager ends colours at the end of a line.
  for (const line of colored) {
    expect(line).toContain("\u001b[33m");
    expect(line.endsWith("\u001b[39m")).toBe(true);
  }
});
