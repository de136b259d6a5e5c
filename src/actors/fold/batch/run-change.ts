import {
  bytesOf,
  codeBytes,
  encodedBytes,
  type GroupedEncoding,
  groupCount,
  type HalfEncoding,
  isGrouped,
  SCALE_BYTES,
} from "../../../protocol/dtypes.ts";
import { decodeGroups, type GroupedBytes } from "../../../protocol/encoding/grouped.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { blockPlace } from "../../../protocol/layout.ts";
import type { ReceivedRun } from "../../../protocol/messages/batch-records.ts";
import type { PartIndex } from "../../../protocol/messages/parts.ts";
import type { DeclaredParameter } from "../../../protocol/messages/shard-knowledge.ts";
import type { Change, NewBlockRecord } from "../apply-update.ts";
import type { BlockActor, SlotPlan } from "../block-actor.ts";
import type { DeclaredBlock } from "../declaration-table.ts";
import type { DecodedElements, Payload } from "../elements.ts";
import { MEASURED, type Statistics, statisticsAt } from "../statistics.ts";

/** A block that an `init` of a batch will create. */
export interface NewBlock extends DeclaredBlock {
  readonly plan: SlotPlan;
}

/** A run as it is folded: its values are decoded if their encoding is grouped. */
export interface FoldedRun extends Omit<ReceivedRun, "scales"> {
  readonly encoding: HalfEncoding | undefined;
}

/** What a run of a batch changes; all of it has passed every check. */
export interface RunChange {
  /** The run as its record has it. */
  readonly sent: ReceivedRun;
  readonly run: FoldedRun;
  /** The entries' blocks; of an `init`, once it is applied. */
  readonly blocks: BlockActor[];
  /** Of an `init`, the blocks that it creates. */
  readonly created: readonly NewBlock[];
  /** For each entry the divisor of the learning rate because of staleness; undefined if it is 1 for all. */
  readonly behind: Float64Array | undefined;
  /** For each entry by what its guard has it multiplied; undefined if it is 1 for all. */
  readonly clips: Float64Array | undefined;
  /** Results of measuring each entry, {@link MEASURED} numbers one after the other; absent unless somebody observes or
   * a guard asks for the norms. */
  readonly measured: Float64Array | undefined;
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
export function offsetsOf(run: Pick<ReceivedRun, "counts" | "parts">, place: number): EntryOffsets {
  const offsets = firstOffsets();
  for (let i = 0; i < place; i++) passEntry(run, i, offsets);
  return offsets;
}

/** Returns the bytes of an entry's values: a view. */
export function entryBytes(run: FoldedRun, place: number, { element }: EntryOffsets): Uint8Array {
  const bytes = encodedBytes(run.dtype, run.encoding, 1);
  const start = element * bytes;
  return run.values.subarray(start, start + (run.counts[place] as number) * bytes);
}

/** Returns scales and codes of an entry in a grouped encoding: views. */
export function entryGroups(
  { counts, scales, values }: Pick<ReceivedRun, "counts" | "scales" | "values">,
  encoding: GroupedEncoding,
  place: number,
): GroupedBytes {
  let [scale, code] = [0, 0];
  for (let i = 0; i < place; i++) {
    scale += groupCount(counts[i] as number) * SCALE_BYTES;
    code += codeBytes(encoding, counts[i] as number);
  }
  const count = counts[place] as number;
  return {
    scales: scales.subarray(scale, scale + groupCount(count) * SCALE_BYTES),
    codes: values.subarray(code, code + codeBytes(encoding, count)),
  };
}

/**
 * Returns the elements of an entry as they are folded; decoded into new memory if their encoding is grouped.
 * @throws BAD_VALUE for groups that no client writes.
 */
export function entryPayload(run: ReceivedRun, place: number, offsets: EntryOffsets): Payload {
  const { dtype, encoding } = run;
  if (!isGrouped(encoding)) {
    return { dtype, encoding, bytes: entryBytes({ ...run, encoding }, place, offsets) };
  }
  const elements = new Float32Array(run.counts[place] as number);
  decodeGroups(encoding, [elements.length], entryGroups(run, encoding, place), elements);
  const bytes = encodedBytes(dtype, encoding, elements.length);
  return { dtype, bytes: bytesOf(elements), sent: { encoding, bytes } };
}

/**
 * Returns a run as it is folded; its elements are in `memory` if they were decoded.
 * @throws BAD_VALUE for groups that no client writes.
 */
export function foldedRun(run: ReceivedRun, memory: DecodedElements): FoldedRun {
  const { encoding } = run;
  if (!isGrouped(encoding)) return { ...run, encoding };
  const floats = memory.take(run.elements);
  decodeGroups(encoding, run.counts, { scales: run.scales, codes: run.values }, floats);
  return { ...run, encoding: undefined, values: bytesOf(floats) };
}

/** Returns the elements of its block that an entry is of: views; undefined for all. */
export function entryPart(
  { parts }: Pick<ReceivedRun, "parts">,
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
  const { run, sent, blocks } = change;
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
  const payload = { dtype: run.dtype, encoding: run.encoding, bytes, sent: sentAs(sent, place) };
  const part = entryPart(run, place, offsets);
  const pushed = { block, payload, part, norm: run.norms?.[place], statistics };
  if (operation.op === "mix") return { kind: "mix", ...pushed, operation };
  const seen = run.seen?.[place];
  const named = seen === undefined || seen === 0 ? operation : { ...operation, seen };
  const [behind, clip] = [change.behind?.[place] ?? 1, change.clips?.[place] ?? 1];
  return { kind: "gradient", ...pushed, operation: named, behind, clip };
}

/** Returns what an entry is in its record, if it was decoded. */
function sentAs({ dtype, encoding, counts }: ReceivedRun, place: number): Payload["sent"] {
  if (!isGrouped(encoding)) return undefined;
  return { encoding, bytes: encodedBytes(dtype, encoding, counts[place] as number) };
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
