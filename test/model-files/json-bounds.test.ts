// Proves that JSON is counted exactly before it is read: what is at a bound passes, one more is refused,
// and what stands in texts does not count.
import { expect, test } from "vitest";
import { parseBoundedJson } from "../../src/model-files/file-text.ts";

const BOUNDS = { depth: 2, containers: 3, commas: 4 };
const read = (text: string): ReturnType<typeof parseBoundedJson> =>
  parseBoundedJson("file", "header", new TextEncoder().encode(text), BOUNDS);

test.each([
  ["[[]]", 0],
  ["[[],{}]", 0],
  ["[1,2,3,4,5]", 0],
  ['{"a":{"b":1}}', 2],
  ['["[[[{{{,,,,,:::", "\\"[[[,,,,:\\\\"]', 0],
  ['"\\\\"', 0],
])("%s is read, with its colons", (text, colons) => {
  expect(read(text)).toEqual({ text, value: JSON.parse(text), colons });
});

test.each([
  ["[[[]]]", "inside one another"],
  ["[[],[],[]]", "lists and objects in"],
  ["[1,2,3,4,5,6]", "values in"],
  ["[1,2", "JSON"],
  ["[\u00ff", "JSON"],
])("%s is refused", (text, message) => {
  const refusal = expect.objectContaining({
    code: "BAD_FILE",
    message: expect.stringContaining(message),
  });
  expect(() => read(text)).toThrow(refusal);
});
