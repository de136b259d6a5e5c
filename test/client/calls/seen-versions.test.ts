// Proves which version a gradient is said to be made from: that of the block as it was read last, under the number that
// the block has now.
import { expect, test } from "vitest";
import { SeenVersions } from "../../../src/client/calls/parameters.ts";

test("the version is that of the last read of the block", () => {
  const seen = new SeenVersions();
  expect(seen.get(1)).toBeUndefined();
  seen.note(1, 7);
  seen.note(2, 3);
  seen.note(1, 5);
  expect([1, 2, 3].map((number) => seen.get(number))).toEqual([5, 3, undefined]);
});

test("after a shard has undone versions none is known", () => {
  const seen = new SeenVersions();
  seen.note(1, 7);
  seen.clear();
  expect(seen.get(1)).toBeUndefined();
});
