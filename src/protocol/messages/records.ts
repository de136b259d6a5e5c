import {
  type Allocate,
  type DraftMessage,
  draftMessage,
  encodeMessage,
  type Fields,
  type Message,
} from "../codec.ts";
import { type ParameterConfig, toConfig } from "../config/index.ts";
import {
  DTYPES,
  type Dtype,
  type Encoding,
  elementsIn,
  encodedBytes,
  isGrouped,
} from "../dtypes.ts";
import { PserverError } from "../errors.ts";
import {
  dtypeField,
  encodingField,
  integerField,
  listField,
  mapField,
  numberField,
  textField,
  wordField,
} from "../fields.ts";
import { checkWritable, writeMsgpack } from "../msgpack.ts";
import type { TrainerVerb } from "../subjects.ts";
import { checkShape, elementCount } from "../tensor.ts";
import { type PartCounts, parsePartEntry, partEntry } from "./parts.ts";

/**
 * The header of every record of a trainer. `n` counts 1, 2, 3, … per session and shard; `done` promises that
 * no number up to it will be sent again; `reply` is where the outcome goes, or "".
 */
export interface RecordHeader {
  readonly session: number;
  readonly n: number;
  readonly done: number;
  readonly reply: string;
}

/**
 * Creates a block, or replaces it under a higher epoch. Later records of the block do not repeat shape and
 * configuration.
 */
export interface InitRecord extends RecordHeader {
  readonly verb: "init";
  readonly epoch: number;
  readonly dtype: Dtype;
  /** Shape of the whole parameter. */
  readonly shape: readonly number[];
  /** First element of the block in the parameter, in C order. */
  readonly start: number;
  /** Elements of the block. */
  readonly count: number;
  readonly config: ParameterConfig;
  /**
   * Updates by gradients that the values have gone through elsewhere, from which optimizer and learning rate go on; by
   * default none.
   */
  readonly updates?: number;
}

/** The most updates that an `init` may say: far from where counting becomes inexact. */
export const INIT_UPDATES_MAX: number = 2 ** 48;

/** The most slots beside the values that any block has. */
const SLOTS_MAX = 16;

/** What a push does with its elements. */
export type PushOperation =
  /** value = alpha · value + beta · new. */
  | { readonly op: "mix"; readonly alpha: number; readonly beta: number }
  /**
   * One step of the block's optimizer; `lr` overrides its learning rate. `step` is the trainer's, in
   * a job that is synchronized by steps; `seen` the block's version that the gradient was made from.
   */
  | {
      readonly op: "grad";
      readonly lr?: number | undefined;
      readonly step?: number | undefined;
      readonly seen?: number | undefined;
    };

/** Updates a block, or a part of it. */
export interface PushRecord extends RecordHeader {
  readonly verb: "push";
  readonly epoch: number;
  /** Element type of the block. */
  readonly dtype: Dtype;
  /** How the elements are written, if not as the type says. */
  readonly encoding?: Encoding | undefined;
  /**
   * L2 norm of the trainer's whole tensor as encoded, not of this block. Required for a gradient that
   * is clipped by its norm; otherwise only checked for being finite.
   */
  readonly norm?: number | undefined;
  readonly operation: PushOperation;
  /** Set if the record has only some elements: the tensor bytes then begin with an index. */
  readonly part?: PartCounts | undefined;
}

/** Overwrites a block's values, or a slot of what its optimizer keeps of them. */
export interface SetRecord extends RecordHeader {
  readonly verb: "set";
  readonly epoch: number;
  /** Element type of the block. */
  readonly dtype: Dtype;
  /** The slot, from 1 on; absent for the values. */
  readonly slot?: number;
}

/** Tells a shard that the trainer has sent everything of its steps up to this one. */
export interface ClockRecord extends RecordHeader {
  readonly verb: "clock";
  readonly step: number;
}

/** A trainer's journal record about a block, without its tensor bytes. */
export type TrainerRecord = InitRecord | PushRecord | SetRecord;

/** Begins a record with room for its tensor bytes; fill and seal it as {@link DraftMessage} says. */
export function draftRecord(
  record: TrainerRecord,
  dataBytes: number,
  allocate?: Allocate,
): DraftMessage {
  if (record.verb === "push") return draftMessage(pushFields(record), dataBytes, allocate);
  const { verb: _verb, ...fields } = record;
  return draftMessage(fields, dataBytes, allocate);
}

/**
 * Returns the entries of a push. Written without object spread, which is slow in V8, because it runs for
 * every push.
 */
function pushFields(record: PushRecord): Fields {
  const { session, n, done, reply, epoch, dtype, norm, encoding, operation } = record;
  const part = record.part && partEntry(record.part);
  const { op } = operation;
  if (op === "mix") {
    const { alpha, beta } = operation;
    return { session, n, done, reply, epoch, dtype, encoding, norm, op, alpha, beta, part };
  }
  const { lr, step, seen } = operation;
  return { session, n, done, reply, epoch, dtype, encoding, norm, op, lr, step, seen, part };
}

/** Writes a trainer's clock as a message. */
export function encodeClock(record: ClockRecord): Uint8Array {
  const { verb: _verb, ...entries } = record;
  return encodeMessage(entries);
}

/**
 * Reads the header of a trainer's record. By it the fold decides whether the record counts.
 * @throws BAD_MESSAGE if one is missing or not a number.
 */
export function parseRecordHeader(fields: Fields): RecordHeader {
  const n = integerField(fields, "n", 1);
  return {
    session: integerField(fields, "session", 1),
    n,
    done: integerField(fields, "done", 0, n - 1),
    reply: textField(fields, "reply", 512),
  };
}

/**
 * Reads a trainer's record of a verb and checks its values. Whether it fits its block is checked by the fold.
 * @throws BAD_MESSAGE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH or BAD_CONFIG naming what is wrong.
 */
export function parseTrainerRecord(
  verb: TrainerVerb,
  { session, n, done, reply }: RecordHeader,
  message: Message,
): TrainerRecord {
  const { fields, data } = message;
  const epoch = integerField(fields, "epoch", 1);
  // Every object has the same shape, and none is spread, which is slow in V8: this runs for every record.
  const header = { session, n, done, reply, epoch, dtype: dtypeField(fields) };
  if (verb === "push") return parsePush(header, message);
  if (verb === "set" && fields["slot"] !== undefined) {
    return { verb, ...header, slot: integerField(fields, "slot", 1, SLOTS_MAX) };
  }
  checkWholeElements(data, DTYPES[header.dtype].bytes);
  if (verb === "set") return { verb, ...header };
  const shape = checkShape(listField(fields, "shape", 64));
  const elements = elementCount(shape);
  const start = integerField(fields, "start", 0, elements - 1);
  const count = integerField(fields, "count", 1, elements - start);
  const expected = count * DTYPES[header.dtype].bytes;
  if (data.length !== expected) throw badLength(String(expected), data.length);
  const init = { shape, start, count, config: toConfig(mapField(fields, "config")) };
  if (fields["updates"] === undefined) return { verb, ...header, ...init };
  const updates = integerField(fields, "updates", 0, INIT_UPDATES_MAX);
  return { verb, ...header, ...init, updates };
}

/** Reads a clock; @throws BAD_MESSAGE if the fields are not a valid clock. */
export function parseClock(fields: Fields): ClockRecord {
  return { verb: "clock", ...parseRecordHeader(fields), step: integerField(fields, "step", 1) };
}

function parsePush(
  header: RecordHeader & { readonly epoch: number; readonly dtype: Dtype },
  { fields, data }: Message,
): PushRecord {
  const { session, n, done, reply, epoch, dtype } = header;
  const encoding = encodingField(fields);
  const part = parsePartEntry(fields);
  if (part === undefined) checkWholeEntry(data, dtype, encoding);
  const norm = fields["norm"] === undefined ? undefined : numberField(fields, "norm");
  const operation = parseOperation(fields, fields["step"], fields["seen"]);
  return { verb: "push", session, n, done, reply, epoch, dtype, encoding, norm, operation, part };
}

/**
 * @throws BAD_LENGTH unless the bytes are whole elements, at least one, with all their scales; UNSUPPORTED for an
 * encoding of another type than float32.
 */
function checkWholeEntry(data: Uint8Array, dtype: Dtype, encoding: Encoding | undefined): void {
  if (elementsIn(dtype, encoding, data.length) !== undefined) return;
  const least = encodedBytes(dtype, encoding, 1);
  const expected = isGrouped(encoding)
    ? `scales and codes in ${encoding}, at least ${least}`
    : `a positive multiple of ${least}`;
  throw badLength(expected, data.length);
}

/** @throws BAD_LENGTH unless the bytes are whole elements, at least one. */
export function checkWholeElements(data: Uint8Array, elementBytes: number): void {
  if (data.length === 0 || data.length % elementBytes !== 0) {
    throw badLength(`a positive multiple of ${elementBytes}`, data.length);
  }
}

/**
 * Reads the operation of a push, with a gradient's step and the version that the gradient was made from.
 * @throws BAD_MESSAGE or BAD_VALUE
 */
export function parseOperation(fields: Fields, step: unknown, seen: unknown): PushOperation {
  const op = wordField(fields, "op", ["mix", "grad"]);
  if (op === "mix") {
    return { op, alpha: finiteField(fields, "alpha"), beta: finiteField(fields, "beta") };
  }
  const lr = fields["lr"] === undefined ? undefined : finiteField(fields, "lr");
  return {
    op,
    lr,
    step: step === undefined ? undefined : integerField({ step }, "step", 1),
    seen: seen === undefined ? undefined : integerField({ seen }, "seen", 1),
  };
}

function finiteField(fields: Fields, key: string): number {
  const value = numberField(fields, key);
  if (Number.isFinite(value)) return value;
  throw new PserverError("BAD_VALUE", `${key}: expected a finite number; received ${value}`);
}

function badLength(expected: string, received: number): PserverError {
  return new PserverError(
    "BAD_LENGTH",
    `tensor bytes: expected ${expected}; received ${received}`,
    {
      expected,
      received,
    },
  );
}

/** Bytes of the entries of a note as msgpack. */
export const NOTE_BYTES_MAX = 4096;

/** Entries of one note. */
export const NOTE_ENTRIES_MAX = 64;

/** Bytes of the name of an entry, in UTF-8. */
export const NOTE_NAME_BYTES_MAX = 128;

/** Bytes of a note record: its header and its entries. */
export const NOTE_RECORD_BYTES_MAX = NOTE_BYTES_MAX + 1536;

/** The shard whose journal takes a job's notes. */
export const NOTE_SHARD = 0;

/** What an entry of a note may be: a number, a text or a boolean. One that is not finite is stored as a word. */
export type NoteValue = number | string | boolean;

/** What a trainer remarks: values by name. */
export type NoteEntries = Readonly<Record<string, NoteValue>>;

/** A remark of a trainer: it has its place in the journal and changes no block. */
export interface NoteRecord extends RecordHeader {
  readonly verb: "note";
  readonly note: NoteEntries;
}

/** Writes a trainer's note as a message. */
export function encodeNote({ verb: _verb, ...fields }: NoteRecord): Uint8Array {
  return encodeMessage({ ...fields });
}

/**
 * Reads the note in a record's fields. Part of the fold: what it checks belongs to a version of the rules.
 * The size of the record bounds that of all entries.
 * @throws BAD_MESSAGE if they are not those of a note, BAD_VALUE or TOO_LARGE as {@link checkNote} does.
 */
export function parseNote(fields: Fields): NoteRecord {
  return {
    verb: "note",
    ...parseRecordHeader(fields),
    note: checkEntries(mapField(fields, "note")),
  };
}

/**
 * Returns the entries as a note carries them: a number that is not finite, such as the loss of a training that
 * diverges, as the text NaN, Infinity or -Infinity.
 * @throws BAD_VALUE for none, for a name that is empty or too long, and for a value that is neither a
 * number nor a text nor a boolean; TOO_LARGE for too many entries or bytes.
 */
export function checkNote(entries: Readonly<Record<string, unknown>>): NoteEntries {
  const note = checkEntries(inWords(entries));
  checkWritable(note, "note", 1);
  const bytes = writeMsgpack(note).length;
  if (bytes <= NOTE_BYTES_MAX) return note;
  throw tooLarge(`expected at most ${NOTE_BYTES_MAX} bytes as msgpack; received ${bytes}`);
}

function inWords(entries: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const words = Object.entries(entries).map(([name, value]) => {
    const isWord = typeof value === "number" && !Number.isFinite(value);
    return [name, isWord ? String(value) : value];
  });
  // Made at once, not key by key: a key may be called __proto__.
  return Object.fromEntries(words);
}

function checkEntries(entries: Readonly<Record<string, unknown>>): NoteEntries {
  const names = Object.keys(entries);
  if (names.length === 0) throw badNote("expected at least one entry; received none");
  if (names.length > NOTE_ENTRIES_MAX) {
    throw tooLarge(`expected at most ${NOTE_ENTRIES_MAX} entries; received ${names.length}`);
  }
  for (const name of names) checkEntry(name, entries[name]);
  return entries as NoteEntries;
}

function checkEntry(name: string, value: unknown): void {
  const nameBytes = Buffer.byteLength(name);
  const shown = JSON.stringify(name.slice(0, 60));
  if (nameBytes === 0 || nameBytes > NOTE_NAME_BYTES_MAX || name === "__proto__") {
    throw badNote(`expected names of 1 to ${NOTE_NAME_BYTES_MAX} bytes; received ${shown}`);
  }
  if (typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  const received = typeof value === "number" ? String(value) : kindOf(value);
  throw badNote(`${shown}: expected a finite number, text or boolean; received ${received}`);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (value instanceof Uint8Array) return "bytes";
  return typeof value === "object" ? "a map" : `a ${typeof value}`;
}

function badNote(message: string): PserverError {
  return new PserverError("BAD_VALUE", `note: ${message}`);
}

function tooLarge(message: string): PserverError {
  return new PserverError("TOO_LARGE", `note: ${message}`);
}
