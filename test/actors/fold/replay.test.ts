// Proves that the state is a function of the journal: random journals, folded once and folded again
// from a state saved at every cut, give equal digests and equal answers; and that a saved state that
// contradicts itself is refused. The saved state goes through its encoding, as in a snapshot.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { BlockHeader } from "../../../src/actors/fold/block-actor.ts";
import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import { RULES_1, type Rules } from "../../../src/actors/fold/rules.ts";
import { type RecordAnswer, Shard } from "../../../src/actors/fold/shard.ts";
import { packValue, sealMessage, unpackValue } from "../../../src/protocol/codec.ts";
import { JournalWriter, SHARD, SUBJECTS } from "./journal-writer.ts";

const RULES: Rules = {
  ...RULES_1,
  windowRecords: 4,
  trainersMax: 3,
  shardBytesMax: 96,
  blocksMax: 4,
};
const OPTIONS = { subjects: SUBJECTS, shard: SHARD, knownRules: new Map([[1, RULES]]) };
type Values = (block: BlockHeader) => Uint8Array;

const sender = {
  trainer: fc.constantFrom("alice", "bob", "Łucja", "d.e"),
  session: fc.integer({ min: 1, max: 4 }),
  n: fc.integer({ min: 1, max: 9 }),
  reply: fc.constantFrom("", "nowhere"),
  parameter: fc.constantFrom("w", "emb:0", "ü"),
  epoch: fc.integer({ min: 1, max: 3 }),
};
const number = fc.oneof(
  fc.constantFrom(0, -0, 1, Number.NaN, Number.POSITIVE_INFINITY, 1e-40, 3e38),
  fc.float({ noNaN: true }),
);
const values = fc.array(number, { minLength: 1, maxLength: 3 });
const learningRate = fc.constantFrom(0.5, -0, 3);
const config = fc.oneof(
  fc.record({ learningRate, allowNonFinite: fc.boolean() }, { requiredKeys: [] }),
  fc.record({
    learningRate,
    guard: fc.record({
      action: fc.constantFrom("reject" as const, "clip" as const, "set-aside" as const),
      history: fc.constantFrom("trainer" as const, "cohort" as const),
      window: fc.constant(3),
      warmup: fc.constant(1),
      factor: fc.constantFrom(1, 1.5),
    }),
  }),
);

type Step = (journal: JournalWriter) => void;
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ ...sender, values, config, wide: fc.boolean() }).map(
      ({ values, wide, ...rest }): Step =>
        (journal) => {
          journal.init(wide ? Float64Array.from(values) : Float32Array.from(values), rest);
        },
    ),
  },
  {
    weight: 6,
    arbitrary: fc.record({ ...sender, values, grad: fc.boolean(), back: fc.nat(9) }).map(
      ({ values, grad, back, ...rest }): Step =>
        (journal) => {
          const operation = grad
            ? ({ op: "grad" } as const)
            : ({ op: "mix", alpha: 0.5, beta: 2 } as const);
          const done = Math.max(0, rest.n - 1 - back);
          journal.push(Float32Array.from(values), operation, { ...rest, done });
        },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record({ ...sender, values }).map(
      ({ values, ...rest }): Step =>
        (journal) => {
          journal.set(Float32Array.from(values), rest);
        },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({ parameter: sender.parameter, epoch: sender.epoch }).map(
      (drop): Step =>
        (journal) => {
          journal.host({ verb: "drop", ...drop });
        },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.nat(2).map(
      (session): Step =>
        (journal) => {
          journal.host({ verb: "floor", session });
        },
    ),
  },
  {
    weight: 1,
    arbitrary: fc.uint8Array({ maxLength: 20 }).map(
      (payload): Step =>
        (journal) => {
          journal.append(SUBJECTS.log(SHARD, "alice", "push", "w", 0), payload);
        },
    ),
  },
);
const journals = fc.array(step, { maxLength: 25 }).map((steps): readonly JournalRecord[] => {
  const journal = new JournalWriter();
  journal.host({ verb: "rules", rules: 1 });
  for (const write of steps) write(journal);
  return journal.records;
});

interface Saved {
  readonly state: Uint8Array;
  readonly values: ReadonlyMap<string, Uint8Array>;
}

function save(shard: Shard): Saved {
  const values = [...shard.blocks()].map(
    (block) => [`${block.parameter} ${block.index}`, block.values().slice()] as const,
  );
  return { state: packValue(shard.saveState()), values: new Map(values) };
}

function restore({ state, values }: Saved): Shard {
  const read: Values = (block) =>
    values.get(`${block.parameter} ${block.index}`) ?? new Uint8Array(0);
  return Shard.restore(OPTIONS, unpackValue(state), read);
}

describe("replay", () => {
  test("from a state saved at any record it ends in the same state with the same answers", () => {
    fc.assert(
      fc.property(journals, fc.infiniteStream(fc.boolean()), (records, cuts) => {
        const shard = Shard.create(OPTIONS);
        const answers: (RecordAnswer | undefined)[] = [];
        const saved: Saved[] = [];
        for (const record of records) {
          answers.push(shard.apply(record));
          if (cuts.next().value) saved.push(save(shard));
        }
        for (const snapshot of saved) {
          const again = restore(snapshot);
          expect(Buffer.compare(packValue(again.saveState()), snapshot.state)).toBe(0);
          for (const record of records.slice(again.seq)) {
            expect(again.apply(record)).toEqual(answers[record.seq - 1]);
          }
          expect(again.digest()).toBe(shard.digest());
        }
      }),
      { numRuns: 60 },
    );
  });

  test("a learning rate of negative zero, which a saved state cannot hold, is zero", () => {
    // This codec writes -0 as the integer 0; others may write the float, and its sign reaches values.
    const journal = new JournalWriter(false);
    journal.host({ verb: "rules", rules: 1 });
    journal.declare(Float64Array.of(-0), { config: { learningRate: 0 } });
    const init = journal.init(Float64Array.of(-0), { config: { learningRate: 1.5 } });
    const at = Buffer.from(init.payload).indexOf(Buffer.from("cb3ff8000000000000", "hex"));
    init.payload.set(Buffer.from("cb8000000000000000", "hex"), at);
    sealMessage({ bytes: init.payload, data: init.payload });
    journal.push(Float64Array.of(1), { op: "grad" });
    const shard = Shard.create(OPTIONS);
    const saved: Saved[] = [];
    for (const record of journal.records) {
      expect(shard.apply(record)?.outcome.code).toBeUndefined();
      saved.push(save(shard));
    }
    const again = restore(saved[2] as Saved);
    again.apply(journal.records[3] as JournalRecord);
    expect(again.digest()).toBe(shard.digest());
    expect(again.block("w", 0)?.config.learningRate).toEqual({ schedule: "constant", rate: 0 });
    expect(shard.block("w", 0)?.config.learningRate).toEqual({ schedule: "constant", rate: 0 });
  });

  test("a different journal gives a different digest", () => {
    const digestOf = (value: number): string => {
      const shard = Shard.create(OPTIONS);
      const journal = new JournalWriter();
      journal.host({ verb: "rules", rules: 1 });
      journal.init(Float32Array.of(value), { reply: "" });
      for (const record of journal.records) shard.apply(record);
      return shard.digest();
    };
    expect(digestOf(1)).toBe(digestOf(1));
    expect(digestOf(1)).not.toBe(digestOf(2));
  });

  test("a journal made anew begins at 1 and keeps all else; outcomes before it stay settled", () => {
    const { shard, journal } = twoBlocks();
    const before = shard.saveState();
    const trainers = before.trainers.map(([trainer, session, done, outcomes]) => {
      return [trainer, session, done, outcomes.map(([n = 0, , ...rest]) => [n, 0, ...rest])];
    });
    shard.restartJournal();
    expect(shard.saveState()).toEqual({ ...before, seq: 0, crc: 0, trainers });
    const repeat = { ...(journal.records[2] as JournalRecord), seq: 1 };
    expect(shard.apply(repeat)?.outcome).toEqual({ n: 1, seq: 0, version: 1 });
  });
});

describe("a journal gap that is skipped", () => {
  test("moves the place of the next record and nothing else; the saved state agrees", () => {
    const { shard, journal } = twoBlocks();
    const before = shard.saveState();
    const last = before.seq;
    shard.skipTo(last + 5);
    expect(shard.saveState()).toEqual({ ...before, seq: last + 5, crc: 0 });
    const again = restore(save(shard));
    const next = { ...journal.push(Float32Array.of(1, 1), { op: "grad", lr: 1 }), seq: last + 6 };
    expect(again.apply(next)).toEqual(shard.apply(next));
    expect(again.digest()).toBe(shard.digest());
  });

  test("holds no record numbers: one lost in it is rejected when asked for, and applied when sent again", () => {
    const { shard, journal } = twoBlocks();
    const lost = journal.push(Float32Array.of(1, 1), { op: "grad", lr: 1 }, { n: 3 });
    shard.skipTo(lost.seq);
    const request = { session: 1, numbers: [3] };
    expect(shard.outcomes("alice", request)).toMatchObject([{ code: "BAD_CHECKSUM" }]);
    const repeat = { ...lost, seq: lost.seq + 1 };
    const settled = shard.apply(repeat);
    expect(settled?.outcome.code).toBeUndefined();
    expect(shard.outcomes("alice", request)).toEqual([settled?.outcome]);
  });

  test("cannot reach back over folded records", () => {
    const { shard } = twoBlocks();
    const before = shard.digest();
    expect(() => shard.skipTo(shard.seq)).toThrow(expect.objectContaining({ code: "INTERNAL" }));
    expect(shard.digest()).toBe(before);
  });
});

describe("restore", () => {
  const good = (): Record<string, unknown> =>
    unpackValue(packValue(twoBlocks().shard.saveState())) as Record<string, unknown>;
  const block = (changes: object, at = 0): object => {
    const blocks = good()["blocks"] as object[];
    return { blocks: blocks.map((header, i) => (i === at ? { ...header, ...changes } : header)) };
  };
  const eight: Values = () => new Uint8Array(8);

  test("tells the host of every block", () => {
    const added: string[] = [];
    const hooks = { blockAdded: (block: BlockHeader) => added.push(block.parameter) };
    const shard = Shard.restore({ ...OPTIONS, hooks }, good(), eight);
    expect(added).toEqual(["v", "w"]);
    expect(shard.valueBytes).toBe(16);
    expect(shard.saveState()).toEqual(good());
  });

  test.each<[string, object | undefined, RegExp]>([
    ["no map", undefined, /expected a map/],
    ["another format", { format: 2 }, /format: expected .* 1 to 1; received 2/],
    ["a sequence that is none", { seq: -1 }, /seq: .* received -1/],
    ["trainers that are no list", { trainers: {} }, /trainers/],
    [
      "a trainer twice",
      {
        trainers: [
          ["a", 1, 0, []],
          ["a", 2, 0, []],
        ],
      },
      /expected one entry/,
    ],
    ["a session under the floor", { floor: 1 }, /session that is live or above 1/],
    [
      "an outcome up to done",
      { trainers: [["a", 1, 3, [[3, 2, 1]]]] },
      /numbers from 4 to 7; received .* numbers 3/,
    ],
    [
      "an outcome beyond the window",
      { trainers: [["a", 1, 0, [[5, 2, 1]]]] },
      /numbers from 1 to 4/,
    ],
    [
      "an outcome twice",
      {
        trainers: [
          [
            "a",
            1,
            0,
            [
              [1, 2, 1],
              [1, 2, 1],
            ],
          ],
        ],
      },
      /one outcome a number/,
    ],
    [
      "more trainers than the rules allow",
      { trainers: ["a", "b", "c", "d"].map((id) => [id, 1, 0, []]) },
      /at most 3/,
    ],
    ["state before any rules", { rules: 0 }, /before the first rules/],
    ["a block twice", block({ parameter: "w" }), /"w" block 0, number 1: expected once/],
    [
      "a block of another length",
      block({ shape: [3], count: 3 }),
      /"v" block 0 slot 0: expected 12 bytes; received 8/,
    ],
    ["a block out of place", block({ index: 3 }), /contradicts itself/],
    ["more updates than changes", block({ updates: 1 }), /contradicts itself/],
    ["an unknown element type", block({ dtype: "int4" }), /dtype/],
    ["a configuration that is none", block({ config: { optimizer: "x" } }), /optimizer/],
    [
      "more bytes than the rules allow",
      block({ shape: [25], count: 25 }),
      /more than a shard may hold/,
    ],
  ])("refuses %s", (_what, changes, message) => {
    const state = changes === undefined ? 7 : { ...good(), ...changes };
    expect(() => Shard.restore(OPTIONS, state, eight)).toThrow(
      expect.objectContaining({
        code: "SNAPSHOT_DAMAGED",
        message: expect.stringMatching(message),
      }),
    );
  });

  test("refuses rules it lacks", () => {
    expect(() => Shard.restore(OPTIONS, { ...good(), rules: 7 }, eight)).toThrow(
      expect.objectContaining({ code: "UNKNOWN_RULES" }),
    );
  });
});

function twoBlocks(): { shard: Shard; journal: JournalWriter } {
  const shard = Shard.create(OPTIONS);
  const journal = new JournalWriter();
  journal.host({ verb: "rules", rules: 1 });
  journal.init(Float32Array.of(1, 2), { reply: "" });
  journal.init(Float32Array.of(3, 4), { reply: "", parameter: "v" });
  for (const record of journal.records) shard.apply(record);
  return { shard, journal };
}
