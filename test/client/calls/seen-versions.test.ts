// Proves which version a gradient is said to be made from: that of the block as it was read last, in the
// epoch that the parameter has now.
import { expect, test } from "vitest";
import { SeenVersions } from "../../../src/client/calls/parameters.ts";
import { computeLayout, type ParameterInfo, toConfig } from "../../../src/protocol/index.ts";

function inEpoch(epoch: number): ParameterInfo {
  const [name, dtype, shape] = ["w", "float32", [4]] as const;
  const layout = computeLayout({ name, dtype, shape, shards: 1, maxPayloadBytes: 1 << 20 });
  return { name, dtype, shape, config: toConfig({}), epoch, ready: true, layout };
}

test("the version is that of the last read of the block", () => {
  const seen = new SeenVersions();
  expect(seen.get(inEpoch(1), 0)).toBeUndefined();
  seen.note(inEpoch(1), 0, 7);
  seen.note(inEpoch(1), 1, 3);
  seen.note(inEpoch(1), 0, 5);
  expect([0, 1, 2].map((block) => seen.get(inEpoch(1), block))).toEqual([5, 3, undefined]);
});

test("versions of another epoch are none", () => {
  const seen = new SeenVersions();
  seen.note(inEpoch(1), 0, 7);
  seen.note(inEpoch(1), 1, 3);
  expect(seen.get(inEpoch(2), 0)).toBeUndefined();
  seen.note(inEpoch(2), 0, 1);
  expect([0, 1].map((block) => seen.get(inEpoch(2), block))).toEqual([1, undefined]);
  expect(seen.get(inEpoch(1), 1)).toBeUndefined();
});

test("after a shard has undone versions none is known", () => {
  const seen = new SeenVersions();
  seen.note(inEpoch(1), 0, 7);
  seen.clear();
  expect(seen.get(inEpoch(1), 0)).toBeUndefined();
});
