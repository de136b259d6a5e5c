import type { Message } from "../../../protocol/codec.ts";
import { ensureError, PserverError } from "../../../protocol/errors.ts";
import { parseBatch, type ReceivedRun } from "../../../protocol/messages/batch-records.ts";
import { entryLabel } from "../../../protocol/messages/columns.ts";
import type { RecordHeader } from "../../../protocol/messages/records.ts";
import { quoteName } from "../../../protocol/names.ts";
import { allFinite, areBools } from "../apply-update.ts";
import { type BlockActor, blockLabel, heldBytes, slotPlan } from "../block-actor.ts";
import {
  checkFiniteNorm,
  checkGradientStep,
  checkNewBlock,
  checkNotStatic,
  checkOperation,
  checkReply,
  noBools,
  nonFinite,
  type RecordContext,
} from "../check-update.ts";
import { decodedElements } from "../elements.ts";
import { judgeNorm } from "../guards/judge.ts";
import { MEASURED } from "../statistics.ts";
import { measureRun } from "./measure-run.ts";
import {
  type EntryOffsets,
  entryBytes,
  entryPayload,
  type FaultyEntry,
  type FoldedRun,
  firstOffsets,
  foldedRun,
  initOf,
  type NewBlock,
  passEntry,
  type RunChange,
} from "./run-change.ts";

/** The rejection of a batch. */
export class BatchFault extends PserverError {
  /** The entry at fault, if it is one. */
  readonly entry: FaultyEntry | undefined;

  constructor(cause: unknown, label: string, entry: FaultyEntry) {
    const { code, message, details } = ensureError(cause);
    const text = message.startsWith("entry ") ? message : `${label}${message}`;
    super(code, text, details, { cause });
    this.entry = entry;
  }
}

/**
 * Checks a batch against the state: all runs entry by entry, then the reply subject, then the values. Changes nothing.
 * @returns what its runs change.
 * @throws the rejection, which names the entry or run at fault: a {@link BatchFault} if an entry is.
 */
export function checkBatch(
  context: RecordContext,
  header: RecordHeader,
  message: Message,
): RunChange[] {
  const batch = parseBatch(message, context.rules.batchEntriesMax);
  const mark = context.blocks.nextMark();
  const checked = batch.runs.map((run) =>
    run.verb === "init" ? checkInits(context, run, mark) : checkUpdates(context, run, mark),
  );
  checkReply(context, header.reply);
  decodedElements.begin();
  return checked.map((run) => checkValues(context, run));
}

/** A run that fits its blocks, before its values are checked. */
type CheckedRun = Omit<RunChange, "run" | "measured" | "clips">;

/** Runs the check of entry after entry of a run; @throws BatchFault naming the entry. */
function eachEntry(
  context: RecordContext,
  run: ReceivedRun,
  check: (place: number, offsets: EntryOffsets) => void,
): void {
  const offsets = firstOffsets();
  let place = 0;
  try {
    for (; place < run.numbers.length; place++) {
      check(place, offsets);
      passEntry(run, place, offsets);
    }
  } catch (cause) {
    throw faultOf(context, run, place, cause);
  }
}

function faultOf(
  { blocks, declarations }: RecordContext,
  run: ReceivedRun,
  place: number,
  cause: unknown,
): PserverError {
  const error = ensureError(cause);
  if (error.code === "INTERNAL") return error;
  const number = run.numbers[place] as number;
  const block = blocks.ofNumber(number);
  const declared = declarations.ofNumber(number);
  const known = declared && blockLabel(declared.declared.name, declared.index);
  const label = block?.label ?? known ?? `number ${number}`;
  const prefix = `${entryLabel(run.first + place)}, `;
  const text = error.message.startsWith(label) ? prefix : `${prefix}${label}: `;
  return new BatchFault(error, text, { run, place });
}

function checkInits(context: RecordContext, run: ReceivedRun, mark: number): CheckedRun {
  const created: NewBlock[] = [];
  const { blocks, declarations, steps, trainer, added } = context;
  const numbers = new Set<number>();
  eachEntry(context, run, (place) => {
    const number = run.numbers[place] as number;
    const block = declarations.ofNumber(number);
    if (block === undefined) throw noNumber("a block that was declared");
    if (numbers.has(number)) throw repeated();
    numbers.add(number);
    const { declared, index } = block;
    if (declared.trainer !== trainer) {
      throw new PserverError(
        "NOT_SELECTED",
        `expected trainer ${quoteName(declared.trainer)}; received ${quoteName(trainer)}`,
      );
    }
    const record = initOf(declared, index);
    checkDtype(record.dtype, run);
    checkCount(record.count, run.counts[place] as number);
    const plan = slotPlan(record, steps.synchronization);
    const existing = blocks.get(declared.name, index);
    if (existing !== undefined) markOnce(existing, mark);
    checkNewBlock(context, { parameter: declared.name, index }, record, plan);
    added.bytes += heldBytes(record, plan) - (existing?.heldBytes ?? 0);
    if (existing === undefined) added.count += 1;
    created.push({ declared, index, plan });
  });
  return { sent: run, blocks: [], created, behind: undefined };
}

function checkUpdates(context: RecordContext, run: ReceivedRun, mark: number): CheckedRun {
  const { numbers, counts, operation, norms, seen, parts } = run;
  const blocks: BlockActor[] = [];
  const gradient = operation?.op === "grad" ? operation : undefined;
  let behind: Float64Array | undefined;
  eachEntry(context, run, (place, offsets) => {
    const block = blockOf(context, numbers[place] as number);
    markOnce(block, mark);
    checkDtype(block.dtype, run);
    if (gradient !== undefined) checkGradientStep(context, block, gradient.step);
    const count = counts[place] as number;
    if (parts === undefined) checkCount(block.count, count);
    else checkPart(block, run, place, offsets);
    checkNotStatic(block);
    if (operation !== undefined) {
      const version = seen?.[place];
      const part = parts && (parts.innerList === undefined ? ROWS : INNER);
      const seenVersion = version === 0 ? undefined : version;
      const named = gradient === undefined ? operation : { ...gradient, seen: seenVersion };
      const divisor = checkOperation(block, part, norms?.[place], named);
      if (divisor !== 1) {
        behind ??= new Float64Array(numbers.length).fill(1);
        behind[place] = divisor;
      }
    }
    blocks.push(block);
  });
  return { sent: run, blocks, created: [], behind };
}

/** Stand for parts in {@link checkOperation}, which looks only whether there are offsets in rows. */
const ROWS = {};
const INNER = { inner: Uint32Array.of(0) };

/** Returns the block of a number. @throws NOT_INITIALIZED if it has no values yet, STALE_EPOCH for any other number. */
function blockOf({ blocks, declarations }: RecordContext, number: number): BlockActor {
  const block = blocks.ofNumber(number);
  if (block !== undefined) return block;
  if (declarations.ofNumber(number) === undefined) throw noNumber("a block of this shard");
  throw new PserverError("NOT_INITIALIZED", "expected an init before; found none");
}

function noNumber(expected: string): PserverError {
  return new PserverError("STALE_EPOCH", `expected the present number of ${expected}`);
}

/** Notes that a batch names a block. @throws BAD_INDEX if it has done so before. */
function markOnce(block: BlockActor, mark: number): void {
  if (block.mark === mark) throw repeated();
  block.mark = mark;
}

function repeated(): PserverError {
  return new PserverError("BAD_INDEX", "expected each block once in a batch; received it again");
}

function checkDtype(expected: string, { dtype }: ReceivedRun): void {
  if (dtype === expected) return;
  throw new PserverError("BAD_DTYPE", `expected ${expected}; received ${dtype}`);
}

function checkCount(expected: number, received: number): void {
  if (received === expected) return;
  throw new PserverError("BAD_LENGTH", `expected ${expected} elements; received ${received}`);
}

/** @throws BAD_INDEX unless the lists of an entry are ascending and within its block, BAD_LENGTH for another count. */
function checkPart(
  { rows }: BlockActor,
  { parts, counts }: ReceivedRun,
  place: number,
  { row, inner }: EntryOffsets,
): void {
  if (parts === undefined) return;
  const rowCount = parts.rows[place] as number;
  checkAscending(parts.rowList, row, row + rowCount, rows.rows, "rows");
  let width = rows.rowElements;
  if (parts.inner !== undefined && parts.innerList !== undefined) {
    width = parts.inner[place] as number;
    const what = "offsets in a row";
    checkAscending(parts.innerList, inner, inner + width, rows.rowElements, what);
  }
  checkCount(rowCount * width, counts[place] as number);
}

function checkAscending(
  list: Uint32Array,
  start: number,
  end: number,
  below: number,
  what: string,
): void {
  let least = 0;
  for (let i = start; i < end; i++) {
    const number = list[i] as number;
    if (number < least || number >= below) {
      const after = number >= below ? "" : ` after ${least - 1}`;
      throw new PserverError(
        "BAD_INDEX",
        `part: expected ${what} from 0 to ${below - 1} in ascending order; received ${number}${after}`,
      );
    }
    least = number + 1;
  }
}

/**
 * Decodes the values of a run, and passes if bools are 0 and 1, and if the values, and the norms of their gradients, are
 * finite where their parameters do not allow others. Measures them, if the context asks for that, in the same pass.
 * @throws BAD_VALUE, also for groups that no client writes, NON_FINITE
 */
function checkValues(context: RecordContext, checked: CheckedRun): RunChange {
  const { memory } = context;
  const { sent, blocks, created, behind } = checked;
  const run = decoded(context, sent);
  // The norms of contributions are those of whole tensors, which may have come in several records.
  const isGuarded =
    sent.operation?.op === "grad" &&
    context.fragment === undefined &&
    blocks.some((block) => context.guards.of(block) !== undefined);
  const measured = context.measures || isGuarded ? measureRun(memory, run) : undefined;
  if (isGuarded && measured === undefined) {
    throw new PserverError("INTERNAL", "the elements of a gradient cannot be measured");
  }
  const change = { sent, run, blocks, created, behind, clips: undefined, measured };
  const { dtype, encoding, values: bytes, norms } = run;
  if (dtype === "bool" && !areBools(memory, { dtype, bytes })) {
    eachEntry(context, sent, (place, offsets) => {
      const values = { dtype, bytes: entryBytes(run, place, offsets) };
      if (!areBools(memory, values)) throw noBools("values", values);
    });
  }
  const areFinite =
    norms === undefined &&
    (measured === undefined
      ? allFinite(memory, { dtype, encoding, bytes })
      : isAllFinite(measured));
  if (!areFinite) checkEntriesFinite(context, change);
  if (!isGuarded || measured === undefined) return change;
  return { ...change, clips: judgeEntries(context, change, measured) };
}

/** @throws BatchFault naming the entry with a NaN or an infinity, if its parameter does not allow such. */
function checkEntriesFinite(
  context: RecordContext,
  { sent, run, blocks, created, measured }: RunChange,
): void {
  const { dtype, encoding, norms } = run;
  eachEntry(context, sent, (place, offsets) => {
    const { config } = blocks[place] ?? (created[place] as NewBlock).declared;
    if (config.allowNonFinite) return;
    checkFiniteNorm("gradient", norms?.[place]);
    const values = entryBytes(run, place, offsets);
    const passes =
      measured === undefined
        ? allFinite(context.memory, { dtype, encoding, bytes: values })
        : measured[place * MEASURED + NON_FINITE] === 0;
    if (!passes) throw nonFinite("values", values.length);
  });
}

/** Judges the norms of the entries; returns by what each is multiplied, undefined if it is 1 for all. */
function judgeEntries(
  context: RecordContext,
  { sent, blocks }: RunChange,
  measured: Float64Array,
): Float64Array | undefined {
  let clips: Float64Array | undefined;
  eachEntry(context, sent, (place) => {
    const block = blocks[place] as BlockActor;
    const norm = Math.sqrt(measured[place * MEASURED] as number);
    const clip = judgeNorm(context, block, norm, { run: sent, place });
    if (clip === 1) return;
    clips ??= new Float64Array(blocks.length).fill(1);
    clips[place] = clip;
  });
  return clips;
}

/** Returns a run with decoded values. @throws BatchFault naming the entry whose groups no client writes. */
function decoded(context: RecordContext, run: ReceivedRun): FoldedRun {
  try {
    return foldedRun(run, decodedElements);
  } catch (error) {
    eachEntry(context, run, (place, offsets) => entryPayload(run, place, offsets));
    throw error;
  }
}

/** Where the number of elements that are not finite is among the results of a measurement. */
const NON_FINITE = 5;

function isAllFinite(measured: Float64Array | undefined): boolean {
  if (measured === undefined) return false;
  for (let at = NON_FINITE; at < measured.length; at += MEASURED) {
    if (measured[at] !== 0) return false;
  }
  return true;
}
