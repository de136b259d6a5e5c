// Proves how versions are put in words, and that what is not known is said to be, with the reason.
import { expect, test } from "vitest";
import {
  describeUnknown,
  describeUpdates,
  describeVersion,
  versionEntries,
} from "../../../src/cli/output/tensor-summary.ts";

test("one number if all blocks agree, else the lowest and the highest", () => {
  expect(describeVersion({ least: 1_234, most: 1_234, updates: 0 })).toBe("1,234");
  expect(describeVersion({ least: 2, most: 9, updates: 0 })).toBe("2–9");
  expect(describeUpdates({ least: 1, most: 1, updates: 1_000_000 })).toBe("1,000,000");
});

test("what is not known is no number", () => {
  expect(describeVersion(undefined)).toBe("?");
  expect(describeUpdates(undefined)).toBe("?");
  expect(versionEntries(undefined)).toEqual({ version: null, updates: null });
});

test("names the shards that do not answer", () => {
  const versions = new Map();
  expect(describeUnknown({ versions, silentShards: [] })).toBeUndefined();
  expect(describeUnknown({ versions, silentShards: [3] })).toMatch(
    /^1 shard does not answer.*: 3$/,
  );
  expect(describeUnknown({ versions, silentShards: [3, 4] })).toMatch(
    /^2 shards do not answer.*: 3-4$/,
  );
});

test("says why nobody could be asked", () => {
  const known = {
    versions: new Map(),
    silentShards: [3],
    refusal: "the broker refuses publishing",
  };
  expect(describeUnknown(known)).toBe("versions are not known: the broker refuses publishing");
});
