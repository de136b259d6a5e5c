import {
  type Allocate,
  type DraftMessage,
  decodeMessage,
  draftMessage,
  type Message,
  sealMessage,
} from "../codec.ts";
import { PserverError } from "../errors.ts";
import { flagField, integerField } from "../fields.ts";
import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX } from "../limits.ts";
import { checkVersions } from "./batch-records.ts";
import {
  ColumnReader,
  ColumnWriter,
  checkTotal,
  float64ColumnBytes,
  type PartColumns,
  type PartTotals,
  partColumnsBytes,
  partTotals,
  readPartColumns,
  uint32ColumnBytes,
  writePartColumns,
} from "./columns.ts";
import { throwIfError } from "./outcomes.ts";
import { parsePartEntry } from "./parts.ts";
import { type Position, parsePosition } from "./position.ts";
import { parseReadTerms, type ReadTerms } from "./reads.ts";

// A batched read asks the owner of a shard for many of its blocks, or parts of them, at once. Each block asked for is
// an *entry*; what is asked of all entries stands in columns. `ReadChunk` is a message of the reply.

/** Bytes of values that a batched read of several entries may ask for: as many as a client lets be under way. */
export const READ_BYTES_MAX = 16 * 1024 * 1024;

/** The header of a batched read: everything but its entries. */
export interface BatchReadHeader extends ReadTerms {
  /** Number of the first entry wanted: the reader has those before it already. Absent for 0. */
  readonly from?: number;
}

/** What a batched read asks for. */
export interface WantedEntries {
  /** The number of each entry's block. */
  readonly numbers: Uint32Array;
  /**
   * The elements wanted; undefined if all entries are whole blocks. An entry without rows is a whole block, one
   * without offsets is of whole rows.
   */
  readonly parts: PartColumns | undefined;
  /** For each entry the version of its block that the reader has, 0 for none; undefined if it has none of any. */
  readonly have: Float64Array | undefined;
}

/** A batched read as its receiver knows it. The columns may be views of the message. */
export interface BatchRead extends BatchReadHeader, WantedEntries {
  readonly from: number;
}

/** Writes a batched read as a message. */
export function encodeBatchRead(
  header: BatchReadHeader,
  { numbers, parts, have }: WantedEntries,
): Uint8Array {
  const { generation, seq, waitMs, step, encoding, from = 0 } = header;
  const totals = partTotals(parts);
  const part = totals && [totals.rows, ...(totals.inner === undefined ? [] : [totals.inner])];
  const entries = numbers.length;
  const fields = {
    ...{ generation, seq, waitMs, step, encoding },
    from: from === 0 ? undefined : from,
    ...{ entries, part, have: have === undefined ? undefined : true },
  };
  const draft = draftMessage(fields, requestBytes(entries, totals, have !== undefined));
  const writer = new ColumnWriter(draft.data);
  writer.put(numbers);
  writePartColumns(writer, parts);
  writer.put(have);
  return sealMessage(draft);
}

/**
 * Reads a batched read. Whether it fits the blocks is not checked here.
 * @throws BAD_MESSAGE, BAD_LENGTH, or BAD_VALUE, naming the entry that is at fault; EMPTY if it has none; TOO_LARGE if
 * it has more than a limit allows; as `decodeMessage` does.
 */
export function decodeBatchRead(bytes: Uint8Array): BatchRead {
  const { fields, data } = decodeMessage(bytes, BATCH_HEAD_BYTES_MAX);
  const terms = parseReadTerms(fields);
  const entries = integerField(fields, "entries");
  if (entries === 0) {
    throw new PserverError("EMPTY", "a batched read: expected at least one block; received none");
  }
  if (entries > BATCH_ENTRIES_MAX) {
    const details = { expected: BATCH_ENTRIES_MAX, received: entries };
    const text = `a batched read: expected at most ${BATCH_ENTRIES_MAX} blocks; received ${entries}`;
    throw new PserverError("TOO_LARGE", text, details);
  }
  const from = fields["from"] === undefined ? 0 : integerField(fields, "from", 0, entries - 1);
  const part = parsePartEntry(fields);
  const totals = part && { rows: part.rows, inner: part.inner };
  const hasVersions = flagField(fields, "have");
  const expected = requestBytes(entries, totals, hasVersions);
  if (data.length !== expected) {
    const text = `a batched read: expected ${expected} bytes of columns; received ${data.length}`;
    throw new PserverError("BAD_LENGTH", text, { expected, received: data.length });
  }
  const reader = new ColumnReader(data);
  const numbers = reader.uint32(entries);
  const parts = readPartColumns(reader, entries, totals);
  const have = hasVersions ? reader.float64(entries) : undefined;
  if (parts !== undefined && totals !== undefined) {
    checkTotal(parts.rows, totals.rows, "rows", { least: 0 });
    if (parts.inner !== undefined) {
      checkTotal(parts.inner, totals.inner ?? 0, "offsets in a row", { least: 0 });
    }
  }
  if (have !== undefined) checkVersions(have, "have", 0);
  return { ...terms, from, numbers, parts, have };
}

function requestBytes(entries: number, totals: PartTotals | undefined, have: boolean): number {
  const versions = have ? float64ColumnBytes(entries) : 0;
  return uint32ColumnBytes(entries) + partColumnsBytes(entries, totals) + versions;
}

/**
 * A chunk of the reply to a batched read: some consecutive entries, as the fold had them at the chunk's
 * position.
 */
export interface ReadChunkHeader extends Position {
  /** Number of its first entry. */
  readonly from: number;
  /** Whether further chunks follow. */
  readonly more: boolean;
  /** The version of each entry; 0 if the reader has it, and no bytes follow. */
  readonly versions: Float64Array;
}

/** A received chunk. */
export interface ReadChunk extends ReadChunkHeader {
  /** The values of its entries, each with zeros up to a multiple of 8 bytes: a view of the message. */
  readonly values: Uint8Array;
}

/** A chunk that is being written. */
export interface DraftChunk {
  /** The message, to be sealed once the values are there. */
  readonly draft: DraftMessage;
  /** The place of the values, to be written by the caller. */
  readonly values: Uint8Array;
}

/** Begins a chunk with room for the values, a multiple of 8 bytes; the caller writes these and seals the message. */
export function draftReadChunk(
  { from, more, generation, seq, versions }: ReadChunkHeader,
  valueBytes: number,
  allocate?: Allocate,
): DraftChunk {
  const entries = versions.length;
  const bytes = float64ColumnBytes(entries) + valueBytes;
  const draft = draftMessage({ from, more, generation, seq, entries }, bytes, allocate);
  const writer = new ColumnWriter(draft.data);
  writer.put(versions);
  return { draft, values: writer.place(valueBytes) };
}

/** @throws BAD_MESSAGE and the like if the message is not a valid chunk, or the error that the message carries. */
export function parseReadChunk({ fields, data }: Message): ReadChunk {
  throwIfError(fields);
  const entries = integerField(fields, "entries", 1, BATCH_ENTRIES_MAX);
  const from = integerField(fields, "from", 0, BATCH_ENTRIES_MAX - 1);
  const more = flagField(fields, "more");
  const position = parsePosition(fields);
  const valueBytes = data.length - float64ColumnBytes(entries);
  if (valueBytes < 0) {
    const [expected, received] = [float64ColumnBytes(entries), data.length];
    const text = `a chunk: expected at least ${expected} bytes of versions; received ${received}`;
    throw new PserverError("BAD_LENGTH", text, { expected, received });
  }
  const reader = new ColumnReader(data);
  const versions = reader.float64(entries);
  checkVersions(versions, "versions", from);
  return { from, more, ...position, versions, values: data.subarray(data.length - valueBytes) };
}
