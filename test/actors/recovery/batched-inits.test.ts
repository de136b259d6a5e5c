// Proves which blocks are found in the batches of a journal: those that they initialize, no others, and none in
// a batch that cannot be read; and that no more batches are read than it takes.
import { beforeEach, expect, test } from "vitest";
import type { JournalRecord } from "../../../src/actors/fold/journal-record.ts";
import type { LackedBlock } from "../../../src/actors/recovery/findings.ts";
import { lackedAfterBatches } from "../../../src/actors/recovery/inspect-shard.ts";
import { sealMessage } from "../../../src/protocol/codec.ts";
import { hashName } from "../../../src/protocol/layout.ts";
import { type BatchRun, draftBatch } from "../../../src/protocol/messages/batch-records.ts";

const GENERATION = 3;
const HEAD = { session: 1, n: 1, done: 0, reply: "" };

let read: number[];
let records: Map<number, Uint8Array>;

const journal = {
  record: (generation: number, seq: number): Promise<JournalRecord | undefined> => {
    expect(generation).toBe(GENERATION);
    read.push(seq);
    const payload = records.get(seq);
    return Promise.resolve(payload && { seq, subject: "", payload });
  },
};

/** A batch that initializes some parameters and sets others. */
function batch(initialized: readonly string[], set: readonly string[] = []): Uint8Array {
  const none = { encoding: undefined, operation: undefined, parts: undefined };
  const run = (verb: "init" | "set", parameters: readonly string[]): BatchRun => ({
    ...{ verb, dtype: "float32", ...none, norms: undefined, seen: undefined },
    numbers: Uint32Array.from(parameters, (parameter) => block(parameter).number),
    counts: new Uint32Array(parameters.length).fill(2),
  });
  const runs = [run("init", initialized), run("set", set)];
  return sealMessage(
    draftBatch(
      HEAD,
      runs.filter(({ numbers }) => numbers.length > 0),
    ).draft,
  );
}

const block = (parameter: string, index = 0): LackedBlock => {
  return { parameter, index, number: (hashName(parameter) % 1_000_000) + index };
};

beforeEach(() => {
  read = [];
  records = new Map();
});

test("blocks that a batch initializes are not lacking, those that it sets are", async () => {
  records.set(5, batch(["w", "b"], ["c"]));
  const lacked = [block("w"), block("c"), block("b"), block("b", 1)];
  expect(await lackedAfterBatches(journal, GENERATION, [5], lacked)).toEqual([
    block("c"),
    block("b", 1),
  ]);
});

test("batches that are gone or damaged initialize nothing", async () => {
  const damaged = batch(["w"]);
  damaged[20] = (damaged[20] ?? 0) ^ 1;
  records.set(5, damaged);
  expect(await lackedAfterBatches(journal, GENERATION, [4, 5], [block("w")])).toEqual([block("w")]);
  expect(read).toEqual([4, 5]);
});

test("nothing is read once no block is lacking", async () => {
  records.set(5, batch(["w"]));
  records.set(6, batch(["b"]));
  expect(await lackedAfterBatches(journal, GENERATION, [5, 6], [block("w")])).toEqual([]);
  expect(await lackedAfterBatches(journal, GENERATION, [5, 6], [])).toEqual([]);
  expect(read).toEqual([5]);
});
