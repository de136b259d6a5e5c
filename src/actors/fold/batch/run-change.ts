import { PserverError } from "../../../protocol/errors.ts";
import { blockPlace } from "../../../protocol/layout.ts";
import { elementBytesOf, type ReceivedRun } from "../../../protocol/messages/batch-records.ts";
import type { PartIndex } from "../../../protocol/messages/parts.ts";
import type { DeclaredParameter } from "../../../protocol/messages/shard-knowledge.ts";
import type { Change, NewBlockRecord } from "../apply-update.ts";
import type { BlockActor, SlotPlan } from "../block-actor.ts";
import type { DeclaredBlock } from "../declaration-table.ts";
import { MEASURED, type Statistics, statisticsAt } from "../statistics.ts";

/** A block that an `init` of a batch will create. */
export interface NewBlock extends DeclaredBlock {
  readonly plan: SlotPlan;
}

/** What a run of a batch changes; all of it has passed every check. */
export interface RunChange {
  readonly run: ReceivedRun;
  /** The entries' blocks; of an `init`, once it is applied. */
  readonly blocks: BlockActor[];
  /** Of an `init`, the blocks that it creates. */
  readonly created: readonly NewBlock[];
  /** For each entry the divisor of the learning rate because of staleness; undefined if it is 1 for all. */
  readonly behind: Float64Array | undefined;
  /** Results of measuring each entry, {@link MEASURED} numbers one after the other; absent unless somebody observes. */
  measured: Float64Array | undefined;
}

/** The entry for which a batch was rejected. */
export interface FaultyEntry {
  readonly run: ReceivedRun;
  /** Its place in the run. */
  readonly place: number;
}

/** Where an entry's elements and lists begin in the columns of its run. */
export interface EntryOffsets {
  element: number;
  row: number;
  inner: number;
}

/** Returns the offsets of the first entry of a run. */
export function firstOffsets(): EntryOffsets {
  return { element: 0, row: 0, inner: 0 };
}

/** Moves offsets from one entry to the next. */
export function passEntry(
  { counts, parts }: Pick<ReceivedRun, "counts" | "parts">,
  place: number,
  offsets: EntryOffsets,
): void {
  offsets.element += counts[place] as number;
  if (parts === undefined) return;
  offsets.row += parts.rows[place] as number;
  if (parts.inner !== undefined) offsets.inner += parts.inner[place] as number;
}

/** Returns the offsets of an entry. */
export function offsetsOf(run: ReceivedRun, place: number): EntryOffsets {
  const offsets = firstOffsets();
  for (let i = 0; i < place; i++) passEntry(run, i, offsets);
  return offsets;
}

/** Returns the bytes of an entry's values: a view. */
export function entryBytes(run: ReceivedRun, place: number, { element }: EntryOffsets): Uint8Array {
  const bytes = elementBytesOf(run);
  const start = element * bytes;
  return run.values.subarray(start, start + (run.counts[place] as number) * bytes);
}

/** Returns the elements of its block that an entry is of: views; undefined for all. */
export function entryPart(
  { parts }: ReceivedRun,
  place: number,
  { row, inner }: EntryOffsets,
): PartIndex | undefined {
  if (parts === undefined) return undefined;
  const rows = parts.rowList.subarray(row, row + (parts.rows[place] as number));
  if (parts.inner === undefined || parts.innerList === undefined) return { rows };
  return { rows, inner: parts.innerList.subarray(inner, inner + (parts.inner[place] as number)) };
}

/** Returns what an entry changes, as if it had been a record of its own. */
export function entryChange(change: RunChange, place: number, offsets: EntryOffsets): Change {
  const { run, blocks } = change;
  const bytes = entryBytes(run, place, offsets);
  const statistics = entryStatistics(change, place);
  const { operation } = run;
  if (run.verb === "init") {
    const { declared, index, plan } = change.created[place] as NewBlock;
    const number = run.numbers[place] as number;
    const name = { parameter: declared.name, index };
    return {
      kind: "init",
      name,
      number,
      record: initOf(declared, index),
      plan,
      data: bytes,
      statistics,
    };
  }
  const block = blocks[place] as BlockActor;
  if (run.verb === "set") return { kind: "set", block, data: bytes, statistics };
  if (operation === undefined) throw new PserverError("INTERNAL", "a push has no operation");
  const payload = { dtype: run.dtype, encoding: run.encoding, bytes };
  const part = entryPart(run, place, offsets);
  const pushed = { block, payload, part, norm: run.norms?.[place], statistics };
  if (operation.op === "mix") return { kind: "mix", ...pushed, operation };
  const seen = run.seen?.[place];
  const named = seen === undefined || seen === 0 ? operation : { ...operation, seen };
  return { kind: "gradient", ...pushed, operation: named, behind: change.behind?.[place] ?? 1 };
}

/** Returns the statistics of an entry, if the run was measured. */
function entryStatistics({ run, measured }: RunChange, place: number): Statistics | undefined {
  return measured && statisticsAt(measured, place * MEASURED, run.counts[place] as number);
}

/** What an `init` of a declared block creates. */
export function initOf(
  { epoch, dtype, shape, config, layout }: DeclaredParameter,
  index: number,
): NewBlockRecord {
  const { start, count } = blockPlace(layout, index);
  return { epoch, dtype, shape, start, count, config };
}
