import { packValue } from "../../../protocol/codec.ts";
import type { GuardAction } from "../../../protocol/config/index.ts";
import type { Dtype, Encoding } from "../../../protocol/dtypes.ts";
import { PserverError } from "../../../protocol/errors.ts";
import type { Statistics } from "../../fold/statistics.ts";
import type { BlockChange } from "../block-change.ts";
import type { GuardMark, UpdateEvent, UpdateOutcome, UpdateVerb } from "../describe-record.ts";

// The lines of a tape, as docs/reference/hosts.md has them. The places in these lists are part of the format: new
// words go to the end.

/** Version of the lines in a message. */
export const TAPE_FORMAT = 1;

/** Verbs by their number in a line. */
export const TAPE_VERBS: readonly UpdateVerb[] = [
  "unreadable",
  "init",
  "push",
  "set",
  "clock",
  "note",
  "batch",
  "rules",
  "members",
  "declare",
  "drop",
  "floor",
  "sessions",
  "forget",
  "ready",
  "left-out",
  "end",
  "contribute",
  "close",
];

/** Actions of guards by their number. */
export const TAPE_ACTIONS: readonly GuardAction[] = ["reject", "clip", "set-aside"];

/** Bit of a record's second byte, beside its verb: what a guard has decided about it follows the outcome. */
export const GUARDED = 128;

/** Outcomes by their number. What is set aside has that of applied ones, and a guard that has decided so. */
export const TAPE_OUTCOMES = ["applied", "rejected", "repeated", "unreadable"] as const;

/** Operations by their number. */
export const TAPE_OPERATIONS = ["init", "set", "mix", "grad"] as const;

/** Element types by their number. */
export const TAPE_DTYPES: readonly Dtype[] = [
  "int32",
  "uint32",
  "int64",
  "uint64",
  "float32",
  "float64",
  "bool",
  "uint8",
  "int8",
  "float16",
  "bfloat16",
];

/** Encodings by their number; 0 is none. */
export const TAPE_ENCODINGS: readonly (Encoding | undefined)[] = [
  undefined,
  "bfloat16",
  "float16",
  "int8",
  "e3m0",
];

/** Bits of a record's first byte; the lowest two are the outcome. */
export const RECORD = {
  ...{ sender: 4, step: 8, note: 16, bytes: 32, entries: 64 },
  /** The record could not be described; the error follows. */
  undescribed: 128,
} as const;

/** Bits of an entry's first byte. */
export const ENTRY = {
  /** Operation, element type and encoding are the same as in the previous entry of the message. */
  alike: 1,
  part: 2,
  version: 4,
  behind: 8,
  statistics: 16,
  /** The statistics are float64. */
  wide: 32,
  /** Some elements are zero or not finite. */
  counts: 64,
} as const;

/** Writes numbers and bytes one after the other into memory that grows. Numbers are little-endian. */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #length = 0;

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Bytes written. */
  get length(): number {
    return this.#length;
  }

  /** A view of the bytes written, valid until the next call. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Drops everything written after the first `length` bytes; keeps the memory. */
  truncate(length: number): void {
    this.#length = length;
  }

  uint8(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  /**
   * Writes a whole number from 0 to 2^53 − 1, in groups of 7 bits, the lowest first.
   * @throws INTERNAL for anything else.
   */
  varint(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) {
      throw new PserverError("INTERNAL", `tape: expected a whole number; received ${value}`);
    }
    this.#reserve(8);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#length++] = rest;
  }

  float32(value: number): void {
    this.#reserve(4);
    this.#view.setFloat32(this.#length, value, true);
    this.#length += 4;
  }

  float64(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  /** Writes the number of bytes, then the bytes. */
  block(bytes: Uint8Array): void {
    this.varint(bytes.length);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

/** The largest float32; larger values are written as float64. */
const FLOAT32_MAX = 3.4028234663852886e38;

/** The lines of one message, and the fields that are needed to read them. */
export interface TapeLines {
  readonly fields: {
    readonly format: number;
    readonly generation: number;
    /** Sequence of the first record that the message has lines of. */
    readonly from: number;
    /** Up to this record the tape has all lines, with this message and those before it. */
    readonly to: number;
    /** Time of the first record in microseconds since 1970; later lines have differences. */
    readonly timeUs: number;
    /** Texts that lines refer to by their place in this list. */
    readonly names: readonly string[];
  };
  readonly data: Uint8Array;
}

/** Writes updates as lines of a tape message, and returns the whole message. */
export class TapeEncoder {
  readonly #writer: ByteWriter = new ByteWriter(64 * 1024);
  readonly #places: Map<string, number> = new Map();
  readonly #generation: number;
  #nameBytes = 0;
  #records = 0;
  #from = 0;
  #to: number;
  #seq = 0;
  #timeUs = 0;
  #startUs = 0;
  #previous: EntryKind | undefined;

  /** `after` is the last record before the message. */
  constructor(generation: number, after: number) {
    this.#generation = generation;
    this.#to = after;
  }

  /** Estimate of the message's bytes. */
  get bytes(): number {
    return this.#writer.length + this.#nameBytes;
  }

  get isEmpty(): boolean {
    return this.#from === 0;
  }

  /** How many records the message has lines of. */
  get records(): number {
    return this.#records;
  }

  /**
   * Adds updates of one record, from the first one's entry on. `isWhole` says that they include the record's last.
   * @throws INTERNAL if they cannot be written; then nothing is added.
   */
  add(events: readonly UpdateEvent[], isWhole: boolean): void {
    const [first] = events;
    if (first === undefined) return;
    const blocks = events.flatMap(({ block }) => block ?? []);
    const guard = events.find((event) => event.guard !== undefined)?.guard;
    // In a batch, every gradient names the same step, and nothing else names one.
    const step = first.step ?? events.find((event) => event.step !== undefined)?.step;
    let next = 0;
    const lines = { next: () => blocks[next++] as BlockChange };
    this.addEntries({ ...first, step, guard }, lines, blocks.length, isWhole);
  }

  /**
   * Adds the next `count` entries of a record, of which `first` is the first one; 0 for a record about no block. What
   * `lines` returns is used before the next call.
   * @throws INTERNAL if they cannot be written; then nothing is added.
   */
  addEntries(
    first: UpdateEvent,
    lines: { next(): BlockChange },
    count: number,
    isWhole: boolean,
  ): void {
    const undo = this.#place();
    try {
      if (this.#from === 0) this.#begin(first);
      this.#record(first, lines, count);
    } catch (error) {
      undo();
      throw error;
    }
    this.#records += 1;
    if (isWhole) this.#to = first.seq;
  }

  /** Notes a record that has no line: its lines count as complete with this message. */
  pass({ seq, timeMs }: Pick<UpdateEvent, "seq" | "timeMs">): void {
    if (this.#from === 0) this.#begin({ seq, timeMs });
    this.#to = seq;
  }

  /** Notes where the message ends. The function that it returns removes everything added since. */
  #place(): () => void {
    const [bytes, places] = [this.#writer.length, this.#places.size];
    const [from, seq, timeUs, previous] = [this.#from, this.#seq, this.#timeUs, this.#previous];
    const nameBytes = this.#nameBytes;
    return () => {
      this.#writer.truncate(bytes);
      for (const name of [...this.#places.keys()].slice(places)) this.#places.delete(name);
      this.#nameBytes = nameBytes;
      this.#from = from;
      this.#seq = seq;
      this.#timeUs = timeUs;
      this.#previous = previous;
    };
  }

  /** The last record that the message has lines of, or that was passed. */
  get lastSeq(): number {
    return Math.max(this.#seq, this.#to);
  }

  /** Returns the message of everything added. Its bytes are valid until the next {@link clear}. */
  take(): TapeLines {
    const names = [...this.#places.keys()];
    const fields = {
      ...{ format: TAPE_FORMAT, generation: this.#generation, from: this.#from, to: this.#to },
      ...{ timeUs: this.#startUs, names },
    };
    return { fields, data: this.#writer.bytes };
  }

  /** Begins the next message. */
  clear(): void {
    this.#writer.truncate(0);
    this.#places.clear();
    this.#nameBytes = 0;
    this.#records = 0;
    this.#from = 0;
    this.#previous = undefined;
  }

  #begin({ seq, timeMs }: Pick<UpdateEvent, "seq" | "timeMs">): void {
    this.#from = seq;
    this.#seq = seq;
    this.#startUs = wholeMicroseconds(timeMs);
    this.#timeUs = this.#startUs;
  }

  #record(first: UpdateEvent, lines: { next(): BlockChange }, count: number): void {
    const { outcome, trainer, note, bytes, step, undescribed, guard } = first;
    const writer = this.#writer;
    const has =
      (trainer === undefined ? 0 : RECORD.sender) |
      (step === undefined ? 0 : RECORD.step) |
      (note === undefined ? 0 : RECORD.note) |
      (bytes === undefined ? 0 : RECORD.bytes) |
      (count === 0 ? 0 : RECORD.entries) |
      (undescribed === undefined ? 0 : RECORD.undescribed);
    const kind = outcome.kind === "set-aside" ? "applied" : outcome.kind;
    writer.uint8(TAPE_OUTCOMES.indexOf(kind) | has);
    writer.uint8(TAPE_VERBS.indexOf(first.verb) | (guard === undefined ? 0 : GUARDED));
    writer.varint(first.seq - this.#seq);
    this.#seq = first.seq;
    this.#time(first.timeMs);
    this.#outcome(outcome);
    if (guard !== undefined) this.#guard(guard);
    if (trainer !== undefined) this.#sender(trainer, first);
    if (step !== undefined) writer.varint(step);
    if (note !== undefined) writer.block(packValue(note));
    if (bytes !== undefined) writer.varint(bytes);
    if (undescribed !== undefined) this.#name(undescribed);
    if (count === 0) return;
    writer.varint(first.entry);
    writer.varint(first.entries);
    writer.varint(count);
    for (let i = 0; i < count; i++) this.#entry(lines.next());
  }

  /**
   * Writes the difference to the last time. The broker's clock may go back a little, so the lowest bit is the sign.
   */
  #time(timeMs: number): void {
    const timeUs = wholeMicroseconds(timeMs);
    const differenceUs = timeUs - this.#timeUs;
    this.#writer.varint(differenceUs < 0 ? -2 * differenceUs - 1 : 2 * differenceUs);
    this.#timeUs = timeUs;
  }

  #sender(trainer: string, { session, n }: UpdateEvent): void {
    this.#name(trainer);
    this.#writer.varint(session ?? 0);
    this.#writer.varint(n ?? 0);
  }

  #outcome(outcome: UpdateOutcome): void {
    if (outcome.kind === "repeated") this.#writer.varint(outcome.seq);
    if (outcome.kind !== "rejected") return;
    this.#name(outcome.code);
    this.#name(outcome.message);
  }

  #guard({ action, norm, limit, median, norms, others, entry }: GuardMark): void {
    const writer = this.#writer;
    writer.uint8(TAPE_ACTIONS.indexOf(action));
    for (const value of [norm, limit, median]) writer.float64(value);
    for (const count of [norms, others, entry]) writer.varint(count);
  }

  #entry(change: BlockChange): void {
    const { part, version, behind, statistics } = change;
    const writer = this.#writer;
    const isAlike = this.#previous !== undefined && areAlike(this.#previous, change);
    if (!isAlike) {
      const { operation, dtype, encoding } = change;
      this.#previous = { operation, dtype, encoding };
    }
    const isWide = statistics !== undefined && needsFloat64(change, statistics);
    const counts = statistics !== undefined && statistics.zeros + statistics.nonFinite > 0;
    writer.uint8(
      (isAlike ? ENTRY.alike : 0) |
        (part === undefined ? 0 : ENTRY.part) |
        (version === undefined ? 0 : ENTRY.version) |
        (behind === undefined ? 0 : ENTRY.behind) |
        (statistics === undefined ? 0 : ENTRY.statistics) |
        (isWide ? ENTRY.wide : 0) |
        (counts ? ENTRY.counts : 0),
    );
    this.#name(change.parameter);
    writer.varint(change.index);
    if (!isAlike) this.#kind(change);
    writer.varint(change.elements);
    writer.varint(change.bytes);
    if (part !== undefined) {
      writer.varint(part.rows);
      writer.varint(part.inner ?? 0);
    }
    if (version !== undefined) writer.varint(version);
    if (behind !== undefined) writer.varint(behind);
    if (statistics !== undefined) this.#statistics(statistics, isWide, counts);
  }

  #kind({ operation, dtype, encoding }: BlockChange): void {
    const writer = this.#writer;
    writer.uint8(TAPE_OPERATIONS.indexOf(operation.op));
    writer.uint8(TAPE_DTYPES.indexOf(dtype));
    writer.uint8(TAPE_ENCODINGS.indexOf(encoding));
    if (operation.op === "mix") {
      writer.float64(operation.alpha);
      writer.float64(operation.beta);
    } else if (operation.op === "grad") writer.float64(operation.lr ?? Number.NaN);
  }

  #statistics(statistics: Statistics, isWide: boolean, counts: boolean): void {
    const { norm, min, max, mean, zeros, nonFinite } = statistics;
    const writer = this.#writer;
    for (const value of [norm, min, max, mean]) {
      if (isWide) writer.float64(value ?? Number.NaN);
      else writer.float32(value ?? Number.NaN);
    }
    if (!counts) return;
    writer.varint(zeros);
    writer.varint(nonFinite);
  }

  /** Writes a reference to a text, which the message holds once. */
  #name(text: string): void {
    let place = this.#places.get(text);
    if (place === undefined) {
      place = this.#places.size;
      this.#places.set(text, place);
      this.#nameBytes += 3 * text.length + 5;
    }
    this.#writer.varint(place);
  }
}

/** What neighbouring entries often have in common. */
type EntryKind = Pick<BlockChange, "operation" | "dtype" | "encoding">;

/** Whether two changes have the same operation, element type and encoding. */
function areAlike(a: EntryKind, b: EntryKind): boolean {
  if (a.dtype !== b.dtype || a.encoding !== b.encoding) return false;
  const [one, other] = [a.operation, b.operation];
  if (one === other) return true;
  if (one.op === "grad" && other.op === "grad") return one.lr === other.lr;
  if (one.op === "mix" && other.op === "mix") {
    return one.alpha === other.alpha && one.beta === other.beta;
  }
  return one.op === other.op;
}

/** Whether the statistics need float64: float32 would round an extreme element, or cannot hold the norm. */
function needsFloat64({ dtype }: BlockChange, { norm }: Statistics): boolean {
  return dtype !== "float32" || norm > FLOAT32_MAX;
}

/**
 * Cuts a time to whole microseconds, as times are cut where they are shown. So a line shows the same time before and
 * after it is on the tape.
 */
function wholeMicroseconds(timeMs: number): number {
  return Math.floor(timeMs * 1000);
}
