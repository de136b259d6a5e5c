// Proves the fold's rules one by one: which records are applied, how every other is answered, and
// that a rejected record changes no block. Records are encoded as trainers and hosts encode them.
import { describe, expect, test } from "vitest";
import { recordCrc } from "../../../src/actors/fold/journal-record.ts";
import { RULES_1, type Rules } from "../../../src/actors/fold/rules.ts";
import { Shard, type ShardOptions } from "../../../src/actors/fold/shard.ts";
import { draftMessage, encodeMessage, readCrc, sealMessage } from "../../../src/protocol/codec.ts";
import type { TensorData } from "../../../src/protocol/dtypes.ts";
import type { Outcome } from "../../../src/protocol/messages/outcomes.ts";
import { JournalWriter, SHARD, SUBJECTS } from "./journal-writer.ts";

const MIX = { op: "mix", alpha: 1, beta: 1 } as const;
const GRAD = { op: "grad", lr: 0.5 } as const;

const SMALL_RULES: Rules = {
  ...RULES_1,
  windowRecords: 4,
  trainersMax: 2,
  shardBytesMax: 64,
  blocksMax: 3,
};

/** A shard and its journal, folded as far as {@link Fixture.run} has been called. */
class Fixture {
  readonly journal: JournalWriter = new JournalWriter();
  readonly shard: Shard;

  constructor(options: Partial<ShardOptions> = {}) {
    this.shard = Shard.create({ subjects: SUBJECTS, shard: SHARD, ...options });
    this.journal.host({ verb: "rules", rules: 1 });
  }

  /** Folds the records not folded yet; gives the outcome of the last. */
  run(): Outcome {
    let outcome: Outcome | undefined;
    for (const record of this.journal.records.slice(this.shard.seq)) {
      outcome = this.shard.apply(record)?.outcome;
    }
    if (outcome === undefined) throw new Error("the last record is answered to nobody");
    return outcome;
  }

  /** Everything but the sequence, the trainers and what is declared: what a rejection must leave. */
  content(): unknown {
    const { seq: _seq, crc: _crc, trainers: _trainers, ...state } = this.shard.saveState();
    const { rejected: _refused, declared: _declared, ...rest } = state;
    const values = [...this.shard.blocks()].map((block) => [...block.values()]);
    return { ...rest, values };
  }

  floats(parameter = "w"): number[] {
    return [...view(this.shard, parameter, (buffer) => new Float32Array(buffer))] as number[];
  }
}

function view(
  shard: Shard,
  parameter: string,
  as: (buffer: ArrayBuffer) => TensorData,
): TensorData {
  const block = shard.block(parameter, 0);
  if (block === undefined) throw new Error(`no block of ${parameter}`);
  return as(Uint8Array.from(block.values()).buffer);
}

const f32 = (...values: number[]): Float32Array => Float32Array.from(values);

describe("order", () => {
  test("a gap stops the shard for good", () => {
    const { journal, shard } = new Fixture();
    const [rules] = journal.records;
    if (rules === undefined) throw new Error("no record");
    const jump = { ...rules, seq: 3 };
    const error = { code: "JOURNAL_DAMAGED", details: { shard: SHARD, expected: 1, found: 3 } };
    expect(() => shard.apply(jump)).toThrow(expect.objectContaining(error));
    expect(() => shard.apply(rules)).toThrow(expect.objectContaining(error));
    expect(() => shard.outcomes("alice", { session: 1, numbers: [1] })).toThrow(
      expect.objectContaining(error),
    );
    expect(shard.seq).toBe(0);
  });

  test("a record folded already is a gap too", () => {
    const { journal, shard } = new Fixture();
    for (const record of journal.records) shard.apply(record);
    for (const record of journal.records) {
      expect(() => shard.apply(record)).toThrow(
        expect.objectContaining({
          code: "JOURNAL_DAMAGED",
          details: { shard: SHARD, expected: 2, found: 1 },
        }),
      );
    }
  });
});

describe("records that name nobody", () => {
  const damage = (payload: Uint8Array): Uint8Array => payload.with(payload.length - 1, 0x55);

  test.each<[string, (journal: JournalWriter) => void]>([
    [
      "a changed bit",
      (journal) => {
        const { subject, payload } = new JournalWriter().init(f32(1, 2));
        journal.append(subject, damage(payload));
      },
    ],
    [
      "no message",
      (journal) =>
        journal.append(
          SUBJECTS.log(SHARD, "alice", "set", "w", 0),
          f32(1) as unknown as Uint8Array,
        ),
    ],
    [
      "an empty payload",
      (journal) => journal.append(SUBJECTS.log(SHARD, "alice", "set", "w", 0), new Uint8Array(0)),
    ],
    [
      "no head",
      (journal) =>
        journal.append(SUBJECTS.log(SHARD, "alice", "set", "w", 0), encodeMessage({ session: 1 })),
    ],
    [
      "a foreign subject",
      (journal) => journal.append("ps.test.log.3.trainer.alice.fly.w.0", encodeMessage({ a: 1 })),
    ],
    [
      "a trainer id longer than any",
      (journal) => {
        const subject = `ps.test.log.${SHARD}.trainer.${"a".repeat(65)}.init.w.0`;
        journal.append(subject, new JournalWriter().init(f32(1)).payload);
      },
    ],
    [
      "a parameter name longer than any",
      (journal) => {
        const subject = `ps.test.log.${SHARD}.trainer.alice.init.${"w".repeat(201)}.0`;
        journal.append(subject, new JournalWriter().init(f32(1)).payload);
      },
    ],
    [
      "another shard",
      (journal) =>
        journal.append(
          SUBJECTS.log(4, "alice", "set", "w", 0),
          new JournalWriter().set(f32(1)).payload,
        ),
    ],
    [
      "another version",
      (journal) => {
        const draft = draftMessage({ session: 1, n: 1, done: 0, reply: "" });
        draft.bytes[draft.bytes.indexOf(0x76) + 1] = 2; // after the key "v"
        journal.append(SUBJECTS.log(SHARD, "alice", "set", "w", 0), sealMessage(draft));
      },
    ],
    [
      "a malformed host record",
      (journal) =>
        journal.append(SUBJECTS.hostLog(SHARD, "floor"), encodeMessage({ session: "x" })),
    ],
    [
      "a header so long that it could nest deeper than every thread can read",
      (journal) => {
        const head = { session: 1, n: 1, done: 0, reply: "", epoch: 1, dtype: "float32" };
        const message = encodeMessage({ ...head, more: "x".repeat(1500) }, new Uint8Array(8));
        journal.append(SUBJECTS.log(SHARD, "alice", "set", "w", 0), message);
      },
    ],
  ])("%s is counted and changes nothing", (_what, write) => {
    const { journal, shard } = new Fixture();
    journal.init(f32(1, 2), { session: 1, n: 7 });
    write(journal);
    for (const record of journal.records.slice(0, 3)) shard.apply(record);
    const before = shard.saveState();
    for (const record of journal.records.slice(3)) expect(shard.apply(record)).toBeUndefined();
    const { unreadableOf: _unreadableOf, ...after } = shard.saveState();
    expect(after).toEqual({ ...before, seq: 4, crc: after.crc, unreadable: 1 });
    expect(shard.outcomes("alice", { session: 1, numbers: [1] })).toMatchObject([
      { code: "BAD_CHECKSUM" },
    ]);
  });

  test("an unreadable record that may have been damaged on its way is asked for again", () => {
    const { journal, shard } = new Fixture();
    const { subject, payload } = journal.init(f32(1, 2));
    for (const record of journal.records.slice(0, 2)) shard.apply(record);
    const before = shard.digest();
    const hurt = { seq: 3, subject, payload: damage(payload), reread: false };
    expect(() => shard.apply(hurt)).toThrow(expect.objectContaining({ code: "BAD_CHECKSUM" }));
    expect(shard.digest()).toBe(before);
    expect(shard.apply({ seq: 3, subject, payload, reread: true })?.outcome.version).toBe(1);
  });

  test("lastCrc is the checksum in the envelope, 0 where that is not valid", () => {
    const { journal, shard } = new Fixture();
    const good = journal.init(f32(1, 2));
    const bad = journal.append(good.subject, damage(good.payload));
    for (const record of journal.records.slice(0, 3)) shard.apply(record);
    expect(shard.lastCrc).toBe(readCrc(good.payload));
    expect(recordCrc(good.payload)).toBe(shard.lastCrc);
    shard.apply(bad);
    expect(shard.lastCrc).toBe(0);
    expect(recordCrc(bad.payload)).toBe(0);
  });
});

describe("rules", () => {
  test("without them no record is applied, of a trainer or of a host", () => {
    const shard = Shard.create({ subjects: SUBJECTS, shard: SHARD });
    const journal = new JournalWriter();
    journal.init(f32(1));
    journal.note({ loss: 1 });
    journal.host({ verb: "floor", session: 5 });
    const [declared, init, note, floor] = journal.records.map((record) => shard.apply(record));
    expect(init).toMatchObject({ trainer: "alice", outcome: { n: 1, code: "UNKNOWN_RULES" } });
    expect(note).toMatchObject({ trainer: "alice", outcome: { n: 2, code: "UNKNOWN_RULES" } });
    expect([declared, floor]).toEqual([undefined, undefined]);
    expect(shard.outcomes("alice", { session: 1, numbers: [1] })).toMatchObject([
      { code: "UNKNOWN_RULES" },
    ]);
    expect(shard.saveState()).toMatchObject({
      seq: 4,
      rules: 0,
      floor: 0,
      unreadable: 0,
      trainers: [],
      blocks: [],
    });
  });

  test("a version this program lacks stops the shard before the record", () => {
    const fixture = new Fixture();
    fixture.journal.init(f32(1));
    fixture.run();
    fixture.journal.host({ verb: "rules", rules: 9 });
    const error = {
      code: "UNKNOWN_RULES",
      message: expect.stringMatching(/expected rules 1; found 9/),
    };
    expect(() => fixture.run()).toThrow(expect.objectContaining(error));
    expect(fixture.shard.seq).toBe(3);
  });

  test("a rules record changes the limits from there on", () => {
    const knownRules = new Map([
      [1, SMALL_RULES],
      [2, { ...SMALL_RULES, version: 2, shardBytesMax: 128 }],
    ]);
    const fixture = new Fixture({ knownRules });
    fixture.journal.init(new Float32Array(20));
    expect(fixture.run()).toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringMatching(
        /expected at most 64 bytes of values and slots in the shard; received 80/,
      ),
    });
    fixture.journal.host({ verb: "rules", rules: 2 });
    fixture.journal.init(new Float32Array(20));
    expect(fixture.run()).toEqual({ n: 2, seq: 6, version: 1 });
    expect(fixture.shard.rules).toBe(2);
  });
});

describe("epochs", () => {
  test("a higher epoch replaces the block, an equal or lower one does not", () => {
    const fixture = new Fixture();
    const { journal } = fixture;
    journal.init(f32(1, 2), { epoch: 2 });
    expect(fixture.run()).toMatchObject({ version: 1 });
    const before = fixture.content();
    journal.init(f32(3, 4), { epoch: 2 });
    expect(fixture.run()).toMatchObject({
      code: "ALREADY_INITIALIZED",
      message: expect.stringContaining("epoch 2"),
    });
    journal.init(f32(3, 4), { epoch: 1 });
    expect(fixture.run()).toMatchObject({
      code: "STALE_EPOCH",
      message: expect.stringMatching(/expected epoch 2; received 1/),
    });
    expect(fixture.content()).toEqual(before);
    journal.push(f32(1, 1), MIX, { epoch: 2 });
    journal.init(f32(5, 6, 7), { epoch: 3 });
    expect(fixture.run()).toMatchObject({ version: 1 });
    expect(fixture.floats()).toEqual([5, 6, 7]);
    expect(fixture.shard.block("w", 0)).toMatchObject({
      epoch: 3,
      version: 1,
      updates: 0,
      shape: [3],
    });
    expect(fixture.shard.valueBytes).toBe(12);
  });

  test.each([1, 3])("push and set under epoch %d are rejected by a block of epoch 2", (epoch) => {
    const fixture = new Fixture();
    fixture.journal.init(f32(1, 2), { epoch: 2 });
    fixture.run();
    const before = fixture.content();
    const stale = {
      code: "STALE_EPOCH",
      message: expect.stringContaining(`expected epoch 2; received ${epoch}`),
    };
    fixture.journal.push(f32(1, 1), MIX, { epoch });
    expect(fixture.run()).toMatchObject(stale);
    fixture.journal.set(f32(1, 1), { epoch });
    expect(fixture.run()).toMatchObject(stale);
    expect(fixture.content()).toEqual(before);
  });

  test("a block that was never initialized, or dropped, takes nothing but an init", () => {
    const fixture = new Fixture();
    const { journal } = fixture;
    journal.push(f32(1), MIX);
    expect(fixture.run()).toMatchObject({
      code: "NOT_INITIALIZED",
      message: expect.stringContaining('"w" block 0'),
    });
    journal.init(f32(1), { epoch: 2 });
    journal.init(f32(1), { epoch: 3, parameter: "v" });
    journal.host({ verb: "drop", parameter: "v", epoch: 2 });
    journal.host({ verb: "drop", parameter: "w", epoch: 2 });
    journal.set(f32(1), { epoch: 2 });
    expect(fixture.run()).toMatchObject({ code: "NOT_INITIALIZED" });
    expect([...fixture.shard.blocks()].map((block) => block.parameter)).toEqual(["v"]);
    journal.init(f32(9), { epoch: 2 });
    expect(fixture.run()).toMatchObject({ version: 1 });
  });
});

describe("fit", () => {
  const refusals: [string, (journal: JournalWriter) => void, string, RegExp][] = [
    [
      "another element type",
      (j) => j.set(Float64Array.of(1)),
      "BAD_DTYPE",
      /expected float32; received float64/,
    ],
    [
      "another length",
      (j) => j.push(f32(1, 2, 3), MIX),
      "BAD_LENGTH",
      /expected 8 bytes; received 12/,
    ],
    [
      "half an element",
      (j) =>
        j.trainer({}, new Uint8Array(6), (head) => ({ verb: "set", ...head, dtype: "float32" })),
      "BAD_LENGTH",
      /multiple of 4; received 6/,
    ],
    ["no elements", (j) => j.set(f32()), "BAD_LENGTH", /multiple of 4; received 0/],
    [
      "an init whose bytes do not fit its count",
      (j) => j.init(f32(1, 2), { parameter: "v", shape: [3], count: 3 }),
      "BAD_LENGTH",
      /expected 12; received 8/,
    ],
    [
      "an init beyond its shape",
      (j) => j.init(f32(1, 2), { parameter: "v", shape: [3], start: 2 }),
      "BAD_MESSAGE",
      /count: expected .* to 1; received 2/,
    ],
    [
      "block 0 that does not begin at 0",
      (j) => j.init(f32(1), { parameter: "v", shape: [3], start: 1 }),
      "BAD_VALUE",
      /expected 1 elements from 0 on, in shard 3; received 1 from 1 on/,
    ],
    [
      "a short block that is not the last",
      (j) => j.init(f32(1), { parameter: "v", index: 1, shape: [9], start: 3 }),
      "BAD_VALUE",
      /"v" block 1/,
    ],
    [
      "a block that is longer than those before",
      (j) => j.init(f32(1, 2, 3), { parameter: "v", index: 1, shape: [5], start: 2 }),
      "BAD_VALUE",
      /"v" block 1/,
    ],
    [
      "an unknown operation",
      (j) => j.push(f32(1, 2), { op: "div" } as never),
      "BAD_MESSAGE",
      /expected mix or grad; received "div"/,
    ],
  ];

  test.each(refusals)("%s is rejected", (_what, write, code, message) => {
    const fixture = new Fixture();
    fixture.journal.init(f32(1, 2));
    fixture.run();
    const before = fixture.content();
    write(fixture.journal);
    const outcome = fixture.run();
    expect(outcome).toMatchObject({
      n: 2,
      version: 0,
      code,
      message: expect.stringMatching(message),
    });
    expect(fixture.content()).toEqual(before);
    expect(fixture.shard.outcomes("alice", { session: 1, numbers: [2] })).toEqual([outcome]);
  });

  test("blocks of a cut parameter are taken in any order, the last one shorter", () => {
    const fixture = new Fixture();
    const { journal } = fixture;
    const shape = [19];
    journal.declare(f32(3, 4), { index: 1, shape, start: 2 });
    const init = (index: number, values: Float32Array): void => {
      journal.init(values, { index, shape, start: 2 * index });
    };
    init(9, f32(5));
    init(5, f32(3, 4));
    init(1, f32(1, 2));
    expect(fixture.run()).toMatchObject({ n: 3, version: 1 });
    expect(fixture.shard.saveState().blocks.map((block) => block.index)).toEqual([1, 5, 9]);
  });

  test("the shard's bytes and blocks are bounded by count", () => {
    const fixture = new Fixture({ knownRules: new Map([[1, SMALL_RULES]]) });
    const { journal } = fixture;
    journal.init(new Float32Array(12), { done: 0 });
    journal.init(new Float32Array(4), { parameter: "v", done: 1 });
    expect(fixture.run()).toMatchObject({ version: 1 });
    const before = fixture.content();
    journal.init(f32(1), { parameter: "u", done: 2 });
    expect(fixture.run()).toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringMatching(/at most 64 bytes.*received 68/),
    });
    expect(fixture.content()).toEqual(before);
    journal.init(f32(1), { epoch: 2, done: 3 });
    journal.init(f32(1), { parameter: "u", done: 4 });
    expect(fixture.run()).toMatchObject({ version: 1 });
    journal.init(f32(1), { parameter: "t", done: 5 });
    expect(fixture.run()).toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringMatching(/at most 3 blocks.*received 4/),
    });
  });
});

describe("configuration", () => {
  const refusals: [
    string,
    unknown,
    TensorData,
    (journal: JournalWriter) => void,
    string,
    RegExp,
  ][] = [
    [
      "a NaN",
      {},
      f32(1, 2),
      (j) => j.push(f32(1, Number.NaN), GRAD, { norm: 1 }),
      "NON_FINITE",
      /expected finite elements/,
    ],
    [
      "an infinity in a mix",
      {},
      f32(1, 2),
      (j) => j.push(f32(Number.NEGATIVE_INFINITY, 1), MIX, { norm: 1 }),
      "NON_FINITE",
      /finite elements/,
    ],
    [
      "a NaN in a set",
      {},
      f32(1, 2),
      (j) => j.set(f32(1, Number.NaN)),
      "NON_FINITE",
      /finite elements/,
    ],
    [
      "a NaN in an init",
      {},
      f32(1, 2),
      (j) => j.init(f32(1, Number.NaN), { parameter: "v" }),
      "NON_FINITE",
      /"v" block 0: expected finite elements/,
    ],
    [
      "a norm that is not finite",
      {},
      f32(1, 2),
      (j) => j.push(f32(1, 1), GRAD, { norm: Number.POSITIVE_INFINITY }),
      "NON_FINITE",
      /expected a finite norm; received Infinity/,
    ],
    [
      "a gradient without a rate",
      {},
      f32(1, 2),
      (j) => j.push(f32(1, 1), { op: "grad" }),
      "NO_LEARNING_RATE",
      /expected a learning rate.*received none/,
    ],
    [
      "a gradient for integers",
      { learningRate: 1 },
      Int32Array.of(1, 2),
      (j) => j.push(Int32Array.of(1, 1), { op: "grad" }),
      "UNSUPPORTED",
      /is int32/,
    ],
    [
      "a reply to another trainer",
      {},
      f32(1, 2),
      (j) => j.set(f32(1, 1), { reply: `${SUBJECTS.inbox("bob")}.1` }),
      "BAD_REPLY",
      /under the trainer's inbox.*bob/,
    ],
    [
      "a reply to a request subject",
      {},
      f32(1, 2),
      (j) => j.init(f32(1), { parameter: "v", reply: "ps.test.lifecycle.alice.leave" }),
      "BAD_REPLY",
      /lifecycle/,
    ],
  ];

  test.each(refusals)("%s is rejected", (_what, config, values, write, code, message) => {
    const fixture = new Fixture();
    fixture.journal.init(values, { config });
    fixture.run();
    const before = fixture.content();
    write(fixture.journal);
    expect(fixture.run()).toMatchObject({
      n: 2,
      version: 0,
      code,
      message: expect.stringMatching(message),
    });
    expect(fixture.content()).toEqual(before);
  });

  test("an element in the last chunk of a long push is checked before the first is applied", () => {
    const fixture = new Fixture();
    const gradient = new Float32Array(300_000).fill(1);
    fixture.journal.init(new Float32Array(300_000));
    fixture.run();
    const digestOfBlock = (): string =>
      Buffer.from(fixture.shard.block("w", 0)?.values() ?? []).toString("base64");
    const before = digestOfBlock();
    gradient[299_999] = Number.NaN;
    fixture.journal.push(gradient, GRAD, { norm: 1 });
    expect(fixture.run()).toMatchObject({ code: "NON_FINITE" });
    expect(digestOfBlock()).toBe(before);
  });

  test("a parameter that allows them keeps NaN in its one canonical form", () => {
    const fixture = new Fixture();
    const odd = new Float32Array(Uint32Array.of(0xffc0_1234, 0x7f80_0001, 0x7f80_0000).buffer);
    fixture.journal.init(odd, { config: { allowNonFinite: true } });
    fixture.journal.set(odd);
    expect(fixture.run()).toMatchObject({ version: 2 });
    const bits = new Uint32Array(
      Uint8Array.from(fixture.shard.block("w", 0)?.values() ?? []).buffer,
    );
    expect([...bits]).toEqual([0x7fc0_0000, 0x7fc0_0000, 0x7f80_0000]);
    fixture.journal.push(f32(1, 1, 1), MIX, { norm: Number.NaN });
    expect(fixture.run()).toMatchObject({ version: 3 });
  });

  test("the rate of the call counts before the parameter's", () => {
    const fixture = new Fixture();
    fixture.journal.init(f32(1), { config: { learningRate: 0.25 } });
    fixture.journal.push(f32(1), { op: "grad" });
    fixture.journal.push(f32(1), GRAD);
    fixture.run();
    expect(fixture.floats()).toEqual([0.25]);
    expect(fixture.shard.block("w", 0)).toMatchObject({ version: 3, updates: 2 });
  });

  test("a reply that may not be sent to is not handed out, and none is needed", () => {
    const fixture = new Fixture();
    fixture.journal.init(f32(1), { reply: "" });
    fixture.journal.set(f32(1), { reply: "somewhere.else" });
    const settled = fixture.journal.records.map((record) => fixture.shard.apply(record));
    expect(settled[2]).toMatchObject({ reply: "", outcome: { version: 1 } });
    expect(settled[3]).toMatchObject({ reply: "", outcome: { code: "BAD_REPLY" } });
  });
});

describe("hooks", () => {
  test("report a change before it happens and a removal after it has", () => {
    const events: string[] = [];
    const note =
      (what: string) =>
      (block: { parameter: string; epoch: number; version: number; values(): Uint8Array }) => {
        const bytes =
          what === "removed"
            ? ""
            : ` [${new Float32Array(Uint8Array.from(block.values()).buffer)}]`;
        events.push(`${what} ${block.parameter} ${block.epoch}.${block.version}${bytes}`);
      };
    const hooks = {
      blockAdded: note("added"),
      blockRemoved: note("removed"),
      beforeChange: note("before"),
    };
    const fixture = new Fixture({ hooks });
    const { journal } = fixture;
    journal.init(f32(1));
    journal.push(f32(1), MIX);
    journal.set(f32(7));
    journal.set(f32(Number.NaN));
    journal.init(f32(8, 9), { epoch: 2 });
    fixture.run();
    journal.host({ verb: "drop", parameter: "w", epoch: 2 });
    for (const record of journal.records.slice(fixture.shard.seq)) fixture.shard.apply(record);
    expect(events).toEqual([
      "added w 1.1 [1]",
      "before w 1.1 [1]",
      "before w 1.2 [2]",
      "before w 1.3 [7]",
      "removed w 1.3",
      "added w 2.1 [8,9]",
      "before w 2.1 [8,9]",
      "removed w 2.1",
    ]);
  });

  test("a removed block cannot be read by mistake", () => {
    const fixture = new Fixture();
    fixture.journal.init(f32(1));
    fixture.run();
    const block = fixture.shard.block("w", 0);
    fixture.journal.init(f32(2), { epoch: 2 });
    fixture.run();
    expect(() => block?.values()).toThrow(expect.objectContaining({ code: "INTERNAL" }));
    expect(() => fixture.shard.block("w", 0)?.slotBytes(1)).toThrow(
      expect.objectContaining({ code: "BAD_VALUE" }),
    );
  });
});
