// Proves that updates are added up over the shards that serve, and that a malformed count is refused.
import { expect, test } from "vitest";
import { updatesOf } from "../../../src/client/admin/participants.ts";
import { codeOf } from "../../protocol/refusal.ts";

test("adds up what shards that serve tell, and names the others", () => {
  const shards = [
    { shard: 0, state: "serving", updates: { applied: 7, rejected: 1 } },
    { shard: 1, state: "failed", updates: { applied: 9, rejected: 9 } },
    { shard: 2, state: "serving", updates: { applied: 5, rejected: 0 } },
    { shard: 3, state: "serving" },
  ];
  expect(updatesOf(shards)).toEqual({ applied: 12, rejected: 1, silent: [1, 3] });
});

test.each([[{}], [{ applied: -1, rejected: 0 }], [3]])("refuses %j", (updates) => {
  const shards = [{ shard: 0, state: "serving", updates }];
  expect(codeOf(() => updatesOf(shards))).toBe("BAD_MESSAGE");
});
