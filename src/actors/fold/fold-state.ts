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
import { MEMBERS_MAX } from "../../protocol/limits.ts";
import { outcomeRow, parseOutcomeRow } from "../../protocol/outcomes.ts";
import { isWholeRows } from "../../protocol/parts.ts";
import { checkShape } from "../../protocol/tensor.ts";
import { type BlockHeader, blockLabel, type OpenStep } from "./block.ts";
import { isPlaced } from "./check-init.ts";
import { parseStepState, type StepState } from "./step-state.ts";
import type { TrainerEntry } from "./trainer-table.ts";

const FORMAT = 1;

/** A trainer's entry: id, session, done, and its outcomes in the order of their settling. */
export type TrainerRow = readonly [
  trainer: string,
  session: number,
  done: number,
  outcomes: readonly (readonly (number | string)[])[],
];

/**
 * The state of a shard without its values, as plain values for `packValue`. Equal states have equal
 * bytes: entries, trainers and blocks have one order, and outcomes that of the journal.
 */
export interface FoldState {
  readonly format: typeof FORMAT;
  /** Sequence of the last record folded; 0 before the first. */
  readonly seq: number;
  /** Checksum in that record's envelope; 0 if it could not be read. */
  readonly crc: number;
  /** Version of the rules; 0 before the first `rules` record. */
  readonly rules: number;
  /** How the job's trainers go together; `async` before the first `rules` record. */
  readonly synchronization: Synchronization;
  /** Absent in `async`. */
  readonly steps?: StepState;
  readonly floor: number;
  /** Records that could be read by nobody. */
  readonly unreadable: number;
  readonly trainers: readonly TrainerRow[];
  readonly blocks: readonly BlockHeader[];
}

/** What {@link parseFoldState} read. */
export interface RestoredState extends Omit<FoldState, "format" | "trainers"> {
  readonly trainers: readonly (readonly [trainer: string, entry: TrainerEntry])[];
}

/** The state with the present format; the parts come in their order. */
export function toFoldState(
  parts: Omit<FoldState, "format" | "trainers">,
  trainers: readonly (readonly [trainer: string, entry: TrainerEntry])[],
): FoldState {
  const { seq, crc, rules, synchronization, steps, floor, unreadable, blocks } = parts;
  const rows = trainers.map(([trainer, entry]): TrainerRow => {
    return [trainer, entry.session, entry.done, [...entry.outcomes.values()].map(outcomeRow)];
  });
  return {
    ...{ format: FORMAT, seq, crc, rules, synchronization },
    ...(steps === undefined ? {} : { steps }),
    ...{ floor, unreadable, trainers: rows, blocks },
  };
}

/**
 * A saved state, checked entry by entry; whether it is one a fold can have is the tables' matter.
 * @throws SNAPSHOT_DAMAGED naming the entry that is wrong.
 */
export function parseFoldState(state: unknown): RestoredState {
  try {
    const fields = asMap(state, "fold state");
    integerField(fields, "format", FORMAT, FORMAT);
    const { steps } = fields;
    return {
      seq: integerField(fields, "seq"),
      crc: integerField(fields, "crc", 0, 0xffffffff),
      rules: integerField(fields, "rules"),
      synchronization: toSynchronization(mapField(fields, "synchronization")),
      ...(steps === undefined ? {} : { steps: parseStepState(mapField(fields, "steps")) }),
      floor: integerField(fields, "floor"),
      unreadable: integerField(fields, "unreadable"),
      trainers: listField(fields, "trainers", Number.POSITIVE_INFINITY).map(parseTrainer),
      blocks: listField(fields, "blocks", Number.POSITIVE_INFINITY).map(parseBlock),
    };
  } catch (cause) {
    throw damaged(`the fold's state: ${ensureError(cause).message}`, cause);
  }
}

/** An error of the snapshot that a state came from. */
export function damaged(message: string, cause?: unknown): PserverError {
  return new PserverError("SNAPSHOT_DAMAGED", message, {}, { cause });
}

function parseTrainer(value: unknown): [string, TrainerEntry] {
  const row: Fields = { ...listField({ trainer: value }, "trainer", 4) };
  const trainer = textField(row, "0");
  const outcomes = listField(row, "3", Number.POSITIVE_INFINITY).map(parseOutcomeRow);
  const entry = {
    session: integerField(row, "1", 1),
    done: integerField(row, "2"),
    outcomes: new Map(outcomes.map((outcome) => [outcome.n, outcome])),
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
