// Proves that a change is made on the record it was decided on, once, under races, lost answers
// and lost requests, and that it gives up in bounded time: records in memory misbehave as told.
import { expect, test } from "vitest";
import type { StoredRecord } from "../../../src/actors/jetstream/kv-bucket.ts";
import { type Changed, change } from "../../../src/actors/lifecycle/compare-and-swap.ts";
import { MemoryRecords } from "../../support/memory-records.ts";
import { refused } from "./rig.ts";

const pause = (): Promise<void> => Promise.resolve();

/** Adds one name to a list, if it is not there yet. */
function add(records: MemoryRecords, name: string): Promise<Changed<string[]>> {
  return change<string[]>({
    records,
    key: "list",
    pause,
    decide: (current: StoredRecord | undefined) => {
      const names = (current?.value ?? []) as string[];
      return names.includes(name)
        ? { result: names }
        : { write: [...names, name], result: [...names, name] };
    },
  });
}

test("fifteen at once all get their change in", async () => {
  const records = new MemoryRecords({ between: () => new Promise(setImmediate) });
  const names = Array.from({ length: 15 }, (_, i) => `n${i}`);
  await Promise.all(names.map((name) => add(records, name)));
  const list = (await records.read("list"))?.value ?? [];
  expect((list as string[]).toSorted()).toEqual(names.toSorted());
});

test.each(["create", "update"])(
  "a %s whose answer was lost is found done, not done twice",
  async (action) => {
    const records = new MemoryRecords();
    if (action === "update") await add(records, "first");
    let lost = 0;
    records.losesAnswer = (call) => call.action === action && lost++ === 0;
    const { result, revision } = await add(records, "x");
    expect(result).toContain("x");
    expect(await records.read("list")).toEqual({ value: result, revision });
    expect(records.calls.filter((call) => call.action === action)).toHaveLength(1);
  },
);

test("a write whose request was lost is made again", async () => {
  const records = new MemoryRecords();
  let lost = 0;
  records.losesRequest = (call) => call.action === "create" && lost++ === 0;
  expect((await add(records, "x")).result).toEqual(["x"]);
});

test("a broker that never answers ends it with TIMEOUT", async () => {
  const records = new MemoryRecords();
  records.losesRequest = (call) => call.action === "create";
  await refused("TIMEOUT", add(records, "x"), "list");
});

test("others that are always faster end it with BUSY", async () => {
  const records = new MemoryRecords();
  const pushed = change({
    records,
    key: "list",
    pause,
    decide: async (current) => {
      const rival = [String(Math.random())];
      if (current === undefined) await records.create("list", rival);
      else await records.update("list", rival, current.revision);
      return { write: ["x"], result: undefined };
    },
  });
  await refused("BUSY", pushed, "list", "24");
});

test("what was read already is not read again, unless it has changed since", async () => {
  const records = new MemoryRecords();
  await add(records, "a");
  const record = await records.read("list");
  await add(records, "b");
  const seen: unknown[] = [];
  await change({
    records,
    key: "list",
    pause,
    first: { record },
    decide: (current) => {
      seen.push(current?.value);
      const list = (current?.value ?? []) as string[];
      return { write: [...list, "c"], result: undefined };
    },
  });
  expect(seen).toEqual([["a"], ["a", "b"]]);
  expect((await records.read("list"))?.value).toEqual(["a", "b", "c"]);
});
