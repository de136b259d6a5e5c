// Proves that every kind of record is described as it was folded: records and batches, operations, types,
// encodings and parts, steps, notes and hosts' records; applied, rejected, repeated and unreadable; and that
// a description costs the fold nothing: the shard comes to the same bytes with and without one.
import { describe, expect, test } from "vitest";
import { Shard } from "../../../src/actors/fold/shard.ts";
import { foldDescribed } from "../../../src/actors/updates/fold-described.ts";
import type { UpdateEvent } from "../../../src/actors/updates/update-event.ts";
import { encodeMessage } from "../../../src/protocol/codec.ts";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import { Folded } from "../fold/folded.ts";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";
import { journalRecords, readJournal, recordedNames } from "../fold/recorded/journal-file.ts";

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

  test("a rejected batch is one event for each entry, or one if it cannot be taken apart", () => {
    const described = withW();
    const { journal } = described;
    const change = { kind: "set" } as const;
    journal.batch([
      { parameter: "gone", data: new Float32Array(2), change },
      { parameter: "w", data: new Float32Array(8), change },
    ]);
    const events = described.events();
    expect(events.map(({ outcome }) => outcome.kind)).toEqual(["rejected", "rejected"]);
    expect(events[1]).toMatchObject({ verb: "set", block: { parameter: "w", version: 1 } });
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
