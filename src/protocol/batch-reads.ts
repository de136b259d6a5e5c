import { decodeMessage, draftMessage, type Fields, sealMessage } from "./codec.ts";
import { ensureError, PserverError } from "./errors.ts";
import { asMap, integerField, listField, textField } from "./fields.ts";
import { BATCH_ENTRIES_MAX, BATCH_HEAD_BYTES_MAX } from "./limits.ts";
import {
  type BlockRows,
  type PartCounts,
  type PartIndex,
  packedIndexBytes,
  partCounts,
  writePackedIndex,
} from "./parts.ts";
import { parseReadTerms, type ReadTerms } from "./pulls.ts";

// A batched read asks the owner of a shard for many of its blocks, or parts of them, at once. Each block
// asked for is an *entry*; entries of one parameter stand together in a group. `read-pieces.ts` has the reply.

/** Bytes of values that a batched read of several entries may ask for: what a client has on its way. */
export const READ_BYTES_MAX = 16 * 1024 * 1024;

/** Everything of a batched read but its entries. */
export interface BatchReadHead extends ReadTerms {
  /** The first entry wanted: those before it have come already. Absent for 0. */
  readonly from?: number;
}

/** An entry as its sender knows it. */
export interface WantedEntry {
  readonly parameter: string;
  readonly epoch: number;
  /** Number of the block. */
  readonly block: number;
  /** The elements wanted; undefined for all. */
  readonly index: PartIndex | undefined;
  /** The rows of the block, which decide how the index is packed. */
  readonly rows: BlockRows;
  /** Version of the block that the sender has; 0 for none. */
  readonly have: number;
}

/** An entry as its receiver knows it. */
export interface ReadEntry {
  readonly parameter: string;
  readonly epoch: number;
  readonly block: number;
  readonly part: PartCounts | undefined;
  /** Version of the block that the reader has; 0 for none. */
  readonly have: number;
  /** Number of its group in the request. */
  readonly group: number;
  /** Its number within the group. */
  readonly place: number;
}

/** A batched read as its receiver knows it. */
export interface BatchRead extends BatchReadHead {
  readonly from: number;
  readonly entries: readonly ReadEntry[];
  /** The packed indices of the entries that are parts, in their order: a view of the message. */
  readonly data: Uint8Array;
}

/** A batched read as a message. Entries of one parameter should follow each other. */
export function encodeBatchRead(head: BatchReadHead, entries: readonly WantedEntry[]): Uint8Array {
  const dataBytes = entries.reduce((sum, { index, rows }) => sum + indexBytes(index, rows), 0);
  const { generation, seq, waitMs, step, encoding, from = 0 } = head;
  const fields = {
    ...{ generation, seq, waitMs, step, encoding },
    from: from === 0 ? undefined : from,
    groups: groupsOf(entries),
  };
  const draft = draftMessage(fields, dataBytes === 0 ? undefined : dataBytes);
  let at = 0;
  for (const { index, rows } of entries) {
    if (index !== undefined) at += writePackedIndex(draft.data.subarray(at), index, rows);
  }
  return sealMessage(draft);
}

/**
 * Reads a batched read; its `data` stays to be read with the rows of the blocks at hand.
 * @throws BAD_MESSAGE, naming the entry that is malformed; EMPTY if it has none; TOO_LARGE if it has more
 * entries or bytes before `data` than a limit allows; as {@link decodeMessage} does.
 */
export function decodeBatchRead(bytes: Uint8Array): BatchRead {
  const { fields, data } = decodeMessage(bytes, BATCH_HEAD_BYTES_MAX);
  const headBytes = bytes.length - data.length;
  if (headBytes > BATCH_HEAD_BYTES_MAX) {
    const text = `a batched read: expected at most ${BATCH_HEAD_BYTES_MAX} bytes before its data; received ${headBytes}`;
    const details = { expected: BATCH_HEAD_BYTES_MAX, received: headBytes };
    throw new PserverError("TOO_LARGE", text, details);
  }
  const terms = parseReadTerms(fields);
  const entries = parseGroups(fields);
  return {
    ...terms,
    from: fields["from"] === undefined ? 0 : integerField(fields, "from", 0, entries.length - 1),
    entries,
    data,
  };
}

/** The place of an entry in its request, for messages. */
export function entryLabel({ group, place }: Pick<ReadEntry, "group" | "place">): string {
  return `groups[${group}].blocks[${place}]`;
}

function indexBytes(index: PartIndex | undefined, rows: BlockRows): number {
  return index === undefined ? 0 : packedIndexBytes(partCounts(index), rows);
}

/** The entries as a message carries them. */
function groupsOf(entries: readonly WantedEntry[]): Fields[] {
  const groups: Fields[] = [];
  for (let first = 0; first < entries.length; ) {
    const { parameter, epoch } = entries[first] as WantedEntry;
    let next = first + 1;
    for (; next < entries.length; next++) {
      const entry = entries[next] as WantedEntry;
      if (entry.parameter !== parameter || entry.epoch !== epoch) break;
    }
    const members = entries.slice(first, next);
    const blocks = members.map(blockRow);
    const have = members.map((entry) => entry.have);
    const group = { parameter, epoch, blocks };
    groups.push(have.some((version) => version > 0) ? { ...group, have } : group);
    first = next;
  }
  return groups;
}

function blockRow({ block, index }: WantedEntry): number[] {
  if (index === undefined) return [block];
  const { rows, inner } = index;
  return inner === undefined ? [block, rows.length] : [block, rows.length, inner.length];
}

function parseGroups(fields: Fields): ReadEntry[] {
  const entries: ReadEntry[] = [];
  const groups = fields["groups"];
  // Each group has an entry, or is refused.
  if (Array.isArray(groups) && groups.length > BATCH_ENTRIES_MAX) throw tooMany(groups.length);
  listField(fields, "groups", BATCH_ENTRIES_MAX).forEach((value, group) => {
    try {
      parseGroup(asMap(value, "group"), group, entries);
    } catch (error) {
      const { code, message, details } = ensureError(error);
      const text = message.startsWith("groups[") ? message : `groups[${group}]: ${message}`;
      throw new PserverError(code, text, { ...details, group });
    }
  });
  if (entries.length > 0) return entries;
  throw new PserverError("EMPTY", "a batched read: expected at least one block; received none");
}

/** Appends the entries of a group. */
function parseGroup(fields: Fields, group: number, entries: ReadEntry[]): void {
  const parameter = textField(fields, "parameter");
  const epoch = integerField(fields, "epoch", 1);
  const blocks = listField(fields, "blocks", Number.POSITIVE_INFINITY);
  if (blocks.length === 0) {
    throw new PserverError("EMPTY", "blocks: expected at least one; received none");
  }
  const count = entries.length + blocks.length;
  if (count > BATCH_ENTRIES_MAX) throw tooMany(count);
  const have = parseHave(fields, blocks.length);
  for (let place = 0; place < blocks.length; place++) {
    const row: unknown = blocks[place];
    if (!isBlockRow(row)) throw badBlock(group, place);
    const [block, rows, inner] = row;
    const part = rows === undefined ? undefined : toCounts(rows, inner);
    const version = have?.[place] ?? 0;
    entries.push({ parameter, epoch, block, part, have: version, group, place });
  }
}

function parseHave(fields: Fields, count: number): readonly number[] | undefined {
  if (fields["have"] === undefined) return undefined;
  const have = listField(fields, "have", count);
  if (have.length === count && have.every(isCount)) return have as readonly number[];
  throw new PserverError(
    "BAD_MESSAGE",
    `have: expected ${count} versions, one for each block, 0 for none; received ${have.length} values`,
    { expected: count, received: have.length },
  );
}

/** Whether a value is `[block]`, `[block, rows]` or `[block, rows, inner]`; rows and inner are not 0. */
function isBlockRow(row: unknown): row is [number, number?, number?] {
  if (!Array.isArray(row) || row.length < 1 || row.length > 3) return false;
  return row.every((value: unknown, i) => isCount(value) && (i === 0 || value > 0));
}

function toCounts(rows: number, inner: number | undefined): PartCounts {
  return inner === undefined ? { rows } : { rows, inner };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function badBlock(group: number, place: number): PserverError {
  return new PserverError(
    "BAD_MESSAGE",
    `${entryLabel({ group, place })}: expected [index], [index, rows] or [index, rows, inner]; received other values`,
    { group, place },
  );
}

function tooMany(received: number): PserverError {
  const expected = BATCH_ENTRIES_MAX;
  return new PserverError(
    "TOO_LARGE",
    `a batched read: expected at most ${expected} blocks; received ${received}`,
    { expected, received },
  );
}
