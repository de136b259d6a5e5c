import {
  type Allocate,
  type DraftMessage,
  draftMessage,
  type Fields,
  type Message,
} from "../codec.ts";
import { toConfig } from "../config/index.ts";
import { DTYPES, type Dtype, encodedBytes } from "../dtypes.ts";
import { ensureError, PserverError } from "../errors.ts";
import {
  asMap,
  dtypeField,
  encodingField,
  integerField,
  listField,
  mapField,
  numberField,
  textField,
  valuesField,
  wordField,
} from "../fields.ts";
import { NAME_BYTES_MAX } from "../limits.ts";
import { TRAINER_VERBS } from "../subjects.ts";
import { checkShape, elementCount } from "../tensor.ts";
import { PART_NUMBERS_MAX, type PartCounts } from "./parts.ts";
import {
  checkWholeElements,
  type InitRecord,
  type PushOperation,
  type PushRecord,
  parseOperation,
  type RecordHeader,
  type TrainerRecord,
} from "./records.ts";

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

/** Returns the bytes of an entry with its padding. */
export function paddedBytes(bytes: number): number {
  return Math.ceil(bytes / ALIGN_BYTES) * ALIGN_BYTES;
}

/**
 * Begins a batch with room for the tensor bytes of its items: each takes {@link paddedBytes}, in order, and
 * the padding is zeroed. Fill and seal the batch as {@link DraftMessage} says. Consecutive items of one
 * parameter become a group: their records differ in block, part and `seen` only.
 */
export function draftBatch(
  { session, n, done, reply }: RecordHeader,
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

/**
 * Returns the row of an entry: `[index, bytes]`, and behind it the counts of a part or the start of an init.
 */
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
  // Absent fields are left out here: inside a list the encoder would not leave out an undefined one.
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

/** An update of one block in a batch, as if it were a record of its own. */
export interface BatchEntry {
  readonly parameter: string;
  readonly index: number;
  /** Its record, with the header of the batch. Entries of one group may share the object. */
  readonly record: TrainerRecord;
  /** Its tensor bytes without padding: a view. The index of a part is packed. */
  readonly data: Uint8Array;
}

/** Key of the groups of a batch. A reader of records may leave their list unread: see {@link decodeSealed}. */
export const GROUPS_KEY = "groups";

/**
 * Reads the entries of a batch one after the other and checks the values of each; nothing is read of those that
 * nobody asks for. Whether they fit their blocks is checked by the fold.
 * @throws BAD_MESSAGE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH, BAD_VALUE or BAD_CONFIG, naming the group or
 * its block; TOO_LARGE for more than `entriesMax` entries.
 */
export function* readBatch(
  header: RecordHeader,
  { fields, data }: Message,
  entriesMax: number,
): Generator<BatchEntry> {
  const step = fields["step"] === undefined ? undefined : integerField(fields, "step", 1);
  const groups = valuesField(fields, GROUPS_KEY, entriesMax);
  if (groups.length === 0) throw badMessage("groups: expected at least one; received none");
  const reader = new EntryReader(data, entriesMax);
  const parameters = new Set<string>();
  let i = 0;
  for (const value of groups) {
    const group = naming(`groups[${i}]`, () => parseGroup(header, step, value, entriesMax));
    if (parameters.has(group.parameter)) {
      throw badMessage(`groups[${i}]: expected a parameter in one group; received it again`);
    }
    parameters.add(group.parameter);
    let least = 0;
    for (let j = 0; j < group.blocks.length; j++) {
      const entry = readEntry(reader, group, i, j, least);
      least = entry.index + 1;
      yield entry;
    }
    i += 1;
  }
  reader.end();
}

/** Reads all entries of a batch. @throws as {@link readBatch}. */
export function parseBatch(
  header: RecordHeader,
  message: Message,
  entriesMax: number,
): BatchEntry[] {
  return [...readBatch(header, message, entriesMax)];
}

/** What the entries of a group have in common. */
interface Group {
  readonly parameter: string;
  readonly blocks: readonly unknown[];
  readonly seen: readonly unknown[] | undefined;
  readonly record: TrainerRecord;
}

/** Cuts the tensor bytes of a batch into those of its entries. */
class EntryReader {
  readonly #data: Uint8Array;
  readonly #entriesMax: number;
  #at = 0;
  #entries = 0;

  constructor(data: Uint8Array, entriesMax: number) {
    this.#data = data;
    this.#entriesMax = entriesMax;
  }

  /** Returns the next `bytes` bytes, and advances past them and their padding. */
  take(bytes: number): Uint8Array {
    const start = this.#at;
    const end = start + bytes;
    const paddedEnd = start + paddedBytes(bytes);
    if (paddedEnd > this.#data.length) {
      const left = this.#data.length - start;
      throw new PserverError(
        "BAD_LENGTH",
        `expected at most the ${left} tensor bytes that are left, padding included; received ${bytes}`,
      );
    }
    for (let at = end; at < paddedEnd; at++) {
      if (this.#data[at] !== 0) throw badMessage("expected zeros as padding; received others");
    }
    this.#at = paddedEnd;
    return this.#data.subarray(start, end);
  }

  /** Counts an entry. @throws TOO_LARGE if there are too many. */
  count(): void {
    if (this.#entries >= this.#entriesMax) {
      throw new PserverError("TOO_LARGE", `expected at most ${this.#entriesMax} blocks in a batch`);
    }
    this.#entries += 1;
  }

  /** @throws BAD_LENGTH for bytes after the last entry. */
  end(): void {
    if (this.#at === this.#data.length) return;
    throw new PserverError(
      "BAD_LENGTH",
      `tensor bytes: expected ${this.#at}; received ${this.#data.length}`,
    );
  }
}

function parseGroup(
  header: RecordHeader,
  step: number | undefined,
  value: unknown,
  entriesMax: number,
): Group {
  const fields = asMap(value, "group");
  const verb = wordField(fields, "verb", TRAINER_VERBS);
  const parameter = textField(fields, "parameter", NAME_BYTES_MAX);
  const blocks = listField(fields, "blocks", entriesMax);
  if (blocks.length === 0) throw badMessage("blocks: expected at least one; received none");
  const epoch = integerField(fields, "epoch", 1);
  const dtype = dtypeField(fields);
  const { session, n, done, reply } = header;
  const common = { session, n, done, reply, epoch, dtype };
  if (verb === "push") {
    const seen = parseSeen(fields, blocks.length);
    return { parameter, blocks, seen, record: parsePush(common, step, fields) };
  }
  if (verb === "set") return { parameter, blocks, seen: undefined, record: { verb, ...common } };
  const shape = checkShape(listField(fields, "shape", 64));
  const config = toConfig(mapField(fields, "config"));
  const record: InitRecord = { verb, ...common, shape, start: 0, count: 1, config };
  return { parameter, blocks, seen: undefined, record };
}

function parsePush(
  common: RecordHeader & { readonly epoch: number; readonly dtype: Dtype },
  step: number | undefined,
  fields: Fields,
): PushRecord {
  const { session, n, done, reply, epoch, dtype } = common;
  const encoding = encodingField(fields);
  const norm = fields["norm"] === undefined ? undefined : numberField(fields, "norm");
  const operation = parseOperation(fields, step, undefined);
  const part = undefined;
  return { verb: "push", session, n, done, reply, epoch, dtype, encoding, norm, operation, part };
}

/** Reads the versions in a group, one for each block. @throws BAD_MESSAGE */
function parseSeen(fields: Fields, blocks: number): readonly unknown[] | undefined {
  if (fields["seen"] === undefined) return undefined;
  const seen = listField(fields, "seen", blocks);
  if (seen.length === blocks) return seen;
  throw badMessage(`seen: expected one for each of ${blocks} blocks; received ${seen.length}`);
}

/** Reads entry `j` of a group, whose block must have at least the index `least`. */
function readEntry(
  reader: EntryReader,
  group: Group,
  i: number,
  j: number,
  least: number,
): BatchEntry {
  try {
    const { parameter, record } = group;
    const row = group.blocks[j];
    if (!Array.isArray(row)) throw badMessage("expected a list; received none");
    const [first, second, ...rest] = row as unknown[];
    const index = wholeNumber("index", first, 0);
    if (index < least) {
      throw badMessage(`expected blocks in ascending order; received ${index} after ${least - 1}`);
    }
    const data = reader.take(wholeNumber("bytes", second, 1));
    const entry = entryRecord(record, group.seen?.[j], rest, data);
    reader.count();
    return { parameter, index, record: entry, data };
  } catch (cause) {
    throw named(`groups[${i}].blocks[${j}]`, cause);
  }
}

/** Makes the record of an entry: the record of its group, completed from the rest of the row. */
function entryRecord(
  group: TrainerRecord,
  seen: unknown,
  rest: readonly unknown[],
  data: Uint8Array,
): TrainerRecord {
  if (group.verb === "push") return pushEntry(group, seen, rest, data);
  checkWholeElements(data, DTYPES[group.dtype].bytes);
  if (group.verb === "set") {
    if (rest.length === 0) return group;
    throw badMessage(`expected [index, bytes] of a set; received ${rest.length} numbers more`);
  }
  if (rest.length !== 1) {
    throw badMessage(`expected [index, bytes, start] of an init; received ${2 + rest.length}`);
  }
  const elements = elementCount(group.shape);
  const count = data.length / DTYPES[group.dtype].bytes;
  const start = wholeNumber("start", rest[0], 0, elements - 1);
  if (count <= elements - start) return { ...group, start, count };
  throw new PserverError(
    "BAD_LENGTH",
    `expected at most ${elements - start} elements from ${start} on; received ${count}`,
  );
}

function pushEntry(
  group: PushRecord,
  seen: unknown,
  rest: readonly unknown[],
  data: Uint8Array,
): PushRecord {
  const { session, n, done, reply, epoch, dtype, encoding, norm } = group;
  const part = rest.length === 0 ? undefined : partOf(rest);
  if (part === undefined) checkWholeElements(data, encodedBytes(dtype, encoding, 1));
  const version = seen === undefined ? 0 : wholeNumber("seen", seen, 0);
  if (part === undefined && version === 0) return group;
  const operation = version === 0 ? group.operation : withSeen(group.operation, version);
  return { verb: "push", session, n, done, reply, epoch, dtype, encoding, norm, operation, part };
}

function withSeen(operation: PushOperation, seen: number): PushOperation {
  if (operation.op === "mix") return operation;
  const { op, lr, step } = operation;
  return { op, lr, step, seen };
}

/** @throws BAD_MESSAGE unless these are the counts of a part. */
function partOf([rows, inner, ...more]: readonly unknown[]): PartCounts {
  if (more.length > 0) {
    throw badMessage("expected [index, bytes, rows, inner] of a part; received more");
  }
  const counts = { rows: wholeNumber("rows", rows, 1, PART_NUMBERS_MAX) };
  if (inner === undefined) return counts;
  return { ...counts, inner: wholeNumber("inner", inner, 1, PART_NUMBERS_MAX) };
}

function wholeNumber(
  what: string,
  value: unknown,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) {
    return value;
  }
  return integerField({ [what]: value }, what, min, max);
}

/** Runs a check and puts the place of the value before the text of its error. */
function naming<Value>(place: string, check: () => Value): Value {
  try {
    return check();
  } catch (cause) {
    throw named(place, cause);
  }
}

function named(place: string, cause: unknown): PserverError {
  const { code, message, details } = ensureError(cause);
  return new PserverError(code, `${place}: ${message}`, details, { cause });
}

function badMessage(message: string): PserverError {
  return new PserverError("BAD_MESSAGE", message);
}
