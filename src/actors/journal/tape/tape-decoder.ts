import { decodeMessage, type Fields, unpackValue } from "../../../protocol/codec.ts";
import { isErrorCode, PserverError } from "../../../protocol/errors.ts";
import { asMap, integerField, listField } from "../../../protocol/fields.ts";
import type { NoteEntries } from "../../../protocol/messages/records.ts";
import type { Statistics } from "../../fold/statistics.ts";
import type { BlockChange, BlockOperation } from "../block-change.ts";
import type { GuardMark, UpdateEvent, UpdateOutcome, UpdateVerb } from "../describe-record.ts";
import {
  ENTRY,
  GUARDED,
  RECORD,
  TAPE_ACTIONS,
  TAPE_DTYPES,
  TAPE_ENCODINGS,
  TAPE_FORMAT,
  TAPE_OPERATIONS,
  TAPE_OUTCOMES,
  TAPE_VERBS,
} from "./tape-encoder.ts";

/** Reads what {@link ByteWriter} wrote. Every method throws BAD_MESSAGE at the end of the bytes. */
class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  /** Whether all has been read. */
  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  uint8(): number {
    return this.#bytes[this.#take(1)] as number;
  }

  /** Reads a whole number. @throws BAD_MESSAGE also for one above 2^53 − 1. */
  varint(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 56; scale *= 0x80) {
      const byte = this.uint8();
      value += (byte & 0x7f) * scale;
      if (byte >= 0x80) continue;
      if (value <= Number.MAX_SAFE_INTEGER) return value;
      break;
    }
    throw new PserverError("BAD_MESSAGE", `tape: expected a number up to 2^53 at byte ${this.#at}`);
  }

  float32(): number {
    return this.#view.getFloat32(this.#take(4), true);
  }

  float64(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  /** Reads bytes that follow their number; returns a view. */
  block(): Uint8Array {
    const length = this.varint();
    const start = this.#take(length);
    return this.#bytes.subarray(start, start + length);
  }

  #take(bytes: number): number {
    const start = this.#at;
    if (start + bytes > this.#bytes.length) {
      throw new PserverError("BAD_MESSAGE", `tape: the lines end within one, at byte ${start}`);
    }
    this.#at = start + bytes;
    return start;
  }
}

/** Limit of the names in a message; more than any message can hold. */
const NAMES_MAX = 2 ** 24;

/** What a tape message covers. */
export interface TapeSpan {
  readonly generation: number;
  /** Sequence of the first record that the message has lines of. */
  readonly from: number;
  /**
   * Up to this record the tape has all lines, with this message and those before it; `from` − 1 if lines of the first
   * record are missing.
   */
  readonly to: number;
}

/** The decoded lines of a tape message. */
export interface TapeMessage extends TapeSpan {
  readonly events: readonly UpdateEvent[];
}

/** Reads what a tape message covers. @throws BAD_MESSAGE, BAD_CHECKSUM, BAD_VERSION. */
export function tapeSpan(bytes: Uint8Array): TapeSpan {
  return spanOf(decodeMessage(bytes).fields);
}

/**
 * Decodes the updates in a tape message of a shard.
 * @throws BAD_MESSAGE if it is malformed, BAD_CHECKSUM if a bit has changed, BAD_VERSION if this program lacks the
 * format of its lines.
 */
export function decodeTape(bytes: Uint8Array, shard: number): TapeMessage {
  const { fields, data } = decodeMessage(bytes);
  const span = spanOf(fields);
  const decoder = new TapeDecoder(new ByteReader(data), span, shard, fields);
  return { ...span, events: decoder.events() };
}

function spanOf(fields: Fields): TapeSpan {
  const format = integerField(fields, "format", 1);
  if (format !== TAPE_FORMAT) {
    throw new PserverError(
      "BAD_VERSION",
      `tape: expected lines of format ${TAPE_FORMAT}; received ${format}`,
      { expected: TAPE_FORMAT, received: format },
    );
  }
  const from = integerField(fields, "from", 1);
  const to = integerField(fields, "to", 0);
  return { generation: integerField(fields, "generation", 1), from, to };
}

type RecordPart = Omit<UpdateEvent, "entry" | "entries" | "verb">;

type Kind = Pick<BlockChange, "operation" | "dtype" | "encoding">;

class TapeDecoder {
  readonly #reader: ByteReader;
  readonly #shard: number;
  readonly #generation: number;
  readonly #names: readonly string[];
  readonly #events: UpdateEvent[] = [];
  #seq: number;
  #timeUs: number;
  #kind: Kind | undefined;

  constructor(reader: ByteReader, { generation, from }: TapeSpan, shard: number, fields: Fields) {
    this.#reader = reader;
    this.#shard = shard;
    this.#generation = generation;
    this.#seq = from;
    this.#timeUs = integerField(fields, "timeUs");
    this.#names = listField(fields, "names", NAMES_MAX).map((name) => {
      if (typeof name === "string") return name;
      throw malformed("a name that is no text");
    });
  }

  events(): readonly UpdateEvent[] {
    while (!this.#reader.isAtEnd) this.#record();
    return this.#events;
  }

  #record(): void {
    const reader = this.#reader;
    const flags = reader.uint8();
    const second = reader.uint8();
    const verb = wordOf(TAPE_VERBS, second & ~GUARDED);
    this.#seq += reader.varint();
    const time = reader.varint();
    this.#timeUs += time % 2 === 0 ? time / 2 : -(time + 1) / 2;
    const told = this.#outcome(flags);
    const guard = (second & GUARDED) === 0 ? undefined : this.#guard();
    const isAside = guard?.action === "set-aside" && told.kind === "applied";
    const outcome: UpdateOutcome = isAside ? { kind: "set-aside" } : told;
    const hasSender = (flags & RECORD.sender) !== 0;
    const record: RecordPart = {
      timeMs: this.#timeUs / 1000,
      shard: this.#shard,
      generation: this.#generation,
      seq: this.#seq,
      outcome,
      guard,
      trainer: hasSender ? this.#name() : undefined,
      session: hasSender ? reader.varint() || undefined : undefined,
      n: hasSender ? reader.varint() || undefined : undefined,
      step: (flags & RECORD.step) === 0 ? undefined : reader.varint(),
      note: (flags & RECORD.note) === 0 ? undefined : noteOf(reader.block()),
      bytes: (flags & RECORD.bytes) === 0 ? undefined : reader.varint(),
      undescribed: (flags & RECORD.undescribed) === 0 ? undefined : this.#name(),
    };
    if ((flags & RECORD.entries) === 0) {
      this.#events.push({ ...record, entry: 0, entries: 1, verb });
      return;
    }
    this.#entries(record);
  }

  #entries(record: RecordPart): void {
    const first = this.#reader.varint();
    const entries = this.#reader.varint();
    const count = this.#reader.varint();
    for (let entry = first; entry < first + count; entry++) {
      const block = this.#entry();
      const { op } = block.operation;
      const verb: UpdateVerb = op === "mix" || op === "grad" ? "push" : op;
      const step = op === "grad" ? record.step : undefined;
      // No object spread, which is slow in V8: this runs for every line.
      this.#events.push({
        timeMs: record.timeMs,
        shard: record.shard,
        generation: record.generation,
        seq: record.seq,
        entry,
        entries,
        verb,
        outcome: record.outcome,
        guard: record.guard?.entry === entry ? record.guard : undefined,
        trainer: record.trainer,
        session: record.session,
        n: record.n,
        step,
        block,
      });
    }
  }

  #outcome(flags: number): UpdateOutcome {
    const kind = wordOf(TAPE_OUTCOMES, flags & 3);
    if (kind === "repeated") return { kind, seq: this.#reader.varint() };
    if (kind !== "rejected") return { kind };
    const code = this.#name();
    if (!isErrorCode(code)) throw malformed("a code that is none");
    return { kind, code, message: this.#name() };
  }

  #guard(): GuardMark {
    const reader = this.#reader;
    const action = wordOf(TAPE_ACTIONS, reader.uint8());
    const [norm, limit, median] = [reader.float64(), reader.float64(), reader.float64()];
    const [norms, others, entry] = [reader.varint(), reader.varint(), reader.varint()];
    return { action, norm, limit, median, norms, others, entry };
  }

  #entry(): BlockChange {
    const reader = this.#reader;
    const flags = reader.uint8();
    const parameter = this.#name();
    const index = reader.varint();
    if ((flags & ENTRY.alike) === 0) this.#kind = this.#readKind();
    if (this.#kind === undefined) throw malformed("an entry like none before");
    const { operation, dtype, encoding } = this.#kind;
    const elements = reader.varint();
    const bytes = reader.varint();
    let part: BlockChange["part"];
    if ((flags & ENTRY.part) !== 0) {
      const rows = reader.varint();
      const inner = reader.varint();
      part = inner === 0 ? { rows } : { rows, inner };
    }
    const version = (flags & ENTRY.version) === 0 ? undefined : reader.varint();
    const behind = (flags & ENTRY.behind) === 0 ? undefined : reader.varint();
    const statistics = (flags & ENTRY.statistics) === 0 ? undefined : this.#statistics(flags);
    return {
      parameter,
      index,
      operation,
      dtype,
      encoding,
      part,
      elements,
      bytes,
      statistics,
      version,
      behind,
    };
  }

  #readKind(): Kind {
    const reader = this.#reader;
    const op = wordOf(TAPE_OPERATIONS, reader.uint8());
    const dtype = wordOf(TAPE_DTYPES, reader.uint8());
    const encoding = wordOf(TAPE_ENCODINGS, reader.uint8());
    return { operation: this.#operation(op), dtype, encoding };
  }

  #operation(op: BlockOperation["op"]): BlockOperation {
    if (op === "mix") {
      return { op, alpha: this.#reader.float64(), beta: this.#reader.float64() };
    }
    return op === "grad" ? { op, lr: known(this.#reader.float64()) } : { op };
  }

  #statistics(flags: number): Statistics {
    const reader = this.#reader;
    const isWide = (flags & ENTRY.wide) !== 0;
    const next = (): number => (isWide ? reader.float64() : reader.float32());
    const norm = next();
    const [min, max, mean] = [known(next()), known(next()), known(next())];
    const counts = (flags & ENTRY.counts) !== 0;
    const zeros = counts ? reader.varint() : 0;
    return { norm, min, max, mean, zeros, nonFinite: counts ? reader.varint() : 0 };
  }

  #name(): string {
    const name = this.#names[this.#reader.varint()];
    if (name !== undefined) return name;
    throw malformed("a reference to no name");
  }
}

/** Returns the value; undefined for a NaN, which stands for an unknown value. */
function known(value: number): number | undefined {
  return Number.isNaN(value) ? undefined : value;
}

function noteOf(bytes: Uint8Array): NoteEntries {
  return asMap(unpackValue(bytes), "note") as NoteEntries;
}

function wordOf<Word>(words: readonly Word[], place: number): Word {
  if (place < words.length) return words[place] as Word;
  throw malformed("a number that stands for no word");
}

function malformed(what: string): PserverError {
  return new PserverError("BAD_MESSAGE", `tape: a line has ${what}`);
}
