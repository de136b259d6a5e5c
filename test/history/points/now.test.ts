// Proves that "now" is one moment of all shards although their journals are listed one after the other: a record is in
// the cut only with all that the broker had stored before it, and a journal that stands still ends where it ends.
import { expect, test } from "vitest";
import { resolvePoint } from "../../../src/history/resolve-point.ts";
import { MemoryHistory } from "../archive/memory-history.ts";

const { signal } = new AbortController();

async function cutNow(history: MemoryHistory): Promise<number[]> {
  const { cut } = await resolvePoint(history, { kind: "now" }, signal);
  return cut.map(({ seq }) => seq);
}

/** Two shards with so many records; a record of a number is of the same moment in both. */
function historyOf(first: number, second: number): MemoryHistory {
  const history = new MemoryHistory(2);
  history.shard(0).push(first);
  history.shard(1).push(second);
  return history;
}

/** Lets trainers push right after the first shard has been listed for the first time. */
function pushWhileListed(history: MemoryHistory, first: number, second: number): void {
  const [one, two] = [history.shard(0), history.shard(1)];
  const list = one.spans.bind(one);
  one.spans = () => {
    one.spans = list;
    const spans = list();
    one.push(first);
    two.push(second);
    return spans;
  };
}

test("is the end of each journal while nobody pushes", async () => {
  expect(await cutNow(historyOf(4, 7))).toEqual([4, 7]);
});

test("has what the records of later shards may have followed from", async () => {
  const history = historyOf(4, 2);
  // Listed: 4 and 6. By the time of record 6 of the second shard the first one had stored 6, and not yet 7.
  pushWhileListed(history, 3, 4);
  expect(await cutNow(history)).toEqual([6, 6]);
});

test("leaves out what was stored after the newest record that was listed", async () => {
  const history = historyOf(4, 2);
  pushWhileListed(history, 5, 1);
  expect(await cutNow(history)).toEqual([4, 3]);
});

test("goes on with a journal that was replaced meanwhile", async () => {
  const history = historyOf(4, 2);
  const one = history.shard(0);
  const list = one.snapshots.bind(one);
  one.snapshots = () => {
    one.snapshots = list;
    const snapshots = list();
    one.replace();
    return snapshots;
  };
  const { cut } = await resolvePoint(history, { kind: "now" }, signal);
  expect(cut[0]).toEqual({ generation: 2, seq: 0 });
});
