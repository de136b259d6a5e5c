import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type JournalRecord, Shard } from "../../../../src/actors/fold/shard.ts";
import { packValue, unpackValue } from "../../../../src/protocol/codec.ts";
import { SHARD, SUBJECTS } from "../journal-writer.ts";

/** Where recorded journals are kept. */
export const JOURNALS: string = join(import.meta.dirname, "../../../fixtures/journals");

/** What a journal comes to when it is folded. */
export interface Folded {
  /** Of state, values and slots at the end. */
  readonly digest: string;
  /** For each trainer's record the version that its block got, or the code of its refusal. */
  readonly answers: readonly (number | string)[];
}

/** A journal and what it came to in the program that recorded it. */
export interface RecordedJournal extends Folded {
  /** Subject and payload of each record, from sequence 1 on. */
  readonly records: readonly (readonly [subject: string, payload: Uint8Array])[];
}

/**
 * Folds records from the first one on. At `snapshotAt`, if it is given, a shard that is restored from
 * what the first has saved goes on.
 */
export function foldRecords(records: readonly JournalRecord[], snapshotAt?: number): Folded {
  const options = { subjects: SUBJECTS, shard: SHARD };
  let shard = new Shard(options);
  const answers: (number | string)[] = [];
  for (const record of records) {
    const settled = shard.apply(record);
    if (record.seq === snapshotAt) {
      const saved = shard;
      shard = Shard.restore(options, saved.saveState(), ({ parameter, index }, slot) => {
        const bytes = saved.block(parameter, index)?.slotBytes(slot);
        if (bytes === undefined) throw new Error(`${parameter}: expected a block`);
        return bytes;
      });
    }
    if (settled !== undefined) answers.push(settled.outcome.code ?? settled.outcome.version);
  }
  return { digest: shard.digest(), answers };
}

/** Writes a journal and what it comes to; never over another. */
export function recordJournal(name: string, records: readonly JournalRecord[]): void {
  const recorded = {
    ...foldRecords(records),
    records: records.map(({ subject, payload }) => [subject, payload]),
  };
  writeFileSync(join(JOURNALS, `${name}.journal`), packValue(recorded), { flag: "wx" });
}

/** @throws Error if the file is not one that {@link recordJournal} has written. */
export function readJournal(name: string): RecordedJournal {
  const value = unpackValue(readFileSync(join(JOURNALS, `${name}.journal`)));
  // The file is ours and under version control; whatever is wrong in it shows in the comparison.
  return value as RecordedJournal;
}

/** The records as the stream gives them. */
export function journalRecords({ records }: RecordedJournal): JournalRecord[] {
  return records.map(([subject, payload], i) => ({ seq: i + 1, subject, payload }));
}
