import { type Allocate, type DraftMessage, draftMessage } from "./codec.ts";
import type { RecordHead, TrainerRecord } from "./records.ts";

// A batch is one record with updates of many blocks of a shard. Its header has *groups*, each of one
// parameter, with what its entries have in common and a row for each entry, that is, block. The tensor
// bytes are those of the entries in order, each padded with zeros to a multiple of 8.

/** Alignment of an entry's bytes. */
const ALIGN_BYTES = 8;

/** An entry to be written; its bytes are written later, to the draft. */
export interface BatchItem {
  readonly parameter: string;
  readonly index: number;
  readonly record: TrainerRecord;
  readonly dataBytes: number;
}

/** Bytes of an entry with its padding. */
export function paddedBytes(bytes: number): number {
  return Math.ceil(bytes / ALIGN_BYTES) * ALIGN_BYTES;
}

/**
 * A batch with room for the tensor bytes of its items, each of which begins {@link paddedBytes} of the
 * one before after that; the padding is zeroed. Fill and seal it as {@link DraftMessage} says.
 * Consecutive items of one parameter become a group: their records differ in block, part and `seen` only.
 */
export function draftBatch(
  { session, n, done, reply }: RecordHead,
  items: readonly BatchItem[],
  allocate?: Allocate,
): DraftMessage {
  const groups: Record<string, unknown>[] = [];
  let step: number | undefined;
  let bytes = 0;
  for (let first = 0; first < items.length; ) {
    const { parameter, record } = items[first] as BatchItem;
    let end = first + 1;
    while (end < items.length && items[end]?.parameter === parameter) end += 1;
    const blocks: number[][] = [];
    let seen: number[] | undefined;
    for (let i = first; i < end; i++) {
      const item = items[i] as BatchItem;
      blocks.push(blockRow(item));
      const named = seenOf(item.record);
      if (named !== undefined) seen ??= new Array<number>(end - first).fill(0);
      if (seen !== undefined && named !== undefined) seen[i - first] = named;
      bytes += paddedBytes(item.dataBytes);
    }
    step ??= stepOf(record);
    groups.push(groupFields(parameter, record, blocks, seen));
    first = end;
  }
  const draft = draftMessage({ session, n, done, reply, step, groups }, bytes, allocate);
  zeroPadding(draft.data, items);
  return draft;
}

/** The row of an entry: `[index, bytes]`, and behind it the counts of a part or the start of an init. */
function blockRow({ index, dataBytes, record }: BatchItem): number[] {
  if (record.verb === "init") return [index, dataBytes, record.start];
  if (record.verb === "set" || record.part === undefined) return [index, dataBytes];
  const { rows, inner } = record.part;
  return inner === undefined ? [index, dataBytes, rows] : [index, dataBytes, rows, inner];
}

function groupFields(
  parameter: string,
  record: TrainerRecord,
  blocks: readonly (readonly number[])[],
  seen: readonly number[] | undefined,
): Record<string, unknown> {
  const { epoch, dtype } = record;
  if (record.verb === "set") return { verb: "set", parameter, epoch, dtype, blocks };
  if (record.verb === "init") {
    const { shape, config } = record;
    return { verb: "init", parameter, epoch, dtype, shape, config, blocks };
  }
  // Absent entries are left out one by one: inside a list no entry may be undefined.
  const group: Record<string, unknown> = { verb: "push", parameter, epoch, dtype };
  const { encoding, norm, operation } = record;
  if (encoding !== undefined) group["encoding"] = encoding;
  if (norm !== undefined) group["norm"] = norm;
  group["op"] = operation.op;
  if (operation.op === "mix") {
    group["alpha"] = operation.alpha;
    group["beta"] = operation.beta;
  } else if (operation.lr !== undefined) {
    group["lr"] = operation.lr;
  }
  group["blocks"] = blocks;
  if (seen !== undefined) group["seen"] = seen;
  return group;
}

function seenOf(record: TrainerRecord): number | undefined {
  if (record.verb !== "push" || record.operation.op !== "grad") return undefined;
  return record.operation.seen;
}

function stepOf(record: TrainerRecord): number | undefined {
  if (record.verb !== "push" || record.operation.op !== "grad") return undefined;
  return record.operation.step;
}

function zeroPadding(data: Uint8Array, items: readonly BatchItem[]): void {
  let at = 0;
  for (const { dataBytes } of items) {
    const end = at + paddedBytes(dataBytes);
    data.fill(0, at + dataBytes, end);
    at = end;
  }
}
