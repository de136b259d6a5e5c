import type { Message } from "../../protocol/codec.ts";
import { ensureError } from "../../protocol/errors.ts";
import type { BatchEntry } from "../../protocol/messages/batch-records.ts";
import type { HostRecord } from "../../protocol/messages/host-records.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import { readPackedIndex, readPartIndex } from "../../protocol/messages/parts.ts";
import { parseClock, parseNote, type RecordHeader } from "../../protocol/messages/records.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { applyChange, type Change } from "./apply-update.ts";
import { checkReply, checkUpdate, type RecordContext } from "./check-update.ts";
import type { FoldTables } from "./fold-state.ts";
import type { Rules } from "./rules.ts";
import { noRules, rejection, workOf } from "./trainer-table.ts";

/** The subject of a trainer's record. */
export type TrainerSubject = Exclude<LogSubject, { by: "host" }>;

/** A record of a trainer with its header parsed. */
export interface ParsedRecord {
  readonly header: RecordHeader;
  readonly message: Message;
  /** Bytes of the record before its tensor bytes. */
  readonly headerBytes: number;
  /** Whether it asks for no answer, or for one to the trainer's own inbox. */
  readonly isAnswerable: boolean;
}

/** The outcome of a trainer's record, and the changes that it made. */
export interface FoldResult {
  readonly outcome: Outcome;
  readonly changes: readonly Change[];
  /** Whether the outcome is that of an earlier copy of the record. */
  readonly isRepeat: boolean;
  /** The entry for which a batch was rejected, if it was one that could be read. */
  readonly fault?: BatchEntry | undefined;
}

/** The state that trainers' records are folded into. */
export interface TrainerFold {
  readonly tables: FoldTables;
  readonly memory: ShardMemory;
  /** Whether changes carry statistics, for an observer. */
  readonly measures: boolean;
}

const NO_CHANGES: readonly Change[] = [];
const UNCHANGED = { changes: NO_CHANGES, isRepeat: false } as const;

/**
 * Applies or rejects a trainer's record, and remembers its outcome. A repeated record, or one of an ended session,
 * changes nothing.
 * @throws INTERNAL, TOO_LARGE if this process cannot go on.
 */
export function foldTrainerRecord(
  fold: TrainerFold,
  seq: number,
  subject: TrainerSubject,
  received: ParsedRecord,
): FoldResult {
  const { header } = received;
  const { rules, trainers } = fold.tables;
  if (rules === undefined) return { outcome: noRules(header.n, seq), ...UNCHANGED };
  const answer = trainers.answerUnlessAdmitted(subject.trainer, header, seq, rules);
  if (answer !== undefined) {
    const isRepeat = answer.seq !== seq || answer.code === "SETTLED";
    return { outcome: answer, changes: NO_CHANGES, isRepeat };
  }
  const applied = applyOnce(contextOf(fold, subject, received, rules), seq, subject, received);
  trainers.note(subject.trainer, header, applied.outcome, workOf(received));
  return applied;
}

function applyOnce(
  context: RecordContext,
  seq: number,
  subject: TrainerSubject,
  received: ParsedRecord,
): FoldResult {
  const { n } = received.header;
  let changes: readonly Change[];
  try {
    changes = check(context, subject, received);
  } catch (cause) {
    const error = ensureError(cause);
    if (error.code === "INTERNAL") throw error;
    const outcome = rejection(n, seq, error.code, error.message);
    return { outcome, ...UNCHANGED, fault: context.fault.entry };
  }
  let last = 0;
  for (const change of changes) last = applyChange(context, change);
  const version = subject.by === "batch" ? 0 : last;
  return { outcome: { n, seq, version }, changes, isRepeat: false };
}

/**
 * Checks a record and returns the changes of blocks that it makes. A clock or a note changes no block; a clock is
 * taken here.
 * @throws the rejection.
 */
function check(
  context: RecordContext,
  subject: TrainerSubject,
  { header, message }: ParsedRecord,
): readonly Change[] {
  const { steps, trainer, rules } = context;
  if (subject.by === "clock") {
    const { step } = parseClock(message.fields);
    checkReply(context, header.reply);
    steps.takeClock(trainer, step, rules.clockLeadSteps);
    return NO_CHANGES;
  }
  if (subject.by !== "note") return checkUpdate(context, subject, header, message);
  parseNote(message.fields);
  checkReply(context, header.reply);
  return NO_CHANGES;
}

function contextOf(
  { tables, memory, measures }: TrainerFold,
  { trainer, by }: TrainerSubject,
  { isAnswerable }: ParsedRecord,
  rules: Rules,
): RecordContext {
  const { blocks, steps, declarations } = tables;
  // No object spread here: it would take a fifth of the time of a small record.
  return {
    memory,
    blocks,
    rules,
    steps,
    declarations,
    trainer,
    isAnswerable,
    measures,
    readIndex: by === "batch" ? readPackedIndex : readPartIndex,
    added: { bytes: 0, count: 0 },
    fault: { entry: undefined },
  };
}

/**
 * Applies a host's record. Before the first `rules` record, other host records have no effect.
 * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
 */
export function foldHostRecord(tables: FoldTables, record: HostRecord): void {
  const { rules, blocks, trainers, steps, declarations } = tables;
  if (record.verb === "rules") tables.takeRules(record);
  else if (rules === undefined) return;
  else if (record.verb === "members") steps.takeMembers(record);
  else if (record.verb === "drop") {
    blocks.drop(record.parameter, record.epoch);
    declarations.drop(record.parameter, record.epoch);
  } else if (record.verb === "floor") trainers.raiseFloor(record.session);
  else if (record.verb === "sessions") trainers.endSessions(record);
  else if (record.verb === "forget") trainers.forget(record.trainers);
  else if (record.verb === "end") trainers.endTrainer(record);
  else if (record.verb === "ready") tables.takeReady(record);
  else declarations.take(record, rules.declaredMax);
}
