// Proves that an update or a named note is found at the same place whether the tape has its line or only the
// journal has its record, in random trainings whose tape is whole, partial or absent; that the journal is not
// read for what the tape has; and that what only the tape still has is found there.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TapeEncoder } from "../../../src/actors/journal/tape/tape-encoder.ts";
import { resolveRange } from "../../../src/history/read-updates.ts";
import { findMark, findUpdate, searchShard } from "../../../src/history/resolve-point.ts";
import type { HistorySource } from "../../../src/history/source.ts";
import { encodeMessage } from "../../../src/protocol/index.ts";
import { Folded } from "../../actors/fold/folded.ts";
import { MemoryHistory } from "../archive/memory-history.ts";
import { failureOf } from "../failure.ts";
import { FoldedHistory } from "../folded-history.ts";
import { historyOf, type Training, trainings } from "../written-training.ts";

const { signal } = new AbortController();

function act(trainer: "alice" | "bob") {
  return { trainer, parameter: "w", kind: "gradient", values: [1, 2, 3, 4, 5, 6] } as const;
}

const ASYNC: Training = {
  mode: "async",
  optimizer: "sgd",
  acts: [act("alice"), act("bob"), act("alice"), act("bob"), act("bob")],
};

function find(source: HistorySource, trainer: string, n: number) {
  const point = { kind: "update", trainer, session: 1, n, shard: undefined } as const;
  return findUpdate(source, point, signal);
}

test("a tape does not change where an update is found, however much of it there is", async () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const property = fc.asyncProperty(trainings, share, share, async (training, one, other) => {
    const [plain, taped, partial] = [historyOf(training), historyOf(training), historyOf(training)];
    const { lastSeq } = plain.own;
    taped.own.writeTape(1, lastSeq);
    const ends = [one, other].map((at) => 1 + Math.floor(at * (lastSeq - 1)));
    partial.own.writeTape(Math.min(...ends), Math.max(...ends));
    for (const trainer of ["alice", "bob"]) {
      for (let n = 1; ; n++) {
        const found = await find(plain, trainer, n).catch(() => undefined);
        if (found === undefined) break;
        expect(await find(taped, trainer, n)).toEqual(found);
        expect(await find(partial, trainer, n)).toEqual(found);
      }
    }
  });
  await fc.assert(property, { numRuns: 25 });
});

describe("with a tape", () => {
  test("of the journal only the record that was found is read, for its time", async () => {
    const history = historyOf(ASYNC);
    const { own } = history;
    own.writeTape(1, own.lastSeq);
    await find(history, "bob", 2);
    expect(own.readCount).toBe(1);
    await failureOf(find(history, "bob", 9));
    expect(own.readCount).toBe(1);
  });

  test("an update is found although its record was trimmed", async () => {
    const history = historyOf(ASYNC);
    const { own } = history;
    own.writeTape(1, own.lastSeq);
    const found = await find(history, "alice", 3);
    own.snapshot(own.lastSeq);
    own.firstSeq = own.lastSeq + 1;
    expect(await find(history, "alice", 3)).toEqual(found);
    // The tape tells that there has never been such a one.
    expect((await failureOf(find(history, "carol", 1))).code).toBe("BAD_VALUE");
  });

  test("that begins later, an update before it may be lost", async () => {
    const history = historyOf(ASYNC);
    const { own } = history;
    const { position } = await find(history, "alice", 1);
    own.writeTape(position.seq + 1, own.lastSeq);
    own.snapshot(own.lastSeq);
    own.firstSeq = own.lastSeq + 1;
    expect((await failureOf(find(history, "alice", 1))).code).toBe("HISTORY_LOST");
  });

  test("updates are listed from the time of one whose cut is not kept in all shards", async () => {
    const history = historyOf(ASYNC);
    const { own } = history;
    own.writeTape(1, own.lastSeq);
    const point = { kind: "update", trainer: "alice", session: 1, n: 3, shard: undefined } as const;
    const { position, timeMs } = await find(history, "alice", 3);
    const kept = await resolveRange(history, point, { kind: "now" }, signal);
    expect(kept.since?.[3]).toEqual(position);
    // Another shard that does not reach back so far.
    const [other] = [history.shard(0)];
    other.firstSeq = 2;
    const { since, sinceMs } = await resolveRange(history, point, { kind: "now" }, signal);
    expect([since, sinceMs]).toEqual([undefined, timeMs]);
  });
});

test("a tape that cannot be read does not keep the journal from being searched", async () => {
  const [plain, damaged] = [historyOf(ASYNC), historyOf(ASYNC)];
  const { lastSeq } = plain.own;
  damaged.own.writeTape(1, lastSeq);
  for (const at of [1, 0]) {
    damaged.own.damageTape(at);
    expect(await find(damaged, "bob", 2)).toEqual(await find(plain, "bob", 2));
    expect((await failureOf(find(damaged, "carol", 1))).code).toBe("BAD_VALUE");
  }
  damaged.own.snapshot(lastSeq);
  damaged.own.firstSeq = lastSeq + 1;
  expect((await failureOf(find(damaged, "carol", 1))).code).toBe("HISTORY_LOST");
});

test("the end of an abandoned journal, which has no lines, is searched before the next generation", async () => {
  const shard = new MemoryHistory(1).shard(0);
  shard.push(5);
  shard.replace();
  shard.push(3);
  for (const [generation, lastSeq] of [
    [1, 3],
    [2, 3],
  ] as const) {
    const encoder = new TapeEncoder(generation, 0);
    const outcome = { kind: "applied" } as const;
    for (let seq = 1; seq <= lastSeq; seq++) {
      const place = { timeMs: shard.timeOf(seq), shard: 0, generation, seq, entry: 0, entries: 1 };
      encoder.add([{ ...place, verb: "floor", outcome }], true);
    }
    const { fields, data } = encoder.take();
    const seq = shard.tape.length + 1;
    shard.tape.push({ seq, timeMs: generation, data: encodeMessage(fields, data) });
  }
  const search = async (wantedSeq: number, isLast: boolean) => {
    const isWanted = ({ seq }: { seq: number }): boolean => seq === wantedSeq;
    const wanted = { isEvent: isWanted, isRecord: isWanted };
    return (await searchShard(shard, wanted, isLast, signal))?.position;
  };
  expect(await search(2, false)).toEqual({ generation: 1, seq: 2 });
  expect(await search(2, true)).toEqual({ generation: 2, seq: 2 });
  expect(await search(4, false)).toEqual({ generation: 1, seq: 4 });
  expect(await search(4, true)).toEqual({ generation: 1, seq: 4 });
  expect(await search(6, false)).toBeUndefined();
});

test("the newest note of a name is found, on the tape or in the journal behind it", async () => {
  const { journal } = new Folded();
  const expected: Record<string, number> = {};
  for (const name of ["a", "b", "a", "c"]) {
    expected[name] = journal.note({ mark: name }, { trainer: "alice" }).seq;
  }
  const history = new FoldedHistory(journal.records);
  const { own } = history;
  // Notes are in shard 0; this one stands for it.
  const source = { job: history.job, shard: () => own } as unknown as HistorySource;
  const seqOf = async (name: string) => (await findMark(source, name, signal)).position.seq;
  const expectAll = async (): Promise<void> => {
    for (const [name, seq] of Object.entries(expected)) expect(await seqOf(name)).toBe(seq);
    expect((await failureOf(seqOf("d"))).code).toBe("BAD_VALUE");
  };
  await expectAll();
  own.writeTape(1, own.lastSeq - 2);
  await expectAll();
  own.writeTape(own.lastSeq - 1, own.lastSeq);
  own.readCount = 0;
  await expectAll();
  expect(own.readCount).toBe(3);
  own.firstSeq = own.lastSeq + 1;
  await expectAll();
});
