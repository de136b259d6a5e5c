import { describe, expect, test } from "vitest";
import { Shard } from "../../../src/actors/fold/shard.ts";
import { foldDescribed, type UpdateEvent } from "../../../src/actors/journal/describe-record.ts";
import { encodeMessage } from "../../../src/protocol/codec.ts";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import { Folded } from "../fold/folded.ts";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";
import { journalRecords, readJournal, recordedNames } from "../fold/recorded/journal-file.ts";

// Proves that every kind of record is described as it was folded: records and batches, operations, types,
// encodings and parts, steps, notes and hosts' records; applied, rejected, repeated and unreadable; and that
// a description costs the fold nothing: the shard comes to the same bytes with and without one.

const TIME_MS = 1_700_000_000_123.5;
const SGD = { learningRate: 1 };
const INDEX = { rows: Uint32Array.of(1, 2) };

/** A journal whose records are described one after the other. */
class Described extends Folded {
  /** The events of the records that were not folded yet. */
  events(): UpdateEvent[] {
    return this.journal.records.slice(this.shard.seq).flatMap((record) => {
      const dated = { ...record, timeMs: TIME_MS };
      return foldDescribed(this.shard, dated, { shard: SHARD, generation: 2 }).events;
    });
  }

  /** The last of {@link events}. */
  last(): UpdateEvent {
    const event = this.events().at(-1);
    if (event === undefined) throw new Error("expected an event");
    return event;
  }
}

function withW(config: object = SGD, synchronization?: SynchronizationInput): Described {
  const described = new Described(synchronization);
  described.journal.init(new Float32Array(8), { shape: [4, 2], config });
  described.events();
  return described;
}

describe("applied", () => {
  test("a gradient says where, who, what, how much and how stale", () => {
    const described = withW();
    const { journal } = described;
    const gradient = Float32Array.of(3, 0, 0, 0, -4, 0, 0, 0);
    journal.push(gradient, { op: "grad", lr: 0.5, seen: 1 });
    journal.push(gradient, { op: "grad", seen: 1 });
    const [first, second] = described.events();
    expect(first).toEqual({
      ...{ timeMs: TIME_MS, shard: SHARD, generation: 2, seq: 4, entry: 0, entries: 1 },
      ...{ verb: "push", trainer: "alice", session: 1, n: 2, step: undefined },
      outcome: { kind: "applied" },
      block: {
        ...{ parameter: "w", index: 0, operation: { op: "grad", lr: 0.5 }, dtype: "float32" },
        ...{ encoding: undefined, part: undefined, elements: 8, bytes: 32, version: 2, behind: 0 },
        statistics: { norm: 5, min: -4, max: 3, mean: -0.125, zeros: 6, nonFinite: 0 },
      },
    });
    expect(second?.block).toMatchObject({ version: 3, behind: 1, operation: { lr: undefined } });
  });

  test("a slot of half floats has float32", () => {
    const described = new Described();
    const { journal } = described;
    const config = { ...SGD, optimizer: "adam" };
    journal.init(new Uint16Array(8), { dtype: "bfloat16", shape: [4, 2], config });
    journal.setSlot(1, "bfloat16", new Float32Array(8));
    expect(described.last().block).toMatchObject({
      ...{ operation: { op: "set" }, dtype: "float32", elements: 8, bytes: 32, version: 2 },
    });
  });

  test("part, encoding and mix", () => {
    const described = withW({ ...SGD, sparse: true });
    const { journal } = described;
    const data = Float32Array.of(1, 1, 1, 1);
    journal.push(data, { op: "mix", alpha: 0.5, beta: 2 }, { part: INDEX, encoding: "bfloat16" });
    journal.push(data, { op: "grad" }, { part: INDEX });
    const [mix, grad] = described.events();
    expect(mix?.block).toMatchObject({
      ...{ operation: { op: "mix", alpha: 0.5, beta: 2 }, encoding: "bfloat16", part: { rows: 2 } },
      ...{ elements: 4, bytes: 8, statistics: { norm: 2, mean: 1, zeros: 0 }, behind: undefined },
    });
    expect(grad?.block).toMatchObject({ operation: { op: "grad" }, elements: 4, bytes: 16 });
  });

  test.each([
    ["int8", 12],
    ["e3m0", 8],
  ] as const)("%s, in its bytes, with the elements that are folded", (encoding, bytes) => {
    const described = withW();
    const { journal } = described;
    const gradient = Float32Array.of(4, 0, 0, 0, -2, 0, 0, 0);
    const change = { kind: "push", operation: { op: "grad" }, encoding } as const;
    journal.push(gradient, { op: "grad" }, { encoding });
    journal.batch([{ parameter: "w", data: gradient, change }]);
    journal.push(gradient.subarray(2), { op: "grad" }, { encoding });
    journal.push(gradient.with(0, Number.NaN), { op: "grad" }, { encoding, norm: 1 });
    const broken = { parameter: "w", data: gradient.with(1, Number.NaN), change };
    journal.batch([broken]);
    const [single, batched, short, wrong, wrongBatch] = described.events();
    for (const event of [single, batched]) {
      expect(event?.block).toMatchObject({ encoding, elements: 8, bytes, dtype: "float32" });
      expect(event?.block?.statistics).toMatchObject({ max: 4, zeros: 6, nonFinite: 0 });
      expect(event?.block?.statistics?.min).toBeCloseTo(-2, 1);
    }
    expect(short?.outcome).toMatchObject({ kind: "rejected", code: "BAD_LENGTH" });
    expect(short?.block).toMatchObject({ encoding, elements: 6, bytes: bytes === 12 ? 10 : 7 });
    for (const event of [wrong, wrongBatch]) {
      expect(event?.outcome).toMatchObject({ kind: "rejected", code: "NON_FINITE" });
      expect(event?.block).toMatchObject({ encoding, elements: 8, bytes });
      expect(event?.block?.statistics).toMatchObject({ nonFinite: 8 });
    }
  });

  test("groups that no client writes are described without statistics", () => {
    const described = withW();
    const operation = { op: "grad" } as const;
    const head = { verb: "push", dtype: "float32", encoding: "int8", operation } as const;
    described.journal.trainer({}, new Uint8Array(12).fill(0x80), (from) => ({ ...from, ...head }));
    const { outcome, block, undescribed } = described.last();
    expect(outcome).toMatchObject({ kind: "rejected", code: "BAD_VALUE" });
    expect(undescribed).toBeUndefined();
    expect(block).toMatchObject({
      encoding: "int8",
      elements: 8,
      bytes: 12,
      statistics: undefined,
    });
  });

  test("init, set, clock, note and hosts' records", () => {
    const described = new Described();
    const { journal } = described;
    journal.init(Float32Array.of(1, 2), { config: SGD });
    journal.set(Float32Array.of(7, 8));
    journal.note({ loss: 0.5, mark: "here" });
    journal.clock("alice", 1);
    journal.host({ verb: "drop", parameter: "w", epoch: 1 });
    const events = described.events();
    const verbs = ["rules", "declare", "init", "set", "note", "clock", "drop"];
    expect(events.map(({ verb }) => verb)).toEqual(verbs);
    const [rules, , init, set, note, clock] = events;
    expect(rules).toMatchObject({ outcome: { kind: "applied" }, seq: 1 });
    expect(rules?.trainer).toBeUndefined();
    expect(init?.block).toMatchObject({ operation: { op: "init" }, version: 1, elements: 2 });
    expect(set?.block).toMatchObject({
      operation: { op: "set" },
      version: 2,
      statistics: { max: 8 },
    });
    expect(note).toMatchObject({ note: { loss: 0.5, mark: "here" }, trainer: "alice", n: 3 });
    expect(clock).toMatchObject({ outcome: { kind: "rejected", code: "UNSUPPORTED" }, step: 1 });
  });

  test("a batch is one event for each entry", () => {
    const described = withW();
    const { journal } = described;
    journal.init(Float64Array.of(1), { parameter: "v", config: SGD });
    const grad = { kind: "push", operation: { op: "grad" } } as const;
    journal.batch([
      { parameter: "v", data: Float64Array.of(2), change: grad },
      { parameter: "w", data: new Float32Array(8).fill(1), change: grad },
    ]);
    const [, , first, second] = described.events();
    expect(first).toMatchObject({ seq: 6, entry: 0, entries: 2, n: 3, block: { parameter: "v" } });
    expect(second).toMatchObject({ seq: 6, entry: 1, entries: 2, n: 3, block: { version: 2 } });
  });

  test("a gradient that waits for its step has the version before the step closes", () => {
    const described = withW(SGD, { mode: "sync", trainers: 2, backups: 0 });
    const { journal } = described;
    const trainers = ["alice", "bob"];
    journal.host({ verb: "members", revision: 1, started: true, trainers });
    const data = new Float32Array(8).fill(1);
    journal.push(data, { op: "grad", step: 1, seen: 1 });
    expect(described.last()).toMatchObject({ step: 1, block: { version: 1, behind: 0 } });
    journal.push(data, { op: "grad", step: 1 }, { trainer: "bob" });
    journal.clock("alice", 1);
    journal.clock("bob", 1);
    const events = described.events();
    expect(events.map((event) => event.outcome.kind)).toEqual(["applied", "applied", "applied"]);
    expect(described.block().version).toBe(2);
  });
});

describe("not applied", () => {
  test("a rejected gradient has its code, its numbers and the block's version", () => {
    const described = withW();
    const data = Float32Array.of(1, Number.NaN, 1, 1, 1, 1, Number.POSITIVE_INFINITY, 1);
    described.journal.push(data, { op: "grad", seen: 1 }, { norm: null });
    expect(described.last()).toMatchObject({
      outcome: { kind: "rejected", code: "NON_FINITE", message: expect.stringContaining("finite") },
      block: { version: 1, behind: 0, elements: 8, statistics: { nonFinite: 2, max: 1, mean: 1 } },
    });
  });

  test("a rejected part of a block has its elements; one of no block has none", () => {
    const described = withW();
    const { journal } = described;
    journal.push(Float32Array.of(5, 5, 5, 5), { op: "grad" }, { part: INDEX });
    expect(described.last()).toMatchObject({
      outcome: { kind: "rejected", code: "UNSUPPORTED" },
      block: { elements: 4, part: { rows: 2 }, statistics: { norm: 10 } },
    });
    journal.push(Float32Array.of(5, 5), { op: "grad" }, { part: INDEX, parameter: "gone" });
    const { outcome, block } = described.last();
    expect(outcome).toMatchObject({ kind: "rejected", code: "NOT_INITIALIZED" });
    expect(block).toMatchObject({ parameter: "gone", statistics: undefined, version: undefined });
  });

  test("a rejected batch is one event, whether it can be taken apart or not", () => {
    const described = withW();
    const { journal } = described;
    const change = { kind: "set" } as const;
    const send = (): void => {
      journal.batch([
        { parameter: "w", data: new Float32Array(8), change },
        { parameter: "gone", data: new Float32Array(2), change },
      ]);
    };
    send();
    // Nobody knows which block was meant.
    expect(described.last()).toMatchObject({
      verb: "batch",
      outcome: { code: "STALE_EPOCH", message: expect.stringMatching(/^entry 1, number /) },
    });
    journal.declare(new Float32Array(2), { parameter: "gone" });
    described.events();
    send();
    const [event, ...others] = described.events();
    expect(others).toEqual([]);
    // It is about the block at fault.
    expect(event).toMatchObject({
      verb: "set",
      entry: 0,
      entries: 1,
      block: { parameter: "gone" },
    });
    expect(event?.outcome).toMatchObject({
      code: "NOT_INITIALIZED",
      message: expect.stringMatching(/^entry 1, "gone" block 0: /),
    });
    const head = { session: 1, n: 9, done: 0, reply: "" };
    journal.append(SUBJECTS.batch(SHARD, "alice"), encodeMessage({ ...head, groups: [] }));
    expect(described.last()).toMatchObject({
      verb: "batch",
      outcome: { code: "BAD_MESSAGE" },
      n: 9,
    });
  });

  test("a repeat names the record that was folded", () => {
    const described = withW();
    const { journal } = described;
    const data = new Float32Array(8);
    journal.push(data, { op: "grad" });
    journal.push(data, { op: "grad" }, { n: 2 });
    journal.push(data, { op: "grad" }, { n: 3, done: 2 });
    journal.push(data, { op: "grad" }, { n: 1 });
    const outcomes = described.events().map(({ outcome }) => outcome);
    const repeated = { kind: "repeated", seq: 4 };
    const applied = { kind: "applied" };
    expect(outcomes).toEqual([applied, repeated, applied, { kind: "repeated", seq: 0 }]);
  });

  test("a record that nobody can read", () => {
    const described = withW();
    described.journal.append(SUBJECTS.clock(SHARD, "bob"), Uint8Array.of(1, 2, 3));
    const unreadable = {
      verb: "unreadable",
      outcome: { kind: "unreadable" },
      trainer: "bob",
      bytes: 3,
    };
    expect(described.last()).toMatchObject(unreadable);
    described.journal.append("elsewhere", Uint8Array.of(1));
    expect(described.last().trainer).toBeUndefined();
  });
});

describe("what cannot be described", () => {
  test.each(["bfloat16", "float16"] as const)(
    "elements that are no float32, as %s, are described though the fold rejects them",
    (encoding) => {
      const described = new Described();
      const { journal } = described;
      const values = [Int32Array, Uint32Array, Float64Array];
      for (const [i, Values] of values.entries()) {
        journal.init(new Values(2), { parameter: `p${i}`, config: { optimizer: "none" } });
      }
      described.events();
      const part = { rows: Uint32Array.of(1) };
      const mix = { op: "mix", alpha: 1, beta: 1 } as const;
      for (const [i, Values] of values.entries()) {
        const parameter = `p${i}`;
        journal.push(new Values(1), mix, { parameter, part, encoding });
      }
      const events = described.events();
      expect(events).toHaveLength(values.length);
      for (const { outcome, block, undescribed } of events) {
        expect(undescribed).toBeUndefined();
        expect(outcome).toMatchObject({ kind: "rejected", code: "UNSUPPORTED" });
        expect(block).toMatchObject({ encoding, elements: 1, bytes: 2, statistics: undefined });
      }
    },
  );

  test("a record that is no whole number of elements has the whole ones", () => {
    const described = withW();
    const part = { rows: Uint32Array.of(1) };
    const mix = { op: "mix", alpha: 1, beta: 1 } as const;
    described.journal.trainer({}, new Uint8Array(8 + 7), (head) => {
      const { rows } = part;
      return {
        verb: "push",
        ...head,
        dtype: "float32",
        operation: mix,
        part: { rows: rows.length },
      };
    });
    const { outcome, block } = described.last();
    expect(outcome).toMatchObject({ code: "BAD_LENGTH" });
    expect(block).toMatchObject({ elements: 1, bytes: 7, statistics: undefined });
  });

  test("an error leaves place, sender and outcome, and does not reach the fold", () => {
    const [plain, described] = [withW(), withW()];
    const broken = { ...described.shard.memory.kernels, measureF32: fail };
    Object.defineProperty(described.shard.memory, "kernels", { value: broken });
    const outcomes = [plain, described].map(({ journal, shard }) => {
      journal.push(new Float32Array(8).fill(1), { op: "grad", seen: 1 });
      journal.push(new Float32Array(8).fill(Number.NaN), { op: "grad" }, { norm: null });
      const records = journal.records.slice(shard.seq);
      const place = { shard: SHARD, generation: 1 };
      return records.map((each) => foldDescribed(shard, { ...each, timeMs: TIME_MS }, place));
    });
    const [expected, found] = outcomes;
    expect(found?.map(({ settled }) => settled)).toEqual(expected?.map(({ settled }) => settled));
    expect(described.shard.digest()).toBe(plain.shard.digest());
    expect(found?.[0]?.events).toEqual([
      {
        ...{ timeMs: TIME_MS, shard: SHARD, generation: 1, seq: 4, entry: 0, entries: 1 },
        ...{ verb: "push", trainer: "alice", session: 1, n: 2, bytes: 32 },
        ...{ outcome: { kind: "applied" }, undescribed: "INTERNAL: a broken kernel" },
      },
    ]);
    expect(found?.[1]?.events).toMatchObject([
      { outcome: { kind: "rejected", code: "NON_FINITE" }, undescribed: expect.any(String) },
    ]);
  });
});

function fail(): never {
  throw new TypeError("a broken kernel");
}

describe("an observer of the fold that throws", () => {
  const throwing = { measures: true, observe: fail, failed: () => undefined };

  test("is told for each record of every kind, and the fold comes to the same", () => {
    const plain = withW();
    const watched = withW();
    const told: string[] = [];
    const seen: number[] = [];
    watched.shard.observers = [
      {
        ...throwing,
        failed: ({ kind, seq }, { message }) => told.push(`${kind} ${seq}: ${message}`),
      },
      { ...throwing, observe: ({ seq }) => seen.push(seq) },
    ];
    const outcomes = [plain, watched].map((folded) => {
      folded.journal.push(new Float32Array(8), { op: "grad" });
      folded.journal.push(new Float32Array(3), { op: "grad" });
      folded.journal.host({ verb: "floor", session: 1 });
      folded.journal.append(SUBJECTS.clock(SHARD, "bob"), Uint8Array.of(1));
      folded.journal.append("elsewhere", Uint8Array.of(1));
      return folded.run();
    });
    expect(outcomes[1]).toEqual(outcomes[0]);
    expect(outcomes[1]).toHaveLength(2);
    expect(watched.shard.digest()).toBe(plain.shard.digest());
    const kinds = ["trainer 4", "trainer 5", "host 6", "unreadable 7", "unreadable 8"];
    expect(told).toEqual(kinds.map((kind) => `${kind}: a broken kernel`));
    // The next observer gets all of them.
    expect(seen).toEqual([4, 5, 6, 7, 8]);
    expect(watched.shard.unobserved).toBe(0);
  });

  test("even when it is told, is counted", () => {
    const watched = withW();
    watched.shard.observers = [{ ...throwing, failed: fail }];
    watched.journal.push(new Float32Array(8), { op: "grad" });
    watched.journal.push(new Float32Array(8), { op: "grad" });
    watched.apply();
    expect(watched.shard.unobserved).toBe(2);
    expect(watched.block().version).toBe(3);
  });
});

describe("a record that cannot be folded", () => {
  test("is named, with its sender, and leaves the shard as one that has failed", () => {
    const folded = withW();
    Object.defineProperty(folded.shard.memory, "kernels", {
      value: new Proxy({}, { get: fail }),
    });
    folded.journal.push(new Float32Array(8), { op: "grad" }, { trainer: "bob" });
    folded.journal.note({ x: 1 });
    const [failing, next] = folded.journal.records.slice(-2);
    const expected = {
      code: "FOLD_FAILED",
      message: `shard ${SHARD}: record 4, a push of trainer "bob", cannot be folded: INTERNAL: a broken kernel`,
      details: { shard: SHARD, seq: 4, trainer: "bob", verb: "push" },
    };
    const apply = (record: typeof failing) => () => record && folded.shard.apply(record);
    expect(apply(failing)).toThrow(expect.objectContaining(expected));
    expect(apply(next)).toThrow(expect.objectContaining(expected));
  });
});

test.each(recordedNames())("%s comes to the same whether it is described or not", (name) => {
  const recorded = readJournal(name);
  if (recorded.limits !== undefined) return;
  const [plain, described] = [1, 2].map(() => Shard.create({ subjects: SUBJECTS, shard: SHARD }));
  for (const record of journalRecords(recorded)) {
    const settled = plain?.apply(record);
    const dated = { ...record, timeMs: TIME_MS };
    if (described === undefined) throw new Error("expected a shard");
    const found = foldDescribed(described, dated, { shard: SHARD, generation: 1 });
    expect(found.settled).toEqual(settled);
    expect(found.events.length).toBeGreaterThan(0);
    const kind = settled?.outcome.code === undefined ? "rejected" : "applied";
    for (const event of found.events) expect(event.outcome.kind).not.toBe(settled && kind);
  }
  expect(described?.digest()).toBe(plain?.digest());
});
