import type { Fields } from "../../protocol/codec.ts";
import { type Synchronization, toConfig, toSynchronization } from "../../protocol/config/index.ts";
import { ensureError, PserverError } from "../../protocol/errors.ts";
import {
  asMap,
  dtypeField,
  integerField,
  listField,
  mapField,
  numberField,
  textField,
} from "../../protocol/fields.ts";
import { parseGranted } from "../../protocol/host-records.ts";
import { MEMBERS_MAX } from "../../protocol/limits.ts";
import { outcomeRow, parseOutcomeRow } from "../../protocol/outcomes.ts";
import { isWholeRows } from "../../protocol/parts.ts";
import { checkShape } from "../../protocol/tensor.ts";
import { type BlockHeader, blockLabel, isPlaced, type OpenStep } from "./block.ts";
import type { Declared } from "./declaration-table.ts";
import { parseSavedSteps, type SavedSteps } from "./saved-steps.ts";
import type { TrainerEntry } from "./trainer-table.ts";

const FORMAT = 1;

/** A trainer's entry: id, session, done, and its outcomes in the order of the journal. */
export type TrainerRow = readonly [
  trainer: string,
  session: number,
  done: number,
  outcomes: readonly (readonly (number | string)[])[],
];

/**
 * The state of a shard without its values, as plain data for `packValue`. Equal states have equal
 * bytes: trainers and blocks are sorted, outcomes are in the order of the journal.
 */
export interface FoldState {
  readonly format: typeof FORMAT;
  /** Sequence of the last record folded; 0 before the first. */
  readonly seq: number;
  /** Checksum in that record's envelope; 0 if it could not be read. */
  readonly crc: number;
  /** Version of the rules; 0 before the first `rules` record. */
  readonly rules: number;
  /** How the job's trainers are synchronized; `async` before the first `rules` record. */
  readonly synchronization: Synchronization;
  /** Absent in `async`. */
  readonly steps?: SavedSteps;
  readonly floor: number;
  /** Records that could not be read. */
  readonly unreadable: number;
  readonly trainers: readonly TrainerRow[];
  readonly blocks: readonly BlockHeader[];
  /** Parameters that hosts have declared, by name; absent if there are none. */
  readonly declared?: readonly Declared[];
  /** Sessions up to the floor that have not ended, ascending; absent if there are none. */
  readonly live?: readonly number[];
  /** Sessions with more rejected records than applied ones, by trainer; absent if there are none. */
  readonly refused?: readonly CountRow[];
  /** Unreadable records by the trainer in their subjects, of some trainers; absent if none. */
  readonly unreadableOf?: readonly CountRow[];
}

/** A trainer and a number of its records. */
export type CountRow = readonly [trainer: string, records: number];

/** A state read by {@link parseFoldState}. */
export interface RestoredState
  extends Omit<FoldState, "format" | "trainers" | "refused" | keyof OptionalEntries>,
    OptionalEntries {
  readonly trainers: readonly (readonly [trainer: string, entry: TrainerEntry])[];
}

/** Entries that a state leaves out where they are empty. */
interface OptionalEntries {
  readonly declared: readonly Declared[];
  readonly live: readonly number[];
  readonly unreadableOf: readonly CountRow[];
}

/** A state in the present format. The parts must be sorted already. */
export function toFoldState(
  parts: Omit<FoldState, "format" | "trainers" | "refused">,
  trainers: readonly (readonly [trainer: string, entry: TrainerEntry])[],
): FoldState {
  const { seq, crc, rules, synchronization, steps, floor, unreadable, blocks } = parts;
  const rows = trainers.map(([trainer, entry]): TrainerRow => {
    return [trainer, entry.session, entry.done, [...entry.outcomes.values()].map(outcomeRow)];
  });
  const counts = trainers.map(([trainer, entry]): CountRow => [trainer, entry.rejected]);
  const { declared = [], live = [], unreadableOf = [] } = parts;
  const rejected = counts.filter(([, records]) => records > 0);
  return {
    ...{ format: FORMAT, seq, crc, rules, synchronization },
    ...(steps === undefined ? {} : { steps }),
    ...{ floor, unreadable, trainers: rows, blocks },
    // Left out where empty: states of rules version 1 keep their bytes.
    ...(declared.length === 0 ? {} : { declared }),
    ...(live.length === 0 ? {} : { live }),
    ...(rejected.length === 0 ? {} : { refused: rejected }),
    ...(unreadableOf.length === 0 ? {} : { unreadableOf }),
  };
}

/**
 * Reads a saved state and checks each entry by itself; the tables check whether they fit together.
 * @throws SNAPSHOT_DAMAGED with the name of the wrong entry.
 */
export function parseFoldState(state: unknown): RestoredState {
  try {
    const fields = asMap(state, "fold state");
    integerField(fields, "format", FORMAT, FORMAT);
    const { steps } = fields;
    const rejected = new Map(countRows(fields, "refused"));
    const trainers = listField(fields, "trainers", Number.POSITIVE_INFINITY);
    return {
      seq: integerField(fields, "seq"),
      crc: integerField(fields, "crc", 0, 0xffffffff),
      rules: integerField(fields, "rules"),
      synchronization: toSynchronization(mapField(fields, "synchronization")),
      ...(steps === undefined ? {} : { steps: parseSavedSteps(mapField(fields, "steps")) }),
      floor: integerField(fields, "floor"),
      unreadable: integerField(fields, "unreadable"),
      trainers: trainers.map((row) => parseTrainer(row, rejected)),
      blocks: listField(fields, "blocks", Number.POSITIVE_INFINITY).map(parseBlock),
      declared: listOrNone(fields, "declared").map(parseDeclared),
      live: listOrNone(fields, "live").map((live) => integerField({ live }, "live", 1)),
      unreadableOf: countRows(fields, "unreadableOf"),
    };
  } catch (cause) {
    throw damaged(`the fold's state: ${ensureError(cause).message}`, cause);
  }
}

/** The error for a snapshot with a bad state. */
export function damaged(message: string, cause?: unknown): PserverError {
  return new PserverError("SNAPSHOT_DAMAGED", message, {}, { cause });
}

/**
 * The rules version of a saved state. Read before the rest, because another version may have other
 * entries.
 * @throws SNAPSHOT_DAMAGED if it names none.
 */
export function rulesOfState(state: unknown): number {
  try {
    return integerField(asMap(state, "fold state"), "rules");
  } catch (cause) {
    throw damaged(`the fold's state: ${ensureError(cause).message}`, cause);
  }
}

function listOrNone(fields: Fields, key: string): readonly unknown[] {
  return fields[key] === undefined ? [] : listField(fields, key, Number.POSITIVE_INFINITY);
}

function countRows(fields: Fields, key: string): CountRow[] {
  return listOrNone(fields, key).map((value) => {
    const row: Fields = { ...listField({ [key]: value }, key, 2) };
    return [textField(row, "0"), integerField(row, "1", 1)];
  });
}

function parseDeclared(value: unknown): Declared {
  const fields = asMap(value, "declared");
  return { ...parseGranted(fields), trainer: textField(fields, "trainer") };
}

function parseTrainer(
  value: unknown,
  rejected: ReadonlyMap<string, number>,
): [string, TrainerEntry] {
  const row: Fields = { ...listField({ trainer: value }, "trainer", 4) };
  const trainer = textField(row, "0");
  const outcomes = listField(row, "3", Number.POSITIVE_INFINITY).map(parseOutcomeRow);
  const entry = {
    session: integerField(row, "1", 1),
    done: integerField(row, "2"),
    outcomes: new Map(outcomes.map((outcome) => [outcome.n, outcome])),
    rejected: rejected.get(trainer) ?? 0,
  };
  if (entry.outcomes.size === outcomes.length) return [trainer, entry];
  throw damaged(`trainer ${trainer}: expected one outcome a number`);
}

function parseBlock(value: unknown): BlockHeader {
  const fields = asMap(value, "block");
  const header: BlockHeader = {
    parameter: textField(fields, "parameter"),
    index: integerField(fields, "index"),
    epoch: integerField(fields, "epoch", 1),
    dtype: dtypeField(fields),
    shape: checkShape(listField(fields, "shape", 64)),
    start: integerField(fields, "start"),
    count: integerField(fields, "count", 1),
    config: toConfig(mapField(fields, "config")),
    version: integerField(fields, "version", 1),
    updates: integerField(fields, "updates"),
    ...(fields["open"] === undefined ? {} : { open: parseOpenStep(mapField(fields, "open")) }),
  };
  const isWhole = !header.config.sparse || isWholeRows(header);
  if (isPlaced(header.index, header) && isWhole && header.updates < header.version) return header;
  throw damaged(`${blockLabel(header.parameter, header.index)}: its header contradicts itself`);
}

function parseOpenStep(fields: Fields): OpenStep {
  const trainers = listField(fields, "trainers", MEMBERS_MAX).map((trainer) =>
    textField({ trainer }, "trainer"),
  );
  if (trainers.length === 0 || new Set(trainers).size < trainers.length) {
    throw damaged("open: expected trainers, each once");
  }
  if (fields["learningRate"] === undefined) return { trainers };
  return { trainers, learningRate: numberField(fields, "learningRate") };
}
