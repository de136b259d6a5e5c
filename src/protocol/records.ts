import {
  type Allocate,
  type DraftMessage,
  draftMessage,
  encodeMessage,
  type Fields,
  type Message,
} from "./codec.ts";
import { type ParameterConfig, toConfig } from "./config/index.ts";
import { DTYPES, type Dtype } from "./dtypes.ts";
import { type Encoding, encodedBytes } from "./encoding/encodings.ts";
import { PserverError } from "./errors.ts";
import {
  dtypeField,
  encodingField,
  integerField,
  listField,
  mapField,
  numberField,
  textField,
  wordField,
} from "./fields.ts";
import { type PartCounts, parsePartEntry, partEntry } from "./parts.ts";
import { checkShape, elementCount } from "./tensor.ts";
import type { TrainerVerb } from "./verbs.ts";

/**
 * What every record of a trainer begins with. `n` counts 1, 2, 3, … per session and shard; `done`
 * promises that no number up to it will be sent again; `reply` is where the outcome goes, or "".
 */
export interface RecordHead {
  readonly session: number;
  readonly n: number;
  readonly done: number;
  readonly reply: string;
}

/** Creates a block, or replaces it under a higher epoch; later records leave out what it says. */
export interface InitRecord extends RecordHead {
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
}

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
export interface PushRecord extends RecordHead {
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

/** Overwrites a block's values. */
export interface SetRecord extends RecordHead {
  readonly verb: "set";
  readonly epoch: number;
  readonly dtype: Dtype;
}

/** Tells a shard that the trainer has sent everything of its steps up to this one. */
export interface ClockRecord extends RecordHead {
  readonly verb: "clock";
  readonly step: number;
}

/** A trainer's journal record about a block, without its tensor bytes. */
export type TrainerRecord = InitRecord | PushRecord | SetRecord;

/** A record with room for its tensor bytes; fill and seal it as {@link DraftMessage} says. */
export function draftRecord(
  record: TrainerRecord,
  dataBytes: number,
  allocate?: Allocate,
): DraftMessage {
  if (record.verb === "push") return draftMessage(pushFields(record), dataBytes, allocate);
  const { verb: _verb, ...fields } = record;
  return draftMessage(fields, dataBytes, allocate);
}

/** The entries of a push. Without object spread, which is slow in V8: this runs for every push. */
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

/** A trainer's clock as a message. */
export function encodeClock(record: ClockRecord): Uint8Array {
  const { verb: _verb, ...entries } = record;
  return encodeMessage(entries);
}

/**
 * Session, number and `done` of a trainer's record; the fold decides by them whether it counts.
 * @throws BAD_MESSAGE if one is missing or not a number.
 */
export function parseHead(fields: Fields): RecordHead {
  const n = integerField(fields, "n", 1);
  return {
    session: integerField(fields, "session", 1),
    n,
    done: integerField(fields, "done", 0, n - 1),
    reply: textField(fields, "reply", 512),
  };
}

/**
 * A trainer's record of a verb, with its own values checked. The fold checks whether it fits its block.
 * @throws BAD_MESSAGE, BAD_DTYPE, BAD_SHAPE, BAD_LENGTH or BAD_CONFIG naming what is wrong.
 */
export function parseTrainerRecord(
  verb: TrainerVerb,
  { session, n, done, reply }: RecordHead,
  message: Message,
): TrainerRecord {
  const { fields, data } = message;
  const epoch = integerField(fields, "epoch", 1);
  // Objects of one shape, without object spread, which is slow in V8: this runs for every record.
  const head = { session, n, done, reply, epoch, dtype: dtypeField(fields) };
  if (verb === "push") return parsePush(head, message);
  checkWholeElements(data, DTYPES[head.dtype].bytes);
  if (verb === "set") return { verb, ...head };
  const shape = checkShape(listField(fields, "shape", 64));
  const elements = elementCount(shape);
  const start = integerField(fields, "start", 0, elements - 1);
  const count = integerField(fields, "count", 1, elements - start);
  const expected = count * DTYPES[head.dtype].bytes;
  if (data.length !== expected) throw badLength(String(expected), data.length);
  return { verb, ...head, shape, start, count, config: toConfig(mapField(fields, "config")) };
}

/** The rest of a clock after its head; @throws BAD_MESSAGE if the fields are not a valid clock. */
export function parseClock(fields: Fields): ClockRecord {
  return { verb: "clock", ...parseHead(fields), step: integerField(fields, "step", 1) };
}

function parsePush(
  head: RecordHead & { readonly epoch: number; readonly dtype: Dtype },
  { fields, data }: Message,
): PushRecord {
  const { session, n, done, reply, epoch, dtype } = head;
  const encoding = encodingField(fields);
  const part = parsePartEntry(fields);
  if (part === undefined) checkWholeElements(data, encodedBytes(dtype, encoding, 1));
  const norm = fields["norm"] === undefined ? undefined : numberField(fields, "norm");
  const operation = parseOperation(fields, fields["step"], fields["seen"]);
  return { verb: "push", session, n, done, reply, epoch, dtype, encoding, norm, operation, part };
}

/** @throws BAD_LENGTH unless the bytes are whole elements, at least one. */
export function checkWholeElements(data: Uint8Array, elementBytes: number): void {
  if (data.length === 0 || data.length % elementBytes !== 0) {
    throw badLength(`a positive multiple of ${elementBytes}`, data.length);
  }
}

/**
 * The operation that a push's fields name, with a gradient's step and the version that it has seen.
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
