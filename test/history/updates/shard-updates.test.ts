// Proves that the updates of a shard are the same ones whether its tape is whole, has a beginning, a middle
// or an end only, or is absent: what it has no lines of is folded from the journal; and that what neither can give is
// told, with the rest on both sides of it.
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { UpdateEvent } from "../../../src/actors/journal/describe-record.ts";
import {
  JournalUpdates,
  type MissingUpdates,
  shardUpdates,
} from "../../../src/history/read-updates.ts";

import { PserverError } from "../../../src/protocol/index.ts";
import { SHARD, SUBJECTS } from "../../actors/fold/journal-writer.ts";
import type { FoldedHistory } from "../folded-history.ts";
import { historyOf, trainings } from "../written-training.ts";

const { signal } = new AbortController();

/** The updates of a shard; those of which nothing tells are added to `missing`. */
async function listed(
  { own }: FoldedHistory,
  afterSeq: number,
  toSeq: number,
  missing: MissingUpdates[] = [],
): Promise<object[]> {
  const journal = new JournalUpdates(own, SUBJECTS, signal);
  const after = { generation: afterSeq === 0 ? 0 : 1, seq: afterSeq };
  const span = { after, to: { generation: 1, seq: toSeq }, fromMs: 0 };
  const found: object[] = [];
  const onDamage = ({ details }: PserverError) =>
    missing.push({ ...details } as unknown as MissingUpdates);
  for await (const events of shardUpdates(own, journal, span, onDamage, signal)) {
    for (const { block, ...event } of events) {
      const { statistics, ...rest } = block ?? {};
      // The tape keeps norm and mean as float32.
      const { norm: _norm, mean: _mean, ...exact } = statistics ?? {};
      found.push({ ...event, block: rest, exact });
    }
  }
  return found;
}

test("a tape with gaps at its beginning, middle and end leaves nothing out", async () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  const shares = fc.tuple(share, share, share, share);
  const property = fc.asyncProperty(trainings, shares, async (training, ends) => {
    const [plain, taped] = [historyOf(training), historyOf(training)];
    const { lastSeq } = plain.own;
    const [a = 1, b = 1, c = 1, d = 1] = ends
      .map((end) => 1 + Math.floor(end * (lastSeq - 1)))
      .sort((one, other) => one - other);
    taped.own.writeTape(a, b);
    if (c > b) taped.own.writeTape(c, d);
    const missing: MissingUpdates[] = [];
    expect(await listed(taped, 0, lastSeq, missing)).toEqual(await listed(plain, 0, lastSeq));
    expect(await listed(taped, a, c, missing)).toEqual(await listed(plain, a, c, missing));
    expect(missing).toEqual([]);
  });
  await fc.assert(property, { numRuns: 25 });
});

test("a message of the tape that cannot be read is one line, and its updates come from the journal", async () => {
  const acts = Array.from({ length: 9 }, () => {
    return {
      trainer: "alice",
      parameter: "w",
      kind: "gradient",
      values: [1, 2, 3, 4, 5, 6],
    } as const;
  });
  const training = { mode: "async", optimizer: "sgd", acts } as const;
  const [plain, damaged] = [historyOf(training), historyOf(training)];
  const { lastSeq } = plain.own;
  damaged.own.writeTape(1, lastSeq);
  const messages = Math.ceil(lastSeq / 2);
  const hurt = [0, 2, messages - 1];
  for (const at of hurt) damaged.own.damageTape(at);
  const isLost = (event: object) => "undescribed" in event && event.undescribed !== undefined;
  const all = await listed(damaged, 0, lastSeq);
  expect(all.filter((event) => !isLost(event))).toEqual(await listed(plain, 0, lastSeq));
  expect(all.filter(isLost)).toMatchObject(
    hurt.map((at) => ({
      ...{ shard: SHARD, seq: 2 * at, verb: "unreadable" },
      undescribed: expect.stringMatching(
        `^message ${at + 1} of the tape cannot be read: BAD_CHECKSUM`,
      ),
    })),
  );
  // What the journal does not hold any more is told.
  damaged.own.snapshot(lastSeq);
  damaged.own.firstSeq = lastSeq + 1;
  const missing: MissingUpdates[] = [];
  const kept = (await listed(damaged, 0, lastSeq, missing)).filter((event) => !isLost(event));
  expect(kept).toHaveLength(lastSeq - 5 - (lastSeq % 2 === 0 ? 1 : 0));
  expect(missing.map(({ from, to }) => [from, to])).toEqual([
    [1, 2],
    [5, 6],
    [2 * messages - 1, lastSeq],
  ]);
});

/** A training of one parameter. */
function someTraining(): Parameters<typeof historyOf>[0] {
  const act = { trainer: "alice", parameter: "w", kind: "gradient" } as const;
  const acts = Array.from({ length: 20 }, () => ({ ...act, values: [1, 2, 3, 4, 5, 6] }));
  return { mode: "async", optimizer: "sgd", acts };
}

test("a message of the tape that the broker leaves out, and what the journal cannot give, is told", async () => {
  const [plain, taped] = [historyOf(someTraining()), historyOf(someTraining())];
  const { lastSeq } = plain.own;
  taped.own.writeTape(1, 6);
  // The message with the lines of these records is damaged: the broker delivers the next one.
  taped.own.writeTape(9, 10);
  taped.own.snapshot(8);
  taped.own.snapshot(14);
  // Of these neither the lines nor the records can be read.
  taped.own.firstSeq = 9;
  taped.own.damaged.add(12);
  const missing: MissingUpdates[] = [];
  const all = (await listed(plain, 0, lastSeq)) as { seq: number }[];
  const isThere = ({ seq }: { seq: number }) => ![7, 8, 12, 13, 14].includes(seq);
  expect(await listed(taped, 0, lastSeq, missing)).toEqual(all.filter(isThere));
  expect(missing).toEqual([
    { shard: SHARD, generation: 1, from: 7, to: 8 },
    { shard: SHARD, generation: 1, from: 12, to: 14 },
  ]);
});

test("a journal without a tape tells what it cannot read, and not what was trimmed", async () => {
  const { own } = historyOf(someTraining());
  own.snapshot(5);
  own.snapshot(12);
  own.firstSeq = 6;
  own.damaged.add(9);
  const missing: MissingUpdates[] = [];
  const found = (await listed({ own } as FoldedHistory, 0, own.lastSeq, missing)) as {
    seq: number;
  }[];
  expect([found.at(0)?.seq, found.at(-1)?.seq]).toEqual([6, own.lastSeq]);
  expect(missing).toEqual([{ shard: SHARD, generation: 1, from: 9, to: 12 }]);
});

test("a record that cannot be folded is listed with the error, and a later generation after it", async () => {
  const history = historyOf({
    ...{ mode: "async", optimizer: "sgd" },
    acts: Array.from({ length: 9 }, () => {
      return { trainer: "alice", parameter: "w", kind: "gradient", values: [1, 2, 3, 4, 5, 6] };
    }),
  });
  const { own } = history;
  const failing = own.lastSeq - 3;
  own.continueWithout(failing);
  const { apply } = Shard.prototype;
  const spy = vi.spyOn(Shard.prototype, "apply").mockImplementation(function (this: Shard, record) {
    if (record.seq === failing) throw new PserverError("FOLD_FAILED", "a defect");
    return apply.call(this, record);
  });
  onTestFinished(() => spy.mockRestore());
  const journal = new JournalUpdates(own, SUBJECTS, signal);
  const [start, end] = [
    { generation: 0, seq: 0 },
    { generation: 2, seq: 0 },
  ];
  const events: UpdateEvent[] = [];
  for await (const some of journal.between(start, end)) events.push(...some);
  expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: failing }, (_, i) => i + 1));
  expect(events.at(-1)).toMatchObject({
    ...{ shard: SHARD, generation: 1, verb: "push", trainer: "alice" },
    outcome: { kind: "rejected", code: "FOLD_FAILED", message: "a defect" },
  });
});
