// Proves that a tape has the lines of every record exactly once for its reader, whatever happens to the
// owners that write it: messages that are not stored, answers that are lost, owners that crash and are
// followed by others, and two at one time. A snapshot that was committed covers no record without a line.
import fc from "fast-check";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { tapeSpan } from "../../../src/actors/tape/tape-decoder.ts";
import type { TapeStore } from "../../../src/actors/tape/tape-store.ts";
import { TapeWriter } from "../../../src/actors/tape/tape-writer.ts";
import type { ShardHistory } from "../../../src/history/source.ts";
import { tapeUpdates } from "../../../src/history/updates/tape-updates.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import { Folded } from "../fold/folded.ts";
import { SHARD } from "../fold/journal-writer.ts";

/** A stream in memory whose next appends fail as they are told to. */
class MemoryTape {
  readonly messages: Uint8Array[] = [];
  readonly faults: ("refused" | "lost-answer")[] = [];

  store(): Pick<TapeStore, "last" | "append"> {
    return {
      last: () => {
        const bytes = this.messages.at(-1);
        return Promise.resolve(bytes && { streamSeq: this.messages.length, ...tapeSpan(bytes) });
      },
      append: (bytes, after) => {
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
    const seqs: number[] = [];
    const { signal } = new AbortController();
    for await (const { events } of tapeUpdates(history, from, to, 0, signal)) {
      seqs.push(...events.map(({ seq }) => seq));
    }
    return seqs;
  }
}

/** An owner that folds a journal of its own copy from the beginning. */
class Owner {
  readonly failures: string[] = [];
  readonly #folded: Folded;
  readonly writer: TapeWriter;

  constructor(tape: MemoryTape, records: number) {
    this.#folded = new Folded();
    for (let i = 0; i < records; i++) this.#folded.journal.note({ i });
    const { shard } = this.#folded;
    this.writer = new TapeWriter({
      ...{ store: tape.store(), shard: SHARD, folded: shard },
      generation: () => 1,
      onProgress: () => undefined,
      onFailed: ({ code }) => this.failures.push(code),
    });
    shard.observer = (record) => this.writer.observe(record);
  }

  fold(records: number): void {
    const { shard, journal } = this.#folded;
    for (const record of journal.records.slice(shard.seq, shard.seq + records)) shard.apply(record);
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
