// Proves that a lifecycle comes back from its entry as it was, that the entry is plain JSON, and
// that an entry of another format or a damaged one is refused by name instead of guessed at.
import { expect, test } from "vitest";
import {
  advance,
  type Lifecycle,
  parseLifecycleEntry,
  toLifecycleEntry,
  UNINITIALIZED,
} from "../../../src/actors/lifecycle/machine.ts";

import { refused } from "./rig.ts";

const selected = advance(UNINITIALIZED, {
  type: "BEGIN",
  trainer: "a",
  session: 3,
  replace: false,
});
const at = [{ shard: 0, generation: 2, seq: 9 }];
const ready = advance(selected, { type: "FINISH", session: 3, epoch: 1, at, sealed: 12 });

test.each([UNINITIALIZED, selected, ready])("$state survives its record", (lifecycle) => {
  const stored: unknown = JSON.parse(JSON.stringify(toLifecycleEntry(lifecycle)));
  expect(parseLifecycleEntry(stored, "job")).toEqual(lifecycle);
});

test("the record says what it is in readable JSON", () => {
  expect(toLifecycleEntry(ready)).toEqual({
    format: 1,
    value: "ready",
    context: { epoch: 1, trainer: "a", session: 3, at, sealed: 12, revised: 0 },
  });
});

test("no record is a lifecycle in which nothing has happened", () => {
  expect(parseLifecycleEntry(undefined, "job")).toBe(UNINITIALIZED);
});

test("a record of another format is refused, naming both", async () => {
  const newer = { ...(toLifecycleEntry(ready) as object), format: 2 };
  const read = async (): Promise<Lifecycle> => parseLifecycleEntry(newer, "param.w");
  await refused("BAD_VERSION", read(), "param.w", "expected format 1", "received 2");
});

test.each([
  { value: "lease" },
  { context: { epoch: 0, trainer: "a", session: 3, at: [], sealed: 0, revised: 0 } },
  { context: { epoch: 1, trainer: "a", session: -3, at: [], sealed: 0, revised: 0 } },
  { context: { epoch: 1, trainer: "a", session: 3, at: [{ seq: 1 }], sealed: 0, revised: 0 } },
  { context: [] },
])("a damaged record is refused: %j", async (damage) => {
  const damaged = { ...(toLifecycleEntry(ready) as object), ...damage };
  const read = async (): Promise<Lifecycle> => parseLifecycleEntry(damaged, "job");
  await refused("JOB_DAMAGED", read(), "entry job of the job's bucket is damaged");
});

test("text that is not a record is refused", async () => {
  const read = async (): Promise<Lifecycle> => parseLifecycleEntry([1], "job");
  await refused("JOB_DAMAGED", read(), "entry job of the job's bucket is damaged");
});
