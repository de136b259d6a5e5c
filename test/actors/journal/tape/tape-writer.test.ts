import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Block } from "../../../../src/actors/fold/block-actor.ts";
import type { Shard } from "../../../../src/actors/fold/shard.ts";
import { tapeSpan } from "../../../../src/actors/journal/tape/tape-decoder.ts";
import type { TapeStore } from "../../../../src/actors/journal/tape/tape-store.ts";
import { TapeWriter } from "../../../../src/actors/journal/tape/tape-writer.ts";
import type { ShardHistory } from "../../../../src/history/source.ts";
import { type TapePart, tapeUpdates } from "../../../../src/history/update-stream.ts";
import { PserverError } from "../../../../src/protocol/errors.ts";
import { Folded } from "../../fold/folded.ts";
import { SHARD } from "../../fold/journal-writer.ts";

// Proves that a tape has the lines of every record exactly once for its reader, whatever happens to the
// owners that write it: messages that are not stored, answers that are lost, owners that crash and are
// followed by others, and two at one time. A snapshot that was committed covers no record without a line.

/** A stream in memory whose next appends fail as they are told to. */
class MemoryTape {
  readonly messages: Uint8Array[] = [];
  readonly faults: ("refused" | "lost-answer")[] = [];
  /** Whether the stream is gone. */
  isGone = false;

  store(): Pick<TapeStore, "last" | "append"> {
    return {
      last: () => {
        if (this.isGone) return Promise.reject(new PserverError("JETSTREAM_UNAVAILABLE", "gone"));
        const bytes = this.messages.at(-1);
        return Promise.resolve(bytes && { streamSeq: this.messages.length, ...tapeSpan(bytes) });
      },
      append: (bytes, after) => {
        if (this.isGone) return Promise.reject(new PserverError("JETSTREAM_UNAVAILABLE", "gone"));
        const fault = this.faults.shift();
        if (fault === "refused") return Promise.reject(new PserverError("NO_SPACE", "full"));
        if (after !== this.messages.length) return Promise.resolve(undefined);
        this.messages.push(bytes);
        if (fault === "lost-answer") return Promise.reject(new PserverError("TIMEOUT", "lost"));
        return Promise.resolve(this.messages.length);
      },
    };
  }

  /** The records that a reader sees, as often as it sees them. */
  async seqs(): Promise<number[]> {
    return (await this.parts()).flatMap(({ events }) => events.map(({ seq }) => seq));
  }

  /** What a reader sees. */
  async parts(): Promise<TapePart[]> {
    const messages = this.messages.map((data, at) => ({ seq: at + 1, timeMs: at, data }));
    const history = {
      shard: SHARD,
      async *readTape() {
        yield* messages;
      },
    } as unknown as ShardHistory;
    const [from, to] = [
      { generation: 0, seq: 0 },
      { generation: 9, seq: 0 },
    ];
    const parts: TapePart[] = [];
    const { signal } = new AbortController();
    for await (const part of tapeUpdates(history, from, to, 0, signal)) parts.push(part);
    return parts;
  }
}

/** An owner that folds a journal of its own copy from the beginning. */
class Owner {
  readonly failures: string[] = [];
  readonly incomplete: string[] = [];
  readonly #folded: Folded;
  readonly writer: TapeWriter;
  /** What describes records asks for blocks. */
  block: Shard["block"];

  constructor(tape: MemoryTape, records: number, bytesMax = 1024 ** 3) {
    this.#folded = new Folded();
    for (let i = 0; i < records; i++) this.#folded.journal.note({ i });
    const { shard } = this.#folded;
    const { memory } = shard;
    this.block = (parameter, index) => shard.block(parameter, index);
    this.writer = new TapeWriter({
      ...{ store: tape.store(), shard: SHARD, bytesMax },
      folded: {
        memory,
        block: (parameter, index) => this.block(parameter, index),
        nameOfNumber: (number) => shard.nameOfNumber(number),
      },
      generation: () => 1,
      onProgress: () => undefined,
      onFailed: ({ code }) => this.failures.push(code),
      onIncomplete: ({ message }) => this.incomplete.push(message),
    });
    shard.observers = [this.writer];
  }

  fold(records: number): void {
    const { shard, journal } = this.#folded;
    for (const record of journal.records.slice(shard.seq, shard.seq + records)) shard.apply(record);
  }

  /** Folds a push of a block that is not there, whose description asks for it. */
  push(timeMs = 0): void {
    const { shard, journal } = this.#folded;
    shard.apply({ ...journal.push(Float32Array.of(1), { op: "grad" }), timeMs });
  }

  note(text: string): void {
    const { shard, journal } = this.#folded;
    shard.apply(journal.note({ text }));
  }

  /** Folds a record of a trainer that has never joined, which is rejected. */
  noteOf(trainer: string, text: string, timeMs: number): void {
    const { shard, journal } = this.#folded;
    shard.apply({ ...journal.note({ text }, { trainer }), timeMs });
  }

  get unobserved(): number {
    return this.#folded.shard.unobserved;
  }

  get seq(): number {
    return this.#folded.shard.seq;
  }

  /** As a snapshot does before it is committed; undefined if that failed. */
  async snapshot(): Promise<number | undefined> {
    const { seq } = this;
    return await this.writer.flush({ generation: 1, seq }).then(
      () => seq,
      () => undefined,
    );
  }
}

const RECORDS = 40;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const act = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("fold" as const),
      n: fc.integer({ min: 1, max: 9 }),
      who: fc.nat(1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("snapshot" as const), who: fc.nat(1) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("time" as const),
      ms: fc.integer({ min: 100, max: 3_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("fault" as const),
      fault: fc.constantFrom("refused" as const, "lost-answer" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("crash" as const), who: fc.nat(1) }) },
);

test("whatever happens to its owners, a reader sees every record once, in order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
      const tape = new MemoryTape();
      let committed = 0;
      const open = async (): Promise<Owner> => {
        const owner = new Owner(tape, RECORDS);
        await owner.writer.open();
        // Records that a snapshot covers are not folded with the tape watching: the snapshot has them.
        const { writer } = owner;
        const observe = writer.observe.bind(writer);
        const from = committed;
        writer.observe = (record) => {
          if (record.seq > from) observe(record);
        };
        return owner;
      };
      const owners = [await open(), await open()];
      for (const each of acts) {
        switch (each.kind) {
          case "fold":
            owners[each.who]?.fold(each.n);
            break;
          case "snapshot":
            committed = Math.max(committed, (await owners[each.who]?.snapshot()) ?? 0);
            break;
          case "time":
            await vi.advanceTimersByTimeAsync(each.ms);
            break;
          case "fault":
            tape.faults.push(each.fault);
            break;
          case "crash":
            owners[each.who]?.writer.close();
            owners[each.who] = await open();
        }
        const seen = await tape.seqs();
        expect(seen).toEqual(Array.from(seen, (_, i) => i + 1));
        expect(seen.length).toBeGreaterThanOrEqual(committed);
      }
      tape.faults.length = 0;
      for (const owner of owners) {
        owner.fold(RECORDS + 1);
        await vi.advanceTimersByTimeAsync(3_000);
        await owner.snapshot();
        owner.writer.close();
      }
      expect(await tape.seqs()).toEqual(Array.from({ length: RECORDS + 1 }, (_, i) => i + 1));
    }),
    { numRuns: 200 },
  );
});

test("a failure is told once, and flush says why", async () => {
  const tape = new MemoryTape();
  const owner = new Owner(tape, 3);
  await owner.writer.open();
  owner.fold(2);
  tape.faults.push("refused", "refused");
  await expect(owner.writer.flush({ generation: 1, seq: 2 })).rejects.toMatchObject({
    code: "NO_SPACE",
  });
  await vi.advanceTimersByTimeAsync(500);
  expect(owner.failures).toEqual(["NO_SPACE"]);
  await vi.advanceTimersByTimeAsync(500);
  expect(await tape.seqs()).toEqual([1, 2]);
  owner.writer.close();
});

describe("what goes wrong with the tape does not stop the shard", () => {
  /** An owner that has folded and written its first record. */
  async function started(tape = new MemoryTape(), records = 0): Promise<Owner> {
    const owner = new Owner(tape, records);
    await owner.writer.open();
    owner.fold(1);
    return owner;
  }

  test("a record that cannot be described, or written, has a line that says so", async () => {
    const tape = new MemoryTape();
    const owner = await started(tape);
    const { block } = owner;
    owner.block = () => {
      throw new TypeError("no description");
    };
    owner.push();
    owner.block = () => ({ version: 0.5 }) as Block;
    owner.push();
    owner.block = block;
    owner.push();
    expect(await owner.snapshot()).toBe(4);
    const events = (await tape.parts()).flatMap((part) => part.events);
    const rejected = { kind: "rejected", code: "NOT_INITIALIZED" };
    const sender = { trainer: "alice", session: 1, verb: "push", outcome: rejected };
    expect(events).toMatchObject([
      { seq: 1 },
      { seq: 2, n: 1, ...sender, undescribed: "INTERNAL: no description" },
      { seq: 3, n: 2, ...sender, undescribed: expect.stringContaining("received 0.5") },
      { seq: 4, n: 3, ...sender, block: { parameter: "w" } },
    ]);
    expect(owner.writer.gaps).toEqual({ undescribed: 2, leftOut: 0, thinned: 0 });
    expect(owner.incomplete).toEqual([expect.stringMatching(/record 2 .*no description/)]);
    expect(owner.unobserved).toBe(0);
    owner.writer.close();
  });

  test("a record whose place cannot be written is counted", async () => {
    const tape = new MemoryTape();
    const owner = await started(tape);
    owner.push(Number.NaN);
    owner.push();
    expect(await owner.snapshot()).toBe(3);
    expect(await tape.seqs()).toEqual([1, 3]);
    expect(owner.unobserved).toBe(1);
    owner.writer.close();
  });

  test("a message that cannot be made is left out, and readers notice", async () => {
    const tape = new MemoryTape();
    const owner = await started(tape);
    await owner.snapshot();
    // No text that a message can carry.
    owner.block = () => {
      throw new TypeError("\ud800");
    };
    const undescribed = vi.spyOn(String.prototype, "toWellFormed").mockReturnValueOnce("\ud800");
    owner.push();
    undescribed.mockRestore();
    await vi.advanceTimersByTimeAsync(1_000);
    owner.fold(0);
    owner.push();
    await owner.snapshot();
    expect(owner.writer.gaps).toMatchObject({ leftOut: 1 });
    expect(owner.incomplete).toHaveLength(2);
    expect((await tape.parts()).map(({ skipped }) => skipped?.to.seq)).toEqual([0, 2]);
    owner.writer.close();
  });

  test("a stream that is gone holds up neither fold nor snapshots for long; lines are left out", async () => {
    const tape = new MemoryTape();
    tape.isGone = true;
    const owner = await started(tape);
    expect(owner.failures).toEqual(["JETSTREAM_UNAVAILABLE"]);
    expect(await owner.snapshot()).toBeUndefined();
    while (!owner.writer.holdsUp) owner.note("x".repeat(3_000));
    await vi.advanceTimersByTimeAsync(10_500);
    expect(owner.writer.holdsUp).toBe(false);
    expect(await owner.snapshot()).toBe(owner.seq);
    const first = owner.seq + 1;
    for (let i = 0; i < 3; i++) owner.push();
    expect(owner.writer.gaps).toMatchObject({ leftOut: 3 });
    expect(owner.incomplete).toEqual([expect.stringMatching(/have no lines.*gone/)]);
    tape.isGone = false;
    await vi.advanceTimersByTimeAsync(1_000);
    owner.push();
    expect(await owner.snapshot()).toBe(first + 3);
    const seqs = await tape.seqs();
    const before = Array.from({ length: first - 1 }, (_, i) => i + 1);
    expect(seqs).toEqual([...before, first + 3]);
    const { skipped } = (await tape.parts()).at(-1) ?? {};
    expect(skipped).toEqual({
      after: { generation: 1, seq: first - 1 },
      to: { generation: 1, seq: first + 2 },
    });
    owner.writer.close();
  });
});

test("a line waits a second for others", async () => {
  const tape = new MemoryTape();
  const owner = new Owner(tape, 3);
  await owner.writer.open();
  owner.fold(1);
  await vi.advanceTimersByTimeAsync(900);
  owner.fold(2);
  expect(tape.messages).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(100);
  expect(tape.messages).toHaveLength(1);
  expect(await tape.seqs()).toEqual([1, 2, 3]);
  owner.writer.close();
});

describe("a trainer that floods the tape", () => {
  const TAPE_BYTES = 64 * 1024;
  const HOUR_MS = 3_600_000;
  const text = "x".repeat(500);

  /** Every 10 ms a note of the flooding trainer, and for every tenth one of another trainer. */
  function flood(owner: Owner, records: number, fromMs: number): void {
    for (let i = 0; i < records; i++) {
      owner.noteOf("flooder", text, fromMs + 10 * i);
      if (i % 10 === 0) owner.noteOf("other", "short", fromMs + 10 * i);
    }
  }

  async function bytesOf(tape: MemoryTape): Promise<number> {
    return tape.messages.reduce((bytes, { length }) => bytes + length, 0);
  }

  test("gets its share of it, and all of another one's lines are there", async () => {
    const tape = new MemoryTape();
    const owner = new Owner(tape, 0, TAPE_BYTES);
    await owner.writer.open();
    owner.fold(1);
    flood(owner, 1_000, 0);
    expect(await owner.snapshot()).toBe(owner.seq);
    const parts = await tape.parts();
    const events = parts.flatMap((part) => part.events);
    expect(events.filter(({ trainer }) => trainer === "other")).toHaveLength(100);
    const own = events.filter(({ trainer }) => trainer === "flooder");
    const lines = own.filter(({ verb }) => verb === "note").length;
    const told = own.filter(({ verb }) => verb === "left-out");
    const left = told.map(({ note }) => note?.["records"]);
    expect(left.slice(0, 4)).toEqual([1, 2, 4, 8]);
    expect(owner.writer.gaps).toMatchObject({ thinned: 1_000 - lines, leftOut: 0 });
    expect(lines).toBeGreaterThan(0);
    expect(owner.incomplete).toEqual([
      expect.stringMatching(/trainer "flooder" has used up .*--tape-limit/),
    ]);
    // The flood alone would be eight times the tape.
    expect(await bytesOf(tape)).toBeLessThan(TAPE_BYTES / 2);
    // Records without lines are no hole.
    expect(parts.filter(({ skipped }) => (skipped?.to.seq ?? 0) > 0)).toEqual([]);
    owner.writer.close();
  });

  test("has lines again in time, after one that says how many records have none", async () => {
    const tape = new MemoryTape();
    const owner = new Owner(tape, 0, TAPE_BYTES);
    await owner.writer.open();
    owner.fold(1);
    flood(owner, 100, 0);
    const { thinned } = owner.writer.gaps;
    flood(owner, 3, HOUR_MS);
    await owner.snapshot();
    const events = (await tape.parts()).flatMap((part) => part.events);
    const last = events.filter(({ trainer }) => trainer === "flooder").slice(-3);
    expect(last).toMatchObject([
      { verb: "left-out", note: { records: thinned + 1, from: expect.any(Number) } },
      { verb: "note", note: { text } },
      { verb: "note", note: { text } },
    ]);
    const [end] = last;
    const from = Number(end?.note?.["from"]);
    // The first record holds the rules.
    const lines = events.filter(({ seq, verb }) => verb === "note" && seq < from);
    expect(lines).toHaveLength(from - 2);
    owner.writer.close();
  });

  test("leaves no hole where its owner dies and another one goes on", async () => {
    const tape = new MemoryTape();
    const first = new Owner(tape, 0, TAPE_BYTES);
    await first.writer.open();
    first.fold(1);
    for (let i = 0; i < 200; i++) first.noteOf("flooder", text, i);
    const committed = await first.snapshot();
    first.writer.close();
    const second = new Owner(tape, 0, TAPE_BYTES);
    await second.writer.open();
    second.fold(1);
    for (let i = 0; i < 201; i++) second.noteOf("flooder", text, i);
    await second.snapshot();
    const parts = await tape.parts();
    expect(committed).toBe(201);
    expect(parts.filter(({ skipped }) => (skipped?.to.seq ?? 0) > 0)).toEqual([]);
    expect(parts.at(-1)?.covered).toEqual({ generation: 1, seq: 202 });
    second.writer.close();
  });
});
