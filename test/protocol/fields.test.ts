// Proves the boundary where values of a message become ours: each reader takes its own kind and
// range, and refuses everything else with an error that names the entry, what was expected and what
// was received.
import { describe, expect, test } from "vitest";
import {
  asMap,
  dtypeField,
  flagField,
  integerField,
  listField,
  mapField,
  numberField,
  textField,
  wordField,
} from "../../src/protocol/fields.ts";
import { codeOf, refusalOf } from "./refusal.ts";

/** One value of each kind that a message can hold. */
const KINDS: readonly (readonly [string, unknown])[] = [
  ["nothing", undefined],
  ["nil", null],
  ["true", true],
  ["a whole number", 7],
  ["a fraction", 0.5],
  ["NaN", Number.NaN],
  ["a number beyond 2^53", 2 ** 53],
  ["text", "mix"],
  ["an element type", "float32"],
  ["bytes", new Uint8Array(3)],
  ["a list", [1]],
  ["a map", { a: 1 }],
];

const READERS: readonly (readonly [
  string,
  (fields: Record<string, unknown>) => unknown,
  readonly string[],
])[] = [
  ["integerField", (fields) => integerField(fields, "x"), ["a whole number"]],
  [
    "numberField",
    (fields) => numberField(fields, "x"),
    ["a whole number", "a fraction", "NaN", "a number beyond 2^53"],
  ],
  ["textField", (fields) => textField(fields, "x"), ["text", "an element type"]],
  ["flagField", (fields) => flagField(fields, "x"), ["nothing", "true"]],
  ["listField", (fields) => listField(fields, "x", 8), ["a list"]],
  ["mapField", (fields) => mapField(fields, "x"), ["a map"]],
  ["wordField", (fields) => wordField(fields, "x", ["mix", "grad"]), ["text"]],
  ["dtypeField", (fields) => dtypeField(fields, "x"), ["an element type"]],
];

describe.each(READERS)("%s", (_name, read, accepted) => {
  test.each(KINDS)("and %s", (kind, value) => {
    if (accepted.includes(kind)) {
      expect(read({ x: value })).toEqual(kind === "nothing" ? false : value);
      return;
    }
    const { code, message } = refusalOf(() => read({ x: value }));
    expect(code).toMatch(/^BAD_(?:MESSAGE|DTYPE)$/);
    expect(message).toMatch(/^x: expected .+; received .+/);
  });
});

test("ranges are inclusive", () => {
  expect(integerField({ x: 3 }, "x", 3, 3)).toBe(3);
  for (const value of [2, 4, -1]) {
    expect(codeOf(() => integerField({ x: value }, "x", 3, 3))).toBe("BAD_MESSAGE");
  }
  expect(textField({ x: "abc" }, "x", 3)).toBe("abc");
  expect(codeOf(() => textField({ x: "abcd" }, "x", 3))).toBe("BAD_MESSAGE");
  expect(listField({ x: [1, 2] }, "x", 2)).toEqual([1, 2]);
  expect(codeOf(() => listField({ x: [1, 2, 3] }, "x", 2))).toBe("BAD_MESSAGE");
});

test("names that every object has are no entries", () => {
  for (const key of ["constructor", "toString", "hasOwnProperty"]) {
    expect(codeOf(() => integerField({}, key))).toBe("BAD_MESSAGE");
    expect(codeOf(() => textField({}, key))).toBe("BAD_MESSAGE");
    expect(codeOf(() => dtypeField({ dtype: key }))).toBe("BAD_DTYPE");
  }
});

test("what is received is shown short, and bytes as their number", () => {
  const { message, details } = refusalOf(() => integerField({ x: "y".repeat(9000) }, "x"));
  expect(message.length).toBeLessThan(200);
  expect(details).toMatchObject({ field: "x" });
  expect(refusalOf(() => textField({ x: new Uint8Array(5) }, "x")).message).toContain("5 bytes");
  expect(refusalOf(() => asMap([1, 2], "config")).message).toContain("a list of 2");
});
