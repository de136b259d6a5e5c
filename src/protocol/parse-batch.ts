import { paddedBytes } from "./batch-records.ts";
import type { Fields, Message } from "./codec.ts";
import { toConfig } from "./config/index.ts";
import { DTYPES, type Dtype } from "./dtypes.ts";
import { encodedBytes } from "./encoding/encodings.ts";
import { ensureError, PserverError } from "./errors.ts";
import {
  asMap,
  dtypeField,
  encodingField,
  integerField,
  listField,
  mapField,
  numberField,
  textField,
  wordField,
} from "./fields.ts";
import { NAME_BYTES_MAX } from "./limits.ts";
import { PART_NUMBERS_MAX, type PartCounts } from "./parts.ts";
import {
  checkWholeElements,
  type InitRecord,
  type PushOperation,
  type PushRecord,
  parseOperation,
  type RecordHead,
  type TrainerRecord,
} from "./records.ts";
import { checkShape, elementCount } from "./tensor.ts";
import { TRAINER_VERBS } from "./verbs.ts";

/** An update of one block in a batch, as if it were a record of its own. */
export interface BatchEntry {
  readonly parameter: string;
  readonly index: number;
  /** With the head of the batch. Entries of one group may share it. */
  readonly record: TrainerRecord;
  /** Its tensor bytes without padding: a view. The index of a part is packed. */
  readonly data: Uint8Array;
}

/**
 * The entries of a batch, each with its own values checked; the fold checks whether they fit their blocks.
 * @throws BAD_MESSAGE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH, BAD_VALUE or BAD_CONFIG, naming the group or
 * its block; TOO_LARGE for more than `entriesMax` entries.
 */
export function parseBatch(
  head: RecordHead,
  { fields, data }: Message,
  entriesMax: number,
): BatchEntry[] {
  const step = fields["step"] === undefined ? undefined : integerField(fields, "step", 1);
  const groups = listField(fields, "groups", entriesMax);
  if (groups.length === 0) throw badMessage("groups: expected at least one; received none");
  const reader = new EntryReader(data, entriesMax);
  const parameters = new Set<string>();
  groups.forEach((value, i) => {
    const group = naming(`groups[${i}]`, () => parseGroup(head, step, value, entriesMax));
    if (parameters.has(group.parameter)) {
      throw badMessage(`groups[${i}]: expected a parameter in one group; received it again`);
    }
    parameters.add(group.parameter);
    let least = 0;
    for (let j = 0; j < group.blocks.length; j++) {
      least = readEntry(reader, group, i, j, least);
    }
  });
  reader.end();
  return reader.entries;
}

/** What the entries of a group have in common. */
interface Group {
  readonly parameter: string;
  readonly blocks: readonly unknown[];
  readonly seen: readonly unknown[] | undefined;
  readonly record: TrainerRecord;
}

/** Cuts the tensor bytes into those of entries. */
class EntryReader {
  readonly entries: BatchEntry[] = [];
  readonly #data: Uint8Array;
  readonly #entriesMax: number;
  #at = 0;

  constructor(data: Uint8Array, entriesMax: number) {
    this.#data = data;
    this.#entriesMax = entriesMax;
  }

  /** The next so many bytes, without their padding. */
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

  add(parameter: string, index: number, record: TrainerRecord, data: Uint8Array): void {
    if (this.entries.length >= this.#entriesMax) {
      throw new PserverError("TOO_LARGE", `expected at most ${this.#entriesMax} blocks in a batch`);
    }
    this.entries.push({ parameter, index, record, data });
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
  head: RecordHead,
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
  const { session, n, done, reply } = head;
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
  common: RecordHead & { readonly epoch: number; readonly dtype: Dtype },
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

/** The versions in a group, one for each block. @throws BAD_MESSAGE */
function parseSeen(fields: Fields, blocks: number): readonly unknown[] | undefined {
  if (fields["seen"] === undefined) return undefined;
  const seen = listField(fields, "seen", blocks);
  if (seen.length === blocks) return seen;
  throw badMessage(`seen: expected one for each of ${blocks} blocks; received ${seen.length}`);
}

/** Reads entry `j` of a group; returns the least number that the next block may have. */
function readEntry(reader: EntryReader, group: Group, i: number, j: number, least: number): number {
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
    reader.add(parameter, index, entryRecord(record, group.seen?.[j], rest, data), data);
    return index + 1;
  } catch (cause) {
    throw named(`groups[${i}].blocks[${j}]`, cause);
  }
}

/** The record of an entry: that of its group with what the rest of its row says. */
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
