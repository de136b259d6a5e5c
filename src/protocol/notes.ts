import { encodeMessage, type Fields } from "./codec.ts";
import { PserverError } from "./errors.ts";
import { mapField } from "./fields.ts";
import { checkWritable, writeMsgpack } from "./msgpack-writer.ts";
import { parseHead, type RecordHead } from "./records.ts";

/** Bytes of the entries of a note as msgpack. */
export const NOTE_BYTES_MAX = 4096;

/** Entries of one note. */
export const NOTE_ENTRIES_MAX = 64;

/** Bytes of the name of an entry, in UTF-8. */
export const NOTE_NAME_BYTES_MAX = 128;

/** Bytes of a note record: its entries and what every record of a trainer begins with. */
export const NOTE_RECORD_BYTES_MAX = NOTE_BYTES_MAX + 1536;

/** The shard whose journal takes a job's notes. */
export const NOTE_SHARD = 0;

/** What an entry of a note may be: a finite number, a text or a boolean. */
export type NoteValue = number | string | boolean;

/** What a trainer remarks: values by name. */
export type NoteEntries = Readonly<Record<string, NoteValue>>;

/** A remark of a trainer: it has its place in the journal and changes no block. */
export interface NoteRecord extends RecordHead {
  readonly verb: "note";
  readonly note: NoteEntries;
}

/** A trainer's note as a message. */
export function encodeNote({ verb: _verb, ...fields }: NoteRecord): Uint8Array {
  return encodeMessage({ ...fields });
}

/**
 * The note in a record's fields. Part of the fold: what it checks, and how, belongs to a version of the
 * rules. The bytes of all entries are bounded by those of the record.
 * @throws BAD_MESSAGE if they are not those of a note, BAD_VALUE or TOO_LARGE as {@link checkNote} does.
 */
export function parseNote(fields: Fields): NoteRecord {
  return { verb: "note", ...parseHead(fields), note: checkEntries(mapField(fields, "note")) };
}

/**
 * Passes entries that a note can carry.
 * @throws BAD_VALUE for none, for a name that is empty or too long, and for a value that is neither a
 * finite number nor a text nor a boolean; TOO_LARGE for too many entries or bytes.
 */
export function checkNote(entries: Readonly<Record<string, unknown>>): NoteEntries {
  const note = checkEntries(entries);
  checkWritable(note, "note", 1);
  const bytes = writeMsgpack(note).length;
  if (bytes <= NOTE_BYTES_MAX) return note;
  throw tooLarge(`expected at most ${NOTE_BYTES_MAX} bytes as msgpack; received ${bytes}`);
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
