import type { Fields } from "../../protocol/codec.ts";
import type { GuardDecision } from "../../protocol/config/index.ts";
import {
  DTYPES,
  type Dtype,
  ENCODINGS,
  type Encoding,
  elementsIn,
  encodedBytes,
} from "../../protocol/dtypes.ts";
import type { ErrorCode, PserverError } from "../../protocol/errors.ts";
import { parseContribution } from "../../protocol/messages/contributions.ts";
import {
  blockRows,
  type PartCounts,
  partCounts,
  partElements,
  readPartIndex,
} from "../../protocol/messages/parts.ts";
import {
  type NoteEntries,
  type PushRecord,
  parseClock,
  parseNote,
  parseTrainerRecord,
  type TrainerRecord,
} from "../../protocol/messages/records.ts";
import type { HostVerb, TrainerVerb } from "../../protocol/subjects.ts";
import { type Change, firstVersion } from "../fold/apply-update.ts";
import {
  entryPart,
  entryPayload,
  type FaultyEntry,
  offsetsOf,
  type RunChange,
} from "../fold/batch/run-change.ts";
import type { Block, BlockName } from "../fold/block-actor.ts";
import { computedAs, type Payload, payloadOf } from "../fold/elements.ts";
import {
  type FoldedRecord,
  type FoldObserver,
  type JournalRecord,
  readable,
} from "../fold/journal-record.ts";
import type { RecordAnswer, Shard } from "../fold/shard.ts";
import { measure, type Statistics } from "../fold/statistics.ts";
import type { BlockChange, BlockOperation } from "./block-change.ts";
import { RunLines } from "./run-lines.ts";

/**
 * What a record, or an entry of a batch, asks for; `unreadable` if it cannot be read. `left-out` stands for records
 * whose lines the tape leaves out.
 */
export type UpdateVerb =
  | TrainerVerb
  | "clock"
  | "note"
  | "batch"
  | "contribute"
  | HostVerb
  | "unreadable"
  | "left-out";

/** The outcome of a record as events have it. */
export type UpdateOutcome =
  | { readonly kind: "applied" }
  /** A guard has kept it from being applied, for an operator to decide. */
  | { readonly kind: "set-aside" }
  | { readonly kind: "rejected"; readonly code: ErrorCode; readonly message: string }
  /** An earlier copy was folded before. `seq` is that record; 0 if it is not known any more. */
  | { readonly kind: "repeated"; readonly seq: number }
  | { readonly kind: "unreadable" };

/** What a guard has decided about a record, as events have it. */
export interface GuardMark extends GuardDecision {
  /** The median of the norms before. */
  readonly median: number;
  /** How many these are. */
  readonly norms: number;
  /** How many other norms of the record were above their limits. */
  readonly others: number;
  /** The event that has the mark, by its entry. */
  readonly entry: number;
}

/** Where an update stands in a job's history. */
export interface UpdatePlace {
  /** When the broker stored the record, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly shard: number;
  readonly generation: number;
  readonly seq: number;
}

/** One update as it was folded: a record, or an entry of a batch. Holds no tensor. */
export interface UpdateEvent extends UpdatePlace {
  /** Number of the entry in its record, from 0. */
  readonly entry: number;
  /** Entries of the record: 1 unless it is a batch. */
  readonly entries: number;
  readonly verb: UpdateVerb;
  readonly outcome: UpdateOutcome;
  /**
   * What a guard has decided about the record; of a batch that was applied only in the event of the entry whose norm is
   * furthest above its limit.
   */
  readonly guard?: GuardMark | undefined;
  /** The sender; undefined for a host, and if the record does not name one. */
  readonly trainer?: string | undefined;
  readonly session?: number | undefined;
  /** Number of the record in its session and shard. */
  readonly n?: number | undefined;
  /** The step that a gradient or a clock names. */
  readonly step?: number | undefined;
  /** What it does to which block; undefined if it is about no block, or cannot be read. */
  readonly block?: BlockChange | undefined;
  /** The entries of a note; of a contribution and a close, what they say in numbers and words. */
  readonly note?: NoteEntries | undefined;
  /** Bytes of the record's payload; only for a record about no block. */
  readonly bytes?: number | undefined;
  /**
   * Code and text of the error, if the record could not be described. Such a record is a single event with its place,
   * sender and outcome alone. Undefined for a record that was described.
   */
  readonly undescribed?: string | undefined;
}

type TrainersRecord = Extract<FoldedRecord, { kind: "trainer" }>;

/** The shard that a record was folded into, as far as events need it. */
type BlockSource = Pick<Shard, "memory" | "block" | "nameOfNumber">;

/**
 * Describes a record that was just folded: as one event, or as one for each entry of a batch. Must be called by the
 * shard's observer, because it measures elements that lie in the record. A batch that changed nothing is one event,
 * of the entry at fault if there is one, so that it costs no more here than in the fold.
 */
export function describeRecord(
  folded: FoldedRecord,
  shard: BlockSource,
  place: Pick<UpdatePlace, "shard" | "generation">,
): UpdateEvent[] {
  const { seq, timeMs } = folded;
  const at: UpdatePlace = { timeMs, shard: place.shard, generation: place.generation, seq };
  if (folded.kind === "trainer") return describeTrainers(folded, shard, at);
  if (folded.kind === "host") {
    const { verb } = folded.record;
    const note = closeNote(folded);
    return [{ ...at, ...WHOLE, verb, outcome: { kind: "applied" }, note }];
  }
  const { subject, payloadBytes: bytes } = folded;
  const trainer = subject === undefined || subject.by === "host" ? undefined : subject.trainer;
  return [{ ...at, ...WHOLE, verb: "unreadable", outcome: { kind: "unreadable" }, trainer, bytes }];
}

/** Returns the trainer that a record names as its sender; undefined for a host's; "" if it names none. */
export function senderOf(folded: FoldedRecord): string | undefined {
  if (folded.kind === "host") return undefined;
  const { subject } = folded;
  return subject === undefined || subject.by === "host" ? "" : subject.trainer;
}

/** Consecutive records of one trainer that have no lines, up to the one that says so. */
export interface LeftOutRecords {
  readonly records: number;
  /** The first of them. */
  readonly fromSeq: number;
}

/** Returns the event that stands for records whose lines are left out, at the place of the last of them. */
export function leftOutLine(
  folded: FoldedRecord,
  place: Pick<UpdatePlace, "shard" | "generation">,
  { records, fromSeq }: LeftOutRecords,
): UpdateEvent {
  const { seq, timeMs } = folded;
  const at = { timeMs, shard: place.shard, generation: place.generation, seq, ...WHOLE };
  const [trainer, note] = [senderOf(folded), { records, from: fromSeq }];
  return { ...at, verb: "left-out", outcome: { kind: "unreadable" }, trainer, note };
}

/** Reads {@link leftOutLine}: which records the event stands for; undefined for any other event. */
export function leftOutRecords({ verb, note }: UpdateEvent): LeftOutRecords | undefined {
  if (verb !== "left-out") return undefined;
  const [records, fromSeq] = [Number(note?.["records"]), Number(note?.["from"])];
  return { records, fromSeq };
}

/** Limit of the characters of an error's text in an event. */
const ERROR_LENGTH_MAX = 200;

/**
 * Returns the event of a record whose description has failed with `error`: its place, sender and outcome. Must be
 * called by the shard's observer.
 */
export function undescribed(
  folded: FoldedRecord,
  place: Pick<UpdatePlace, "shard" | "generation">,
  error: PserverError,
): UpdateEvent {
  const { seq, timeMs } = folded;
  const event = {
    ...{ timeMs, shard: place.shard, generation: place.generation, seq, ...WHOLE },
    undescribed: `${error.code}: ${error.message}`.slice(0, ERROR_LENGTH_MAX).toWellFormed(),
  };
  if (folded.kind === "host") {
    return { ...event, verb: folded.record.verb, outcome: { kind: "applied" } };
  }
  const { subject } = folded;
  const trainer = subject === undefined || subject.by === "host" ? undefined : subject.trainer;
  if (folded.kind === "unreadable") {
    const outcome = { kind: "unreadable" } as const;
    return { ...event, verb: "unreadable", outcome, trainer, bytes: folded.payloadBytes };
  }
  const { session, n } = folded.header;
  const verb = folded.subject.by === "trainer" ? folded.subject.verb : folded.subject.by;
  const bytes = folded.message.data.length;
  const guard = markOf(folded);
  return { ...event, verb, outcome: outcomeOf(folded), trainer, session, n, bytes, guard };
}

const WHOLE = { entry: 0, entries: 1 } as const;

function describeTrainers(
  folded: TrainersRecord,
  shard: BlockSource,
  at: UpdatePlace,
): UpdateEvent[] {
  const { subject, header, message, change, runs, fault } = folded;
  const { session, n } = header;
  const { timeMs, shard: number, generation, seq } = at;
  const outcome = outcomeOf(folded);
  const { trainer } = subject;
  const guard = markOf(folded);
  const sender = { timeMs, shard: number, generation, seq, outcome, trainer, session, n, guard };
  if (change !== undefined) {
    return [{ ...sender, ...WHOLE, verb: verbOf(change), ...describeChange(change, shard.memory) }];
  }
  if (runs.length > 0) return describeRuns(runs, sender, shard.memory);
  if (subject.by === "clock") {
    const step = readable(() => parseClock(message.fields))?.step;
    return [{ ...sender, ...WHOLE, verb: "clock", step }];
  }
  if (subject.by === "note") {
    const note = readable(() => parseNote(message.fields))?.note;
    return [{ ...sender, ...WHOLE, verb: "note", note }];
  }
  if (subject.by === "contribute") {
    const note = contributionNote(message.fields, folded);
    const bytes = message.data.length;
    return [{ ...sender, ...WHOLE, verb: "contribute", note, bytes }];
  }
  if (subject.by === "batch") {
    const block = fault && faultyChange(fault, shard);
    if (fault === undefined || block === undefined) {
      return [{ ...sender, ...WHOLE, verb: "batch", bytes: message.data.length }];
    }
    const { verb, operation } = fault.run;
    const step = operation?.op === "grad" ? operation.step : undefined;
    return [{ ...sender, ...WHOLE, verb, step, block }];
  }
  const record = readable(() => parseTrainerRecord(subject.verb, header, message));
  if (record === undefined) {
    return [{ ...sender, ...WHOLE, verb: subject.verb, bytes: message.data.length }];
  }
  const block = unappliedChange(subject, record, message.data, shard);
  return [{ ...sender, ...WHOLE, verb: record.verb, step: stepOf(record), block }];
}

/**
 * Returns what a contribution says; undefined if it cannot be read. `round` is the one that it counts in: none for a
 * part that did not complete it, and for one that was rejected. `guarded` is the tensor whose norm was above its limit.
 */
function contributionNote(
  fields: Fields,
  { contributed, verdict }: TrainersRecord,
): NoteEntries | undefined {
  const contribution = readable(() => parseContribution(fields));
  if (contribution === undefined) return undefined;
  const { fragment, base, steps, tokens, part, parts } = contribution;
  const round = contributed?.round ?? 0;
  return {
    ...{ fragment, base, steps, tokens },
    ...(parts === 1 ? {} : { part: part + 1, parts }),
    ...(round === 0 ? {} : { round }),
    ...(verdict === undefined ? {} : { guarded: verdict.parameter }),
  };
}

/** Contributions that the event of a close names one by one. */
const NAMED_MAX = 64;

/** Returns what a close has merged; undefined for any other record. */
function closeNote({
  record,
  closed,
}: Extract<FoldedRecord, { kind: "host" }>): NoteEntries | undefined {
  if (record.verb !== "close") return undefined;
  const { fragment, round } = record;
  if (closed === undefined) return { fragment, round, contributions: 0 };
  const { merged } = closed;
  const names = merged.slice(0, NAMED_MAX).map(({ seq }) => seq);
  return { fragment, round, contributions: merged.length, merged: names.join(" ") };
}

/** Entries that all events of a record share. */
type Sender = Pick<
  UpdateEvent,
  "timeMs" | "shard" | "generation" | "seq" | "outcome" | "trainer" | "session" | "n" | "guard"
>;

/** Describes the entries of a batch that was applied. */
function describeRuns(
  runs: readonly RunChange[],
  { timeMs, shard, generation, seq, outcome, trainer, session, n, guard: mark }: Sender,
  memory: Shard["memory"],
): UpdateEvent[] {
  const events: UpdateEvent[] = [];
  const lines = new RunLines(runs, memory);
  const { entries } = lines;
  for (let entry = 0; entry < entries; entry++) {
    const { verb } = lines;
    const change = lines.next();
    const step = change.operation.op === "grad" ? lines.step : undefined;
    const block = { ...change, statistics: { ...change.statistics } };
    const at = { timeMs, shard, generation, seq, entry, entries };
    const guard = entry === mark?.entry ? mark : undefined;
    events.push({ ...at, verb, outcome, trainer, session, n, step, block, guard });
  }
  return events;
}

/** The lines of a batch that was applied. */
export interface BatchLines {
  /** The event of its first entry, without what that did to its block; `guard` is that of whichever entry has one. */
  readonly first: UpdateEvent;
  readonly lines: RunLines;
}

/** Describes a batch that was applied, for the tape; undefined for any other record. As {@link describeRecord}. */
export function batchLines(
  folded: FoldedRecord,
  shard: Pick<Shard, "memory">,
  place: Pick<UpdatePlace, "shard" | "generation">,
): BatchLines | undefined {
  if (folded.kind !== "trainer" || folded.runs.length === 0) return undefined;
  const { seq, timeMs, subject, header, runs } = folded;
  const lines = new RunLines(runs, shard.memory);
  const { entries, verb, step } = lines;
  const at = { timeMs, shard: place.shard, generation: place.generation, seq, entry: 0, entries };
  const sender = { trainer: subject.trainer, session: header.session, n: header.n };
  const [outcome, guard] = [outcomeOf(folded), markOf(folded)];
  return { first: { ...at, verb, outcome, ...sender, step, guard }, lines };
}

function describeChange(
  change: Change,
  memory: Shard["memory"],
): Pick<UpdateEvent, "step" | "block"> {
  const step = change.kind === "gradient" ? change.operation.step : undefined;
  return { step, block: blockChange(change, memory) };
}

/** Describes the entry for which a batch was rejected; undefined if its number tells no block. */
function faultyChange({ run, place }: FaultyEntry, shard: BlockSource): BlockChange | undefined {
  const name = shard.nameOfNumber(run.numbers[place] as number);
  if (name === undefined) return undefined;
  const version = shard.block(name.parameter, name.index)?.version;
  const offsets = offsetsOf(run, place);
  const payload = readable(() => entryPayload(run, place, offsets));
  const { dtype, encoding, operation } = run;
  const { [place]: elements = 0 } = run.counts;
  const { [place]: seen = 0 } = run.seen ?? [];
  const part = entryPart(run, place, offsets);
  return describeBlock(
    name.parameter,
    name.index,
    operation === undefined ? { op: run.verb === "init" ? "init" : "set" } : operationOf(operation),
    { dtype, encoding, elements, bytes: encodedBytes(dtype, encoding, elements) },
    payload && measure(shard.memory, payload),
    version,
    part && partCounts(part),
    seen === 0 || version === undefined ? undefined : Math.max(0, version - seen),
  );
}

/** Returns what a guard has decided about a record; undefined if none has. */
function markOf({ verdict, runs }: TrainersRecord): GuardMark | undefined {
  if (verdict === undefined) return undefined;
  const { action, norm, limit, median, norms, others, entry: found } = verdict;
  // A batch that was not applied is a single event.
  const entry = found === undefined || runs.length === 0 ? 0 : found.run.first + found.place;
  return { action, norm, limit, median, norms, others, entry };
}

function outcomeOf({ outcome, isRepeat, verdict }: TrainersRecord): UpdateOutcome {
  const { code, message = "", seq } = outcome;
  if (isRepeat) return { kind: "repeated", seq: code === "SETTLED" ? 0 : seq };
  // A contribution that is set aside is told as a rejection to its trainer alone.
  if (verdict?.action === "set-aside") return { kind: "set-aside" };
  return code === undefined ? { kind: "applied" } : { kind: "rejected", code, message };
}

function verbOf({ kind }: Change): "init" | "set" | "push" {
  return kind === "init" || kind === "set" ? kind : "push";
}

function stepOf(record: TrainerRecord): number | undefined {
  return record.verb === "push" && record.operation.op === "grad"
    ? record.operation.step
    : undefined;
}

/**
 * Returns what a change did to its block. Makes objects of one shape, without object spread, which is slow in V8:
 * this runs for every update that a host folds.
 */
function blockChange(change: Change, memory: Shard["memory"]): BlockChange {
  if (change.kind === "init") {
    const { name, record, data } = change;
    const payload = { dtype: record.dtype, bytes: data };
    const statistics = change.statistics ?? measure(memory, payload);
    const sent = sentOf(payload);
    const version = firstVersion(record);
    return describeBlock(name.parameter, name.index, { op: "init" }, sent, statistics, version);
  }
  const { block, statistics: known } = change;
  const { parameter, index, dtype, version } = block;
  if (change.kind === "set") {
    // What a slot holds is no values: statistics are of these alone.
    const isValues = change.slot === undefined;
    const payload = { dtype: isValues ? dtype : computedAs(dtype), bytes: change.data };
    const statistics = isValues ? (known ?? measure(memory, payload)) : undefined;
    return describeBlock(parameter, index, { op: "set" }, sentOf(payload), statistics, version);
  }
  const { payload, part, operation } = change;
  // A gradient that waits for its step to close has not raised the version.
  const waits = change.kind === "gradient" && block.plan.accumulator !== undefined;
  return describeBlock(
    parameter,
    index,
    operationOf(operation),
    sentOf(payload),
    known ?? measure(memory, payload),
    version,
    part && partCounts(part),
    behindOf(operation, waits ? version : version - 1),
  );
}

/** Elements as a record has them. */
type SentElements = Pick<BlockChange, "dtype" | "encoding" | "elements" | "bytes">;

function sentOf({ dtype, encoding, bytes, sent }: Payload): SentElements {
  return {
    dtype,
    encoding: sent?.encoding ?? encoding,
    elements: Math.floor(bytes.length / wireBytes(dtype, encoding)),
    bytes: sent?.bytes ?? bytes.length,
  };
}

function describeBlock(
  parameter: string,
  index: number,
  operation: BlockOperation,
  { dtype, encoding, elements, bytes }: SentElements,
  statistics: Statistics | undefined,
  version: number | undefined,
  part?: PartCounts,
  behind?: number,
): BlockChange {
  return {
    parameter,
    index,
    operation,
    dtype,
    encoding,
    part,
    elements,
    bytes,
    statistics,
    version,
    behind,
  };
}

/**
 * Returns the bytes of an element in a record, even in one that is rejected because its type has no such encoding.
 */
function wireBytes(dtype: Dtype, encoding: Encoding | undefined): number {
  return encoding === undefined ? DTYPES[dtype].bytes : ENCODINGS[encoding].bits / 8;
}

function operationOf(
  operation: Extract<TrainerRecord, { verb: "push" }>["operation"],
): BlockOperation {
  if (operation.op === "grad") return { op: "grad", lr: operation.lr };
  const { op, alpha, beta } = operation;
  return { op, alpha, beta };
}

function behindOf(
  operation: Extract<TrainerRecord, { verb: "push" }>["operation"],
  version: number | undefined,
): number | undefined {
  if (operation.op === "mix" || operation.seen === undefined || version === undefined)
    return undefined;
  return Math.max(0, version - operation.seen);
}

/** Describes an update of one block that changed nothing. */
function unappliedChange(
  { parameter, index }: BlockName,
  record: TrainerRecord,
  data: Uint8Array,
  shard: BlockSource,
): BlockChange {
  const block = shard.block(parameter, index);
  const version = block?.version;
  const { dtype } = record;
  if (record.verb !== "push") {
    const isValues = record.verb === "init" || record.slot === undefined;
    const payload = { dtype: isValues ? dtype : computedAs(dtype), bytes: data };
    const statistics = isValues ? measure(shard.memory, payload) : undefined;
    const sent = sentOf(payload);
    return describeBlock(parameter, index, { op: record.verb }, sent, statistics, version);
  }
  const { encoding, part } = record;
  const operation = operationOf(record.operation);
  const behind = behindOf(record.operation, version);
  const own = part === undefined ? data : readable(() => elementsOf(block, part, data));
  const bytes = own ?? data;
  const elements = countIn(record, bytes, block);
  // Elements that do not fit the type, or groups that no client writes, are why the record is rejected.
  const payload = readable(() => {
    if (own === undefined || elements === undefined) return undefined;
    return payloadOf({ dtype, encoding }, own, elements);
  });
  const sent = {
    ...{ dtype, encoding, bytes: bytes.length },
    elements: elements ?? Math.floor(bytes.length / wireBytes(dtype, encoding)),
  };
  const statistics = payload && measure(shard.memory, payload);
  return describeBlock(parameter, index, operation, sent, statistics, version, part, behind);
}

/** Counts the elements in the bytes of a push; undefined if there is no such number. */
function countIn(
  { dtype, encoding, part }: PushRecord,
  bytes: Uint8Array,
  block: Block | undefined,
): number | undefined {
  return readable(() => {
    const wanted =
      block && (part === undefined ? block.count : partElements(part, blockRows(block)));
    const fits = wanted !== undefined && encodedBytes(dtype, encoding, wanted) === bytes.length;
    return fits ? wanted : elementsIn(dtype, encoding, bytes.length);
  });
}

/** Counts the elements of a part of a block; undefined if there is no such block. @throws BAD_LENGTH, BAD_INDEX */
function elementsOf(
  block: Block | undefined,
  part: PartCounts,
  data: Uint8Array,
): Uint8Array | undefined {
  return block && readPartIndex(part, data, blockRows(block)).elements;
}

/** A record with the time that its description needs and the fold does not. */
export interface DatedRecord extends JournalRecord {
  /** When the broker stored it, in milliseconds since 1970. */
  readonly timeMs: number;
}

/** A record that was folded, and its description. */
export interface DescribedRecord {
  /** The updates of the record, in the order of its entries. */
  readonly events: readonly UpdateEvent[];
  readonly settled: RecordAnswer | undefined;
}

/**
 * Folds the next record and describes it, as far as it can be described. `place` is the shard and the generation of
 * its journal. Replaces the shard's observers during the call.
 * @throws as `Shard.apply`.
 */
export function foldDescribed(
  shard: Shard,
  record: DatedRecord,
  place: { readonly shard: number; readonly generation: number },
): DescribedRecord {
  let events: readonly UpdateEvent[] = [];
  const before = shard.observers;
  const describer: FoldObserver = {
    measures: true,
    observe: (folded) => {
      events = describeRecord(folded, shard, place);
    },
    failed: (folded, error) => {
      events = [undescribed(folded, place, error)];
    },
  };
  shard.observers = [describer];
  try {
    const settled = shard.apply(record);
    return { events, settled };
  } finally {
    shard.observers = before;
  }
}
