// Proves how records get from the broker into the fold: in order, only while the owner allows it, with copies
// of records that have to wait; what becomes of gaps, of records that were damaged on their way or in the
// stream, and of errors. The journal is that of a writer, delivered by a connection without a broker.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { NotedChecksum } from "../../../src/actors/fold/journal-checksum.ts";
import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import { Shard } from "../../../src/actors/fold/shard.ts";
import type { JournalGap } from "../../../src/actors/journal/journal-check.ts";
import { Credit, JournalReader } from "../../../src/actors/journal/journal-reader.ts";
import type { ReplicaDamage } from "../../../src/actors/journal/replicas.ts";
import { Coalescer, FoldLoop } from "../../../src/actors/owner/fold-loop.ts";

import { PserverError } from "../../../src/protocol/index.ts";
import { rawMessage } from "../../protocol/raw-message.ts";
import { JournalLine } from "../../support/journal-line.ts";
import { JournalWriter, SHARD, SUBJECTS } from "../fold/journal-writer.ts";

const WAIT_MS = 40_000;

let line: JournalLine;
let shard: Shard;
let writer: JournalWriter;
let loop: FoldLoop;
let mayFold: boolean;
let settled: number[];
let advanced: number[];
let gaps: JournalGap[];
let failed: string[];
let damaged: ReplicaDamage[];
let failure: PserverError | undefined;
let failedCopy: ReplicaDamage | undefined;
let noted: NotedChecksum[];
let onGap: (gap: JournalGap) => Promise<void>;

beforeEach(async () => {
  line = new JournalLine();
  shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
  writer = new JournalWriter();
  [mayFold, settled, advanced, gaps, failed, damaged, noted] = [true, [], [], [], [], [], []];
  onGap = (gap) => {
    shard.skipTo(gap.to);
    return Promise.resolve();
  };
  makeLoop(false);
  await loop.start();
  writer.host({ verb: "rules", rules: 1 });
});

function makeLoop(isReplicated: boolean): void {
  loop = new FoldLoop({
    number: SHARD,
    shard,
    reader: new JournalReader({
      connection: line.connection,
      manager: line.manager,
      inboxPrefix: "_INBOX_j.=host.h",
      isReplicated,
      credit: new Credit(1_000_000, 100_000),
    }),
    coalescer: new Coalescer(),
    events: {
      locate: () => Promise.resolve({ stream: "PS_j_3", generation: 1, noted }),
      mayFold: () => mayFold,
      onFolded: () => undefined,
      onSettled: ({ outcome }) => settled.push(outcome.seq),
      onAdvanced: (bytes) => advanced.push(bytes),
      onGap: (gap) => {
        gaps.push(gap);
        return onGap(gap);
      },
      onReplicaDamaged: (damage) => damaged.push(damage),
      onFailure: (error, copy) => {
        [failure, failedCopy] = [error, copy];
        failed.push(error.code);
      },
    },
  });
}

afterEach(() => {
  loop.stop();
});

function deliver(record: JournalRecord): void {
  line.record(record.seq, record.payload, record.subject);
}

const writtenAfter = (records: number): JournalRecord[] => writer.records.slice(records);

const settle = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe("records", () => {
  test("are folded as they come, and reported soon, several at once, with their bytes", async () => {
    writer.note({ loss: 1 });
    writer.push(Float32Array.of(1), { op: "mix", alpha: 1, beta: 1 });
    for (const record of writer.records) deliver(record);
    expect([shard.seq, settled]).toEqual([3, [2, 3]]);
    await settle();
    const stored = writer.records.map(
      ({ subject, payload }) => subject.length + payload.length + 30,
    );
    expect(advanced).toEqual([stored.reduce((sum, bytes) => sum + bytes, 0)]);
  });

  test("wait while the fold is stopped, whatever becomes of their buffer", async () => {
    writer.init(Float32Array.of(1, 2));
    mayFold = false;
    for (const record of writer.records) {
      const payload = Uint8Array.from(record.payload);
      line.record(record.seq, payload, record.subject);
      payload.fill(0);
    }
    loop.poke();
    expect(shard.seq).toBe(0);
    mayFold = true;
    loop.poke();
    expect(shard.seq).toBe(3);
    const block = [...shard.blocks()][0];
    expect(block?.values()).toEqual(new Uint8Array(Float32Array.of(1, 2).buffer));
  });

  test("that wait use up the credit until they are folded", () => {
    mayFold = false;
    deliver(writer.records[0] as JournalRecord);
    const asked = line.requests.length;
    for (let i = 0; i < 20; i++) writer.init(Float32Array.of(i), { parameter: `p${i}` });
    for (const record of writtenAfter(1)) deliver(record);
    expect(line.requests).toHaveLength(asked);
    mayFold = true;
    loop.poke();
    expect(line.requests.length).toBeGreaterThan(asked);
  });

  test("are read anew from where the fold stands after a reconnect; what waited is forgotten", async () => {
    writer.note({ loss: 1 });
    deliver(writer.records[0] as JournalRecord);
    mayFold = false;
    deliver(writer.records[1] as JournalRecord);
    await loop.reconnected();
    expect(line.consumers.at(-1)?.config.opt_start_seq).toBe(2);
    mayFold = true;
    loop.poke();
    expect(shard.seq).toBe(1);
    deliver(writer.records[1] as JournalRecord);
    expect(shard.seq).toBe(2);
  });

  test("are neither folded nor reported once it has stopped", async () => {
    deliver(writer.records[0] as JournalRecord);
    loop.stop();
    deliver(writer.note({ loss: 1 }));
    loop.poke();
    await settle();
    expect([shard.seq, advanced]).toEqual([1, []]);
  });
});

describe("a gap", () => {
  /** Records 1 and 5; the reader hands a gap on when it is there the second time. */
  async function jump(): Promise<void> {
    deliver(writer.records[0] as JournalRecord);
    const { payload, subject } = writer.note({ loss: 1 });
    for (let i = 0; i < 2; i++) {
      line.record(5, payload, subject);
      await settle();
    }
  }

  test("is skipped first, and the fold continues behind it", async () => {
    await jump();
    expect([gaps, shard.seq, failed]).toEqual([[{ from: 2, to: 4 }], 5, []]);
  });

  test("holds the fold until that is done", async () => {
    let done: () => void = () => undefined;
    onGap = (gap) =>
      new Promise((resolve) => {
        done = () => {
          shard.skipTo(gap.to);
          resolve();
        };
      });
    await jump();
    loop.poke();
    expect([shard.seq, gaps.length]).toEqual([1, 1]);
    done();
    await settle();
    expect([shard.seq, gaps.length]).toEqual([5, 1]);
  });

  test.each([
    ["is a loss of records", "JOURNAL_DAMAGED"],
    ["another owner has to evaluate", "NOT_OWNER"],
  ] as const)("that %s ends the fold: %s", async (_why, code) => {
    onGap = () => Promise.reject(new PserverError(code, "record 2 is missing"));
    await jump();
    loop.poke();
    expect([failed, shard.seq]).toEqual([[code], 1]);
  });

  test.each([
    ["the broker does not answer", "TIMEOUT"],
    ["the broker is without JetStream for a while", "NO_JETSTREAM"],
  ] as const)("is read anew where %s: %s", async (_why, code) => {
    onGap = () => Promise.reject(new PserverError(code, "not now"));
    await jump();
    expect(failed).toEqual([]);
    expect(line.consumers.at(-1)?.config.opt_start_seq).toBe(2);
    expect(line.consumers.length).toBeGreaterThan(2);
  });
});

describe("a record with a wrong checksum", () => {
  function hurt(): JournalRecord {
    const record = writer.note({ text: "whole" });
    const payload = Uint8Array.from(record.payload);
    payload[payload.length - 1] = 77;
    return { ...record, payload };
  }

  /** The journal is read anew from record 2 on. */
  async function readAgain(consumers: number): Promise<void> {
    await expect.poll(() => line.consumers.length, { timeout: WAIT_MS }).toBe(consumers);
    await settle();
    expect(line.consumers.at(-1)?.config.opt_start_seq).toBe(2);
  }

  test("is delivered once more, and folded as it is then", async () => {
    deliver(writer.records[0] as JournalRecord);
    const consumers = line.consumers.length;
    deliver(hurt());
    expect(shard.seq).toBe(1);
    deliver(writer.note({ loss: 2 }));
    await readAgain(consumers + 1);
    for (const record of writtenAfter(1)) deliver(record);
    expect([shard.seq, shard.senders.unreadable, failed]).toEqual([3, 0, []]);
    expect(settled).toEqual([2, 3]);
  });

  test("is not folded once the loop has stopped meanwhile", async () => {
    deliver(writer.records[0] as JournalRecord);
    deliver(hurt());
    loop.stop();
    await settle();
    expect([shard.seq, failed]).toEqual([1, []]);
  });

  test("the same each time is folded as unreadable, and so are those behind it", async () => {
    deliver(writer.records[0] as JournalRecord);
    const consumers = line.consumers.length;
    const records = [hurt(), hurt(), hurt()];
    for (const record of records) deliver(record);
    await readAgain(consumers + 1);
    for (const record of records) deliver(record);
    expect([shard.seq, shard.senders.unreadable, failed]).toEqual([4, 3, []]);
    expect(line.consumers).toHaveLength(consumers + 1);
  });

  test("is looked at once when it comes again, without an error of its own", async () => {
    deliver(writer.records[0] as JournalRecord);
    const consumers = line.consumers.length;
    const records = [hurt(), hurt(), hurt()];
    const apply = vi.spyOn(shard, "apply");
    for (const record of records) deliver(record);
    await readAgain(consumers + 1);
    expect(apply.mock.results.map(({ type }) => type)).toEqual(["throw"]);
    for (const record of records) deliver(record);
    expect(apply.mock.results.slice(1).map(({ type }) => type)).toEqual(Array(3).fill("return"));
  });

  test("with the checksum of its bytes is stored like that, and folded at once", async () => {
    deliver(writer.records[0] as JournalRecord);
    const consumers = line.consumers.length;
    deliver({ ...hurt(), payload: rawMessage(1, "c1") });
    await settle();
    expect([shard.seq, shard.senders.unreadable, failed]).toEqual([2, 1, []]);
    expect(line.consumers).toHaveLength(consumers);
  });

  describe("in a replicated journal", () => {
    beforeEach(async () => {
      loop.stop();
      makeLoop(true);
      line.brokers.push("a", "a", "b", "a", "c");
      await loop.start();
      deliver(writer.records[0] as JournalRecord);
    });

    test("is read from another broker, which shows whose copy is damaged", async () => {
      const consumers = line.consumers.length;
      deliver(hurt());
      await readAgain(consumers + 2);
      for (const record of writtenAfter(1)) deliver(record);
      expect([shard.seq, shard.senders.unreadable]).toEqual([2, 0]);
      expect(damaged).toEqual([{ broker: "a", from: 2, to: 2, isOther: false }]);
      await loop.reconnected();
      expect(line.consumers).toHaveLength(consumers + 4);
    });

    test("is unreadable if two brokers have it, and neither counts as damaged", async () => {
      const consumers = line.consumers.length;
      const record = hurt();
      deliver(record);
      await readAgain(consumers + 2);
      deliver(record);
      expect([shard.seq, shard.senders.unreadable, damaged]).toEqual([2, 1, []]);
      await loop.reconnected();
      expect(line.consumers).toHaveLength(consumers + 3);
    });
  });

  test("that is never the same is damage", async () => {
    deliver(writer.records[0] as JournalRecord);
    const consumers = line.consumers.length;
    const record = hurt();
    for (let i = 1; failed.length === 0 && i < 20; i++) {
      deliver({ ...record, payload: record.payload.with(-1, i) });
      await expect
        .poll(() => line.consumers.length === consumers + i || failed.length > 0, {
          timeout: WAIT_MS,
        })
        .toBe(true);
      await settle();
    }
    expect([shard.seq, failed]).toEqual([1, ["JOURNAL_DAMAGED"]]);
  });
});

describe("a journal that was folded before", () => {
  /** What an owner notes that has folded so many records of it. */
  function notedAt(seq: number): NotedChecksum {
    const folded = Shard.create({ subjects: SUBJECTS, shard: SHARD });
    for (const record of writer.records.slice(0, seq)) folded.apply(record);
    return folded.noted;
  }

  /** Ten records of which records 4, 6 and 9 were noted, read anew. */
  async function write(): Promise<void> {
    writer.note({ loss: 0 });
    for (let i = 0; i < 8; i++) {
      writer.push(Float32Array.of(i), { op: "mix", alpha: 1, beta: 1 });
    }
    noted = [4, 6, 9].map(notedAt);
    await loop.reconnected();
  }

  test("is folded on if it is the same, and counts as compared from the last record noted on", async () => {
    await write();
    for (const record of writer.records) {
      expect(shard.isCompared).toBe(record.seq > 9);
      deliver(record);
    }
    expect([shard.seq, failed]).toEqual([10, []]);
  });

  test.each([
    { seq: 3, stopsAt: 4 },
    { seq: 6, stopsAt: 6 },
    { seq: 7, stopsAt: 9 },
  ])("stops where record $seq is another, and names it", async ({ seq, stopsAt }) => {
    await write();
    const other = writer.records.at(seq - 2) as JournalRecord;
    for (const record of writer.records) deliver(record.seq === seq ? { ...other, seq } : record);
    expect([failed, shard.seq]).toEqual([["JOURNAL_DAMAGED"], stopsAt]);
    expect(failure?.details).toEqual({ shard: SHARD, seq });
    expect(failure?.message).toContain(`record ${seq} is another`);
    expect(failedCopy).toBeUndefined();
  });

  test("names the records since the last one that is the same where several are others", async () => {
    await write();
    const [seventh, eighth] = writer.records.slice(6, 8) as [JournalRecord, JournalRecord];
    const swapped = new Map([
      [7, { ...eighth, seq: 7 }],
      [8, { ...seventh, seq: 8 }],
    ]);
    for (const record of writer.records) deliver(swapped.get(record.seq) ?? record);
    expect(failure?.details).toEqual({ shard: SHARD, from: 7, to: 9 });
    expect(failure?.message).toContain("records 7 to 9 are not all");
  });

  test("is told by the broker whose copy was folded, if several have one", async () => {
    loop.stop();
    makeLoop(true);
    line.brokers.push("a");
    await loop.start();
    await write();
    const other = writer.records[4] as JournalRecord;
    for (const record of writer.records) deliver(record.seq === 6 ? { ...other, seq: 6 } : record);
    expect(failedCopy).toEqual({ broker: "a", from: 6, to: 6, isOther: true });
  });

  test("names the right record, too, if it was read anew on the way", async () => {
    await write();
    for (const record of writer.records.slice(0, 6)) deliver(record);
    deliver({ ...(writer.records[7] as JournalRecord), seq: 7 });
    await loop.reconnected();
    for (const record of writer.records.slice(7)) deliver(record);
    expect(failure?.details).toEqual({ shard: SHARD, seq: 7 });
  });
});

test("an error of the fold ends it, once", async () => {
  deliver(writer.records[0] as JournalRecord);
  deliver(writer.host({ verb: "rules", rules: 99 }));
  deliver(writer.note({ loss: 1 }));
  await settle();
  loop.poke();
  expect([failed, shard.seq, line.open]).toEqual([["UNKNOWN_RULES"], 1, 0]);
});
