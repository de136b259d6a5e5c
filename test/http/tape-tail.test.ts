// Proves that whoever watches a job live is told what is new on its tapes: each message is read once, and of a busy shard
// only the newest updates are told, with how many there were besides. Tapes are in memory, encoded as hosts do.
import { expect, test } from "vitest";
import { TapeEncoder } from "../../src/actors/journal/tape/tape-encoder.ts";
import type { HistorySource, StoredTapeMessage, TapeStart } from "../../src/history/source.ts";
import { TapeTail } from "../../src/http/tape-tail.ts";
import { encodeMessage } from "../../src/protocol/codec.ts";

const { signal } = new AbortController();

/** Tapes of some shards, which count the messages that are read from them. */
class Tapes {
  reads = 0;
  readonly #messages: Map<number, StoredTapeMessage[]> = new Map();
  readonly #seqs: Map<number, number> = new Map();

  /** Writes a message with lines of the next records. */
  write(shard: number, records: number, timeMs: number): void {
    const before = this.#seqs.get(shard) ?? 0;
    const encoder = new TapeEncoder(1, before);
    const outcome = { kind: "applied" } as const;
    for (let seq = before + 1; seq <= before + records; seq++) {
      const place = { timeMs, shard, generation: 1, seq, entry: 0, entries: 1 };
      encoder.add([{ ...place, verb: "floor", outcome }], true);
    }
    const { fields, data } = encoder.take();
    const messages = this.#messages.get(shard) ?? [];
    messages.push({ seq: messages.length + 1, timeMs, data: encodeMessage(fields, data) });
    this.#messages.set(shard, messages);
    this.#seqs.set(shard, before + records);
  }

  get source(): HistorySource {
    const shard = (number: number): object => ({
      shard: number,
      readTape: (start: TapeStart) => this.#read(number, start),
    });
    return { shard } as unknown as HistorySource;
  }

  async *#read(shard: number, start: TapeStart): AsyncGenerator<StoredTapeMessage> {
    for (const message of this.#messages.get(shard) ?? []) {
      const isOld = start.kind === "time" ? message.timeMs < start.timeMs : message.seq < start.seq;
      if (isOld) continue;
      this.reads += 1;
      yield message;
    }
  }
}

test("each message is read once, and what came before is not told", async () => {
  const tapes = new Tapes();
  tapes.write(0, 2, 1_000);
  tapes.write(0, 1, 5_000);
  const tail = new TapeTail(4_000);
  const seqs = async (...shards: number[]): Promise<number[]> =>
    (await tail.read(tapes.source, shards, signal)).updates.map(({ seq }) => seq);
  expect(await seqs(0, 1)).toEqual([3]);
  expect(await seqs(0, 1)).toEqual([]);
  tapes.write(1, 1, 7_000);
  tapes.write(0, 2, 6_000);
  // In the order of their times.
  expect(await seqs(0, 1)).toEqual([4, 5, 1]);
  expect(tapes.reads).toBe(3);
});

test("of a busy shard the newest updates are told, and how many there were besides", async () => {
  const tapes = new Tapes();
  tapes.write(0, 5_000, 1_000);
  const { updates, dropped } = await new TapeTail(0).read(tapes.source, [0], signal);
  expect(updates.length).toBeLessThanOrEqual(200);
  expect(updates.length + dropped).toBe(5_000);
  expect(updates.at(-1)?.seq).toBe(5_000);
});
