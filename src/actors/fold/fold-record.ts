import type { Message } from "../../protocol/codec.ts";
import { ensureError } from "../../protocol/errors.ts";
import { claimedEntries } from "../../protocol/messages/batch-records.ts";
import type { HostRecord } from "../../protocol/messages/host-records.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import {
  parseClock,
  parseNote,
  parseTrainerRecord,
  type RecordHeader,
} from "../../protocol/messages/records.ts";
import type { LogSubject } from "../../protocol/subjects.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
import { applyChange, type Change } from "./apply-update.ts";
import { applyBatch } from "./batch/apply-batch.ts";
import { BatchFault, checkBatch } from "./batch/check-batch.ts";
import type { FaultyEntry, RunChange } from "./batch/run-change.ts";
import { checkRecord, checkReply, type RecordContext } from "./check-update.ts";
import type { FoldTables } from "./fold-state.ts";
import {
  type ClosedRound,
  type Contributed,
  closeRound,
  contribute,
  discardRound,
  type FragmentFold,
  roundToClose,
} from "./fragments/contribute.ts";
import { GuardRejection, type GuardVerdict, verdictOf } from "./guards/judge.ts";
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
  /** The change that it made; undefined for a batch, and if there is none. */
  readonly change: Change | undefined;
  /** The changes of the runs of a batch. */
  readonly runs: readonly RunChange[];
  /** Whether the outcome is that of an earlier copy of the record. */
  readonly isRepeat: boolean;
  /** The entry for which a batch was rejected, if it was an entry. */
  readonly fault?: FaultyEntry | undefined;
  /** What a contribution has come to. */
  readonly contributed?: Contributed | undefined;
  /** What guards have decided about it, if a norm was above its limit. */
  readonly verdict?: GuardVerdict | undefined;
}

/** The state that trainers' records are folded into. */
export interface TrainerFold {
  readonly tables: FoldTables;
  readonly memory: ShardMemory;
  /** Whether changes carry statistics, for an observer. */
  readonly measures: boolean;
}

const NO_RUNS: readonly RunChange[] = [];
const UNCHANGED = { change: undefined, runs: NO_RUNS, isRepeat: false } as const;

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
    return { outcome: answer, change: undefined, runs: NO_RUNS, isRepeat };
  }
  const context = contextOf(fold, seq, subject, received, rules);
  const applied = applyOnce(fold, context, seq, subject, received);
  const hasEntries = subject.by === "batch" || subject.by === "contribute";
  const entries = hasEntries ? claimedEntries(received.message) : 0;
  // A record that is set aside is neither to the trainer's credit nor to its debit.
  const isAside = applied.verdict?.action === "set-aside";
  const work = isAside ? 0 : workOf({ ...received, entries });
  trainers.note(subject.trainer, header, applied.outcome, work);
  fold.tables.fragments.open.keepSession(subject.trainer, header.session);
  return applied;
}

function applyOnce(
  fold: TrainerFold,
  context: RecordContext,
  seq: number,
  subject: TrainerSubject,
  received: ParsedRecord,
): FoldResult {
  const { header, message } = received;
  const { n } = header;
  const { guards } = fold.tables;
  const { trainer, rules, judged } = context;
  let checked: CheckedRecord;
  let verdict: GuardVerdict | undefined;
  try {
    if (subject.by === "contribute") {
      const contributed = contribute(
        fragmentFold(fold, context.rules),
        context,
        seq,
        header,
        message,
      );
      guards.note(trainer, judged, rules.guardNormsMax);
      verdict = verdictOf(judged);
      const outcome = accepted(n, seq, contributed.round, verdict);
      return { outcome, ...UNCHANGED, contributed, verdict };
    }
    checked = check(context, subject, received);
    verdict = verdictOf(judged);
    if (verdict?.action === "reject") throw new GuardRejection(verdict);
  } catch (cause) {
    const error = ensureError(cause);
    if (error.code === "INTERNAL") throw error;
    const outcome = rejection(n, seq, error.code, error.message);
    if (error instanceof GuardRejection) {
      guards.note(trainer, judged, rules.guardNormsMax);
      return { outcome, ...UNCHANGED, fault: error.verdict.entry, verdict: error.verdict };
    }
    const fault = error instanceof BatchFault ? error.entry : undefined;
    return { outcome, ...UNCHANGED, fault };
  }
  guards.note(trainer, judged, rules.guardNormsMax);
  if (verdict?.action === "set-aside") {
    const version = checked.change === undefined ? 0 : versionOf(checked.change);
    const outcome = accepted(n, seq, version, verdict);
    return { outcome, ...UNCHANGED, fault: verdict.entry, verdict };
  }
  const { change, runs } = checked;
  const version = change === undefined ? 0 : applyChange(context, change);
  applyBatch(context, runs);
  if (context.steps.synchronization.mode === "diloco") {
    for (const fragment of initializedFragments(checked)) {
      discardRound(fragmentFold(fold, context.rules), fragment);
    }
  }
  const outcome = accepted(n, seq, version, verdict);
  return { outcome, change, runs, isRepeat: false, verdict };
}

/** Returns the version of the block that a change is of, before it is made; 0 for a new block. */
function versionOf(change: Change): number {
  return change.kind === "init" ? 0 : change.block.version;
}

/** Returns the outcome of a record that is not rejected. */
function accepted(
  n: number,
  seq: number,
  version: number,
  verdict: GuardVerdict | undefined,
): Outcome {
  if (verdict === undefined) return { n, seq, version };
  const { action, norm, limit } = verdict;
  return { n, seq, version, guard: { action, norm, limit } };
}

/** Returns the fragments of the blocks that a record has initialized. */
function initializedFragments({ change, runs }: CheckedRecord): Set<string> {
  const names = runs.flatMap(({ created }) =>
    created.map(({ declared }) => declared.config.fragment),
  );
  if (change?.kind === "init") names.push(change.record.config.fragment);
  return new Set(names.flatMap((name) => name ?? []));
}

/** Returns the state that contributions are folded into. */
function fragmentFold(
  { tables, memory }: Pick<TrainerFold, "tables" | "memory">,
  rules: Rules,
): FragmentFold {
  const { blocks, declarations, steps, fragments } = tables;
  return { memory, blocks, declarations, steps, fragments, rules };
}

/** What a record that passed every check changes. */
type CheckedRecord = Pick<FoldResult, "change" | "runs">;

/**
 * Checks a record and returns the changes of blocks that it makes. A clock or a note changes no block; a clock is
 * taken here. All of a batch is checked before any of it is applied, so it is one transaction.
 * @throws the rejection.
 */
function check(
  context: RecordContext,
  subject: TrainerSubject,
  { header, message }: ParsedRecord,
): CheckedRecord {
  const { steps, trainer, rules } = context;
  if (subject.by === "trainer") {
    const { parameter, index, verb } = subject;
    const record = parseTrainerRecord(verb, header, message);
    const change = checkRecord(context, { parameter, index }, record, message.data);
    return { change, runs: NO_RUNS };
  }
  if (subject.by === "batch") {
    return { change: undefined, runs: checkBatch(context, header, message) };
  }
  if (subject.by === "clock") {
    const { step } = parseClock(message.fields);
    checkReply(context, header.reply);
    steps.takeClock(trainer, step, rules.clockLeadSteps);
    return UNCHANGED;
  }
  parseNote(message.fields);
  checkReply(context, header.reply);
  return UNCHANGED;
}

function contextOf(
  { tables, memory, measures }: TrainerFold,
  seq: number,
  { trainer }: TrainerSubject,
  { isAnswerable }: ParsedRecord,
  rules: Rules,
): RecordContext {
  const { blocks, steps, declarations, guards } = tables;
  // No object spread here: it would take a fifth of the time of a small record.
  return {
    memory,
    blocks,
    rules,
    steps,
    declarations,
    guards,
    judged: [],
    seq,
    trainer,
    isAnswerable,
    measures,
    added: { bytes: 0, count: 0 },
  };
}

/** Records after which the shard may remember fewer trainers. */
const ENDS_TRAINERS: readonly HostRecord["verb"][] = ["floor", "sessions", "forget", "end"];

/** The state that hosts' records are folded into. */
export type HostFold = Pick<TrainerFold, "tables" | "memory">;

/** Returns the round that a host's record closes; undefined if it closes none. Changes nothing. */
export function roundClosedBy({ tables }: HostFold, record: HostRecord): ClosedRound | undefined {
  if (record.verb !== "close" || tables.rules === undefined) return undefined;
  return roundToClose(tables, record);
}

/**
 * Applies a host's record, which closes the round `closed`, or none. Before the first `rules` record, other host records
 * have no effect.
 * @throws UNKNOWN_RULES for a `rules` record of a version this program lacks.
 */
export function foldHostRecord(
  fold: HostFold,
  record: HostRecord,
  closed: ClosedRound | undefined,
): void {
  const { tables } = fold;
  const { rules, blocks, trainers, steps, declarations, fragments } = tables;
  if (record.verb === "rules") {
    tables.takeRules(record);
    return;
  }
  if (rules === undefined) return;
  if (record.verb === "close") {
    if (closed !== undefined) closeRound(fragmentFold(fold, rules), closed);
    return;
  }
  const changed = new Set<string>();
  if (record.verb === "members") steps.takeMembers(record);
  else if (record.verb === "drop") {
    const fragment = declarations.get(record.parameter)?.config.fragment;
    blocks.drop(record.parameter, record.epoch);
    declarations.drop(record.parameter, record.epoch);
    if (fragment !== undefined) changed.add(fragment);
  } else if (record.verb === "floor") trainers.raiseFloor(record.session);
  else if (record.verb === "sessions") trainers.endSessions(record);
  else if (record.verb === "forget") trainers.forget(record.trainers);
  else if (record.verb === "end") trainers.endTrainer(record);
  else if (record.verb === "ready") tables.takeReady(record);
  else for (const fragment of declarations.take(record, rules.declaredMax)) changed.add(fragment);
  if (ENDS_TRAINERS.includes(record.verb)) tables.guards.keepTrainers((id) => trainers.has(id));
  if (steps.synchronization.mode !== "diloco") return;
  for (const fragment of changed) discardRound(fragmentFold(fold, rules), fragment);
  const isMember = (trainer: string): boolean => steps.clockOf(trainer) !== undefined;
  fragments.open.keep((trainer, session) => isMember(trainer) && trainers.holds(trainer, session));
  fragments.keepMembers(isMember);
}
