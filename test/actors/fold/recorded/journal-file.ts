import { createHash } from "node:crypto";
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JournalRecord } from "../../../../src/actors/fold/journal-record.ts";
import type { Rules } from "../../../../src/actors/fold/rules.ts";
import { Shard } from "../../../../src/actors/fold/shard.ts";
import { packValue, unpackValue } from "../../../../src/protocol/codec.ts";
import { limitedRules } from "../folded.ts";
import { SHARD, SUBJECTS } from "../journal-writer.ts";

/** Where recorded journals are kept. */
const JOURNALS: string = join(import.meta.dirname, "../../../fixtures/journals");

const ENDING = ".journal";
const SUMS = join(JOURNALS, "SHA256SUMS");

/** The names of all recorded journals. */
export function recordedNames(): string[] {
  return readdirSync(JOURNALS)
    .filter((file) => file.endsWith(ENDING))
    .map((file) => file.slice(0, -ENDING.length))
    .sort();
}

/** Records between two digests of a journal. */
const DIGEST_EVERY = 8;

/** What a journal comes to when it is folded. */
export interface Folded {
  /** Of state, values and slots at the end. */
  readonly digest: string;
  /** The same at several records on the way. */
  readonly digests: readonly (readonly [seq: number, digest: string])[];
  /** For each trainer's record the version that its block got, or the code of its refusal. */
  readonly answers: readonly (number | string)[];
}

/** A journal and what it came to in the program that recorded it. */
export interface RecordedJournal extends Folded {
  /** Limits in place of those of the rules. */
  readonly limits?: Partial<Rules>;
  /** Subject and payload of each record, from sequence 1 on. */
  readonly records: readonly (readonly [subject: string, payload: Uint8Array])[];
}

/**
 * Folds records from the first one on. At `snapshotAt`, if it is given, a shard that is restored from
 * what the first has saved goes on.
 */
export function foldRecords(
  records: readonly JournalRecord[],
  limits: Partial<Rules> = {},
  snapshotAt?: number,
): Folded {
  const options = { subjects: SUBJECTS, shard: SHARD, knownRules: limitedRules(limits) };
  let shard = Shard.create(options);
  const answers: (number | string)[] = [];
  const digests: (readonly [number, string])[] = [];
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
    if (record.seq % DIGEST_EVERY === 0) digests.push([record.seq, shard.digest()]);
  }
  return { digest: shard.digest(), digests, answers };
}

/** The SHA-256 of a file of a journal, in hex. */
export function journalSum(name: string): string {
  return createHash("sha256")
    .update(readFileSync(journalFile(name)))
    .digest("hex");
}

/** The sums of all files as they were recorded: a file that is changed shows in two places. */
export function recordedSums(): ReadonlyMap<string, string> {
  const lines = readFileSync(SUMS, "utf8").trim().split("\n");
  return new Map(
    lines.map((line) => {
      const [sum = "", file = ""] = line.split("  ");
      return [file.slice(0, -ENDING.length), sum];
    }),
  );
}

/** Writes a journal and what it comes to; never over another. */
export function recordJournal(
  name: string,
  records: readonly JournalRecord[],
  limits: Partial<Rules> | undefined,
): void {
  const recorded = {
    ...foldRecords(records, limits),
    ...(limits === undefined ? {} : { limits }),
    records: records.map(({ subject, payload }) => [subject, payload]),
  };
  writeFileSync(journalFile(name), packValue(recorded), { flag: "wx" });
  appendFileSync(SUMS, `${journalSum(name)}  ${name}${ENDING}\n`);
}

/** @throws Error if the file is not one that {@link recordJournal} has written. */
export function readJournal(name: string): RecordedJournal {
  const value = unpackValue(readFileSync(journalFile(name)));
  // The file is ours and under version control; whatever is wrong in it shows in the comparison.
  return value as RecordedJournal;
}

/** The records as the stream gives them. */
export function journalRecords({ records }: RecordedJournal): JournalRecord[] {
  return records.map(([subject, payload], i) => ({ seq: i + 1, subject, payload }));
}

function journalFile(name: string): string {
  return join(JOURNALS, `${name}${ENDING}`);
}
