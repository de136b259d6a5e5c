// Proves how a shard folds the records of steps: what clocks and gradients are answered, that a step
// changes values and versions only when it closes, what is applied at once all the same, and that states
// which no fold can have are refused.
import { beforeEach, describe, expect, test } from "vitest";
import { type RecordAnswer, Shard } from "../../../src/actors/fold/shard.ts";
import { encodeMessage, packValue, unpackValue } from "../../../src/protocol/codec.ts";
import {
  type SynchronizationInput,
  toSynchronization,
} from "../../../src/protocol/config/index.ts";
import { encodeClock } from "../../../src/protocol/messages/records.ts";
import { JournalWriter, SHARD, SUBJECTS } from "./journal-writer.ts";

const OPTIONS = { subjects: SUBJECTS, shard: SHARD };
const STEPS = { revision: 1, started: true, closed: 0, members: [["a", 0]], participants: [] };
const SYNC = { mode: "sync", trainers: 2 } as const;

let journal: JournalWriter;
let shard: Shard;
/** The number of each trainer's last clock. */
let clocks: Map<string, number>;

/** A shard of such a job, with `w` = [1, 1] and alice and bob as members. */
function begin(synchronization: SynchronizationInput): void {
  journal = new JournalWriter();
  shard = Shard.create(OPTIONS);
  clocks = new Map();
  journal.host({ verb: "rules", rules: 1, synchronization: toSynchronization(synchronization) });
  journal.init(Float32Array.of(1, 1), { trainer: "init", config: { learningRate: 1 } });
  journal.init(Int32Array.of(1), {
    trainer: "init",
    parameter: "i",
    config: { optimizer: "none" },
  });
  journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice", "bob"] });
  fold();
}

beforeEach(() => begin(SYNC));

/** Folds what has been written since; the last answer. */
function fold(): RecordAnswer | undefined {
  let settled: RecordAnswer | undefined;
  for (const record of journal.records.slice(shard.seq)) settled = shard.apply(record);
  return settled;
}

function gradient(
  trainer: string,
  value: number,
  step?: number,
): RecordAnswer["outcome"] | undefined {
  const operation =
    step === undefined ? ({ op: "grad" } as const) : ({ op: "grad", step } as const);
  journal.push(Float32Array.of(value, value), operation, { trainer });
  return fold()?.outcome;
}

function clock(trainer: string, step: number, reply = ""): RecordAnswer["outcome"] | undefined {
  // Far from those of gradients, and within the window.
  const n = (clocks.get(trainer) ?? 1_000) + 1;
  clocks.set(trainer, n);
  const head = { session: 1, n, done: 0, reply };
  journal.append(SUBJECTS.clock(SHARD, trainer), encodeClock({ verb: "clock", ...head, step }));
  return fold()?.outcome;
}

function w(): number[] {
  return [...new Float32Array(Uint8Array.from(shard.block("w", 0)?.values() ?? []).buffer)];
}

describe("a step of sync", () => {
  test("adds gradients up, and changes values and version when it closes", () => {
    const version = shard.block("w", 0)?.version ?? 0;
    expect(gradient("alice", 1, 1)).toMatchObject({ version });
    expect(gradient("bob", 3, 1)).toMatchObject({ version });
    expect(w()).toEqual([1, 1]);
    expect(clock("alice", 1)).toMatchObject({ version: 0 });
    expect(shard.steps.waitingFor(16)).toEqual(["bob"]);
    clock("bob", 1);
    expect(w()).toEqual([-1, -1]);
    expect(shard.block("w", 0)).toMatchObject({ version: version + 1, updates: 1 });
    expect(shard.steps.closed).toBe(1);
  });

  test("rejects a gradient that does not belong to it, with its reason", () => {
    expect(gradient("alice", 1)).toMatchObject({ code: "BAD_VALUE" });
    expect(gradient("carol", 1, 1)).toMatchObject({ code: "NOT_MEMBER" });
    expect(gradient("alice", 1, 2)).toMatchObject({ code: "EARLY" });
    expect(gradient("alice", 1, 1)?.code).toBeUndefined();
    expect(gradient("alice", 1, 1)).toMatchObject({
      code: "LATE",
      message: expect.stringContaining(
        '"w" block 0: expected one gradient of each trainer in step 1',
      ),
    });
    clock("alice", 1);
    clock("bob", 1);
    expect(gradient("bob", 1, 1)).toMatchObject({ code: "LATE" });
    expect(w()).toEqual([0.5, 0.5]);
  });

  test("delays nothing else: mix, set and integers are applied at once", () => {
    journal.push(Float32Array.of(1, 1), { op: "mix", alpha: 1, beta: 1 }, { trainer: "carol" });
    fold();
    expect(w()).toEqual([2, 2]);
    for (const step of [undefined, 7]) {
      const operation =
        step === undefined ? ({ op: "grad" } as const) : ({ op: "grad", step } as const);
      journal.push(Int32Array.of(4), operation, { trainer: "carol", parameter: "i" });
      expect(fold()?.outcome.code).toBeUndefined();
    }
    expect(shard.block("i", 0)?.values()[0]).toBe(9);
  });
});

describe("a clock", () => {
  test("is answered like any record: once, and where it may be", () => {
    expect(clock("alice", 1, "elsewhere")).toMatchObject({ code: "BAD_REPLY" });
    expect(clock("carol", 1)).toMatchObject({ code: "NOT_MEMBER" });
    const settled = clock("alice", 1, `${SUBJECTS.inbox("alice")}.1`);
    const repeat = journal.records.at(-1);
    journal.append(repeat?.subject ?? "", repeat?.payload ?? new Uint8Array(0));
    expect(fold()).toMatchObject({ trainer: "alice", reply: `${SUBJECTS.inbox("alice")}.1` });
    expect(shard.outcomes("alice", { session: 1, numbers: [settled?.n ?? 0] })).toEqual([settled]);
    expect(shard.steps.waitingFor(16)).toEqual(["bob"]);
  });

  test("that is malformed is rejected", () => {
    const head = { session: 1, n: 1, done: 0, reply: "" };
    journal.append(SUBJECTS.clock(SHARD, "alice"), encodeMessage({ ...head, step: 0 }));
    expect(fold()?.outcome).toMatchObject({ code: "BAD_MESSAGE" });
  });

  test("is rejected in a job without steps, where members are ignored", () => {
    begin("async");
    expect(clock("alice", 1)).toMatchObject({ code: "UNSUPPORTED" });
    expect(shard.saveState().steps).toBeUndefined();
    expect(gradient("alice", 1, 1)).toMatchObject({ code: "BAD_VALUE" });
    expect(gradient("alice", 1)?.code).toBeUndefined();
  });
});

test("a clock in ssp closes steps and changes no block", () => {
  begin({ mode: "ssp", trainers: 2, staleness: 0 });
  gradient("alice", 1);
  clock("alice", 5);
  clock("bob", 3);
  expect(shard.steps.closed).toBe(3);
  expect(w()).toEqual([0, 0]);
  expect(shard.block("w", 0)?.version).toBe(2);
});

test("members before the rules are ignored, like everything before them", () => {
  journal = new JournalWriter();
  shard = Shard.create(OPTIONS);
  journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice"] });
  journal.host({ verb: "rules", rules: 1, synchronization: toSynchronization(SYNC) });
  fold();
  expect(shard.steps.revision).toBe(0);
});

describe("a saved state", () => {
  const saved = (): Record<string, unknown> =>
    unpackValue(packValue(shard.saveState())) as Record<string, unknown>;
  const slots = (): Uint8Array => new Uint8Array(8);
  const restore = (state: unknown): unknown =>
    Shard.restore(OPTIONS, state, (block, slot) => block.slotBytes(slot).slice());

  test("continues in the middle of a step", () => {
    gradient("alice", 1, 1);
    clock("alice", 1);
    const state = saved();
    const bytes = (name: string, slot: number): Uint8Array =>
      shard.block(name, 0)?.slotBytes(slot).slice() ?? slots();
    const again = Shard.restore(OPTIONS, state, (block, slot) => bytes(block.parameter, slot));
    clock("bob", 1);
    again.apply(journal.records.at(-1) as (typeof journal.records)[number]);
    expect(again.digest()).toBe(shard.digest());
    expect(again.steps.closed).toBe(1);
  });

  test.each<[string, Record<string, unknown>]>([
    ["without its steps", { steps: undefined }],
    ["with steps in a job that has none", { synchronization: { mode: "async" } }],
    ["with steps that are none", { steps: { revision: -1 } }],
    ["with members who were never told", { steps: { ...STEPS, revision: 0 } }],
  ])("is refused %s", (_what, changes) => {
    const state = { ...saved(), ...changes };
    expect(() => restore(state)).toThrow(expect.objectContaining({ code: "SNAPSHOT_DAMAGED" }));
  });
});
