import fc from "fast-check";
import { expect, test } from "vitest";
import type { FoldedRecord } from "../../../src/actors/fold/journal-record.ts";
import type { RecordAnswer, Shard } from "../../../src/actors/fold/shard.ts";
import {
  describeRecord,
  type UpdateEvent,
  type UpdateOutcome,
} from "../../../src/actors/journal/describe-record.ts";
import { decodeTape } from "../../../src/actors/journal/tape/tape-decoder.ts";
import { TapeWriter } from "../../../src/actors/journal/tape/tape-writer.ts";
import { RecordEditor } from "../../../src/history/what-if.ts";
import type { SynchronizationInput } from "../../../src/protocol/config/index.ts";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";
import { folded, hostSamples, mutant, type Sample, samples } from "../fold/mutants.ts";
import { asKept } from "./tape/arbitrary-events.ts";

// Proves that whatever a record holds, what watches the fold tells of it: sound, nearly sound and senseless records
// of every kind, all with right checksums, are folded to the same with and without an observer, are described
// with the outcome that the fold gave them, and come out of the tape as they were described. Also that the
// commands that fold a journal otherwise leave such records as they are.

/** How many records are changed: MUTATIONS, or as many as usual. */
const MUTATIONS = Number(process.env["MUTATIONS"] ?? 2000);

/** Records that are folded by one shard at most. */
const RECORDS_MAX = 50;

const SAMPLES = [...samples(), ...hostSamples()];

const sample: fc.Arbitrary<Sample> = fc.oneof(
  { weight: 20, arbitrary: mutant(SAMPLES) },
  {
    weight: 1,
    arbitrary: fc.record({
      subject: fc.constantFrom(...SAMPLES.map(({ subject }) => subject)),
      payload: fc.uint8Array({ maxLength: 40 }),
    }),
  },
);

/** A shard that is watched as its owner has it watched, with all that was seen of it. */
class Watched {
  readonly messages: Uint8Array[] = [];
  readonly events: UpdateEvent[] = [];
  readonly failures: string[] = [];
  readonly tape: TapeWriter;

  constructor(shard: Shard) {
    const place = { shard: SHARD, generation: 1 };
    this.tape = new TapeWriter({
      store: {
        last: () => Promise.resolve(undefined),
        append: (bytes) => Promise.resolve(this.messages.push(bytes)),
      },
      ...{
        shard: SHARD,
        bytesMax: 1024 ** 3,
        folded: shard,
        generation: () => 1,
        onProgress: () => undefined,
      },
      onFailed: ({ message }) => this.failures.push(message),
      onIncomplete: ({ message }) => this.failures.push(message),
    });
    shard.observers = [
      {
        measures: true,
        observe: (record: FoldedRecord) => {
          this.events.push(...describeRecord(record, shard, place));
          this.tape.observe(record);
        },
        failed: (_record, { stack }) => this.failures.push(String(stack)),
      },
    ];
  }
}

function outcomesOf(settled: RecordAnswer | undefined): UpdateOutcome["kind"][] {
  if (settled === undefined) return ["applied", "unreadable"];
  return settled.outcome.code === undefined ? ["applied", "repeated"] : ["rejected", "repeated"];
}

test.each<[string, SynchronizationInput | undefined]>([
  ["async", undefined],
  ["sync", { mode: "sync", trainers: 2 }],
])("every record of an %s job is described as it was folded", async (_mode, synchronization) => {
  const records = fc.array(sample, { minLength: 1, maxLength: RECORDS_MAX, size: "max" });
  await fc.assert(
    fc.asyncProperty(records, async (mutants) => {
      const [plain, seen] = [folded(synchronization), folded(synchronization)];
      const watched = new Watched(seen.shard);
      const editor = new RecordEditor(
        { withoutTrainers: [], withoutRecords: [], learningRate: 2, clipNorm: 0.5 },
        SUBJECTS,
        SHARD,
        1,
      );
      const { seq } = seen.shard;
      for (const [i, each] of mutants.entries()) {
        const record = { seq: seq + 1 + i, timeMs: 1_700_000_000_000 + i, ...each };
        editor.edit(record, plain.shard);
        const first = watched.events.length;
        const settled = seen.shard.apply(record);
        expect(settled).toEqual(plain.shard.apply(record));
        expect(watched.failures).toEqual([]);
        const events = watched.events.slice(first);
        expect(events.length).toBeGreaterThan(0);
        for (const { outcome, seq: described } of events) {
          expect(described).toBe(record.seq);
          expect(outcomesOf(settled)).toContain(outcome.kind);
          if (outcome.kind === "rejected") expect(outcome).toMatchObject(rejectionOf(settled));
        }
      }
      expect(seen.shard.digest()).toBe(plain.shard.digest());
      await watched.tape.flush({ generation: 1, seq: seen.shard.seq });
      watched.tape.close();
      const read = watched.messages.flatMap((bytes) => decodeTape(bytes, SHARD).events);
      expect(read.map(asKept)).toEqual(watched.events.map(asKept));
      expect(watched.tape.gaps).toEqual({ undescribed: 0, leftOut: 0, thinned: 0 });
    }),
    { numRuns: Math.ceil((2 * MUTATIONS) / RECORDS_MAX) },
  );
});

function rejectionOf(settled: RecordAnswer | undefined): { code?: unknown; message?: unknown } {
  const { code, message } = settled?.outcome ?? {};
  return { code, message };
}
