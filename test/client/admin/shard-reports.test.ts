// Proves that updates are added up over the shards that serve, and that a malformed count is refused.
import { expect, test } from "vitest";
import { updatesOf } from "../../../src/client/admin/participants.ts";
import { codeOf } from "../../protocol/refusal.ts";

const NONE = { reject: 0, clip: 0, "set-aside": 0 };

test("adds up what shards that serve tell, and names the others", () => {
  const shards = [
    {
      shard: 0,
      state: "serving",
      updates: { applied: 7, rejected: 1, guarded: { ...NONE, clip: 2 } },
    },
    {
      shard: 1,
      state: "failed",
      updates: { applied: 9, rejected: 9, guarded: { ...NONE, clip: 9 } },
    },
    {
      shard: 2,
      state: "serving",
      updates: { applied: 5, rejected: 0, guarded: { ...NONE, reject: 4, clip: 1 } },
    },
    { shard: 3, state: "serving" },
  ];
  expect(updatesOf(shards)).toEqual({
    applied: 12,
    rejected: 1,
    guarded: { reject: 4, clip: 3, "set-aside": 0 },
    silent: [1, 3],
  });
});

test.each([
  [{}],
  [{ applied: -1, rejected: 0, guarded: NONE }],
  [{ applied: 1, rejected: 0 }],
  [3],
])("refuses %j", (updates) => {
  const shards = [{ shard: 0, state: "serving", updates }];
  expect(codeOf(() => updatesOf(shards))).toBe("BAD_MESSAGE");
});
