import { encodeMessage, type Fields, type Message } from "../codec.ts";
import { type GuardDecision, toGuardAction } from "../config/guard.ts";
import { type ErrorCode, errorFromWire, isErrorCode, PserverError } from "../errors.ts";
import { asMap, integerField, listField, numberField, textField } from "../fields.ts";
import { type Fallback, parseFallbacks, parsePosition } from "./position.ts";

/**
 * Result of one record in the fold: applied, giving the block's `version`, or rejected with a code.
 * `seq` is the journal sequence of the record that settled it.
 */
export interface Outcome {
  readonly n: number;
  readonly seq: number;
  readonly version: number;
  /** Of a record that was not rejected: that a guard has clipped a gradient in it, or has set it aside. */
  readonly guard?: GuardDecision;
  readonly code?: ErrorCode;
  readonly message?: string;
}

/** The outcomes of one trainer's records in one shard, as a message to its inbox. */
export interface Answers {
  readonly shard: number;
  readonly generation: number;
  readonly session: number;
  readonly outcomes: readonly Outcome[];
  /**
   * In the answer to a request about an older journal: what the shard did not keep of that journal and of
   * later ones.
   */
  readonly fallbacks?: readonly Fallback[];
}

/** Asks what became of records, once the shard has folded up to a position. */
export interface OutcomeRequest {
  readonly session: number;
  readonly numbers: readonly number[];
  readonly generation: number;
  readonly seq: number;
}

/** Most records of one answer or outcome request: the window of a session. */
const OUTCOMES_MAX = 1024;

/** Longest text of a rejection in an answer. */
const TEXT_LENGTH_MAX = 4096;

/**
 * Writes answers as a message. If it would have more than `bytesMax` bytes, the texts of rejections are cut:
 * a client decides by the codes.
 */
export function encodeAnswers(answers: Answers, bytesMax = Number.POSITIVE_INFINITY): Uint8Array {
  const { outcomes, ...header } = answers;
  let textMax = TEXT_LENGTH_MAX;
  for (;;) {
    const rows = outcomes.map((outcome) => outcomeRow(withShortText(outcome, textMax)));
    const bytes = encodeMessage({ ...header, outcomes: rows });
    if (bytes.length <= bytesMax || textMax === 0) return bytes;
    textMax = Math.floor(textMax / 2);
  }
}

function withShortText(outcome: Outcome, lengthMax: number): Outcome {
  const { message } = outcome;
  if (message === undefined || message.length <= lengthMax) return outcome;
  // A cut within a surrogate pair would leave half of it, which no message can carry.
  return { ...outcome, message: message.slice(0, lengthMax).toWellFormed() };
}

/** @throws BAD_MESSAGE if the message does not hold valid answers, or the error that the message carries. */
export function parseAnswers(message: Message): Answers {
  throwIfError(message.fields);
  const { fields } = message;
  return {
    shard: integerField(fields, "shard"),
    generation: integerField(fields, "generation", 1),
    session: integerField(fields, "session", 1),
    outcomes: listField(fields, "outcomes", OUTCOMES_MAX).map(parseOutcomeRow),
    ...(fields["fallbacks"] === undefined ? {} : { fallbacks: parseFallbacks(fields) }),
  };
}

/** Writes an outcome request as a message. */
export function encodeOutcomeRequest(request: OutcomeRequest): Uint8Array {
  return encodeMessage({ ...request });
}

/** @throws BAD_MESSAGE if the message is not a valid outcome request. */
export function parseOutcomeRequest(fields: Fields): OutcomeRequest {
  const numbers = listField(fields, "numbers", OUTCOMES_MAX);
  return {
    session: integerField(fields, "session", 1),
    numbers: numbers.map((value) => integerField({ n: value }, "n", 1)),
    ...parsePosition(fields),
  };
}

/** Writes an error as a reply. */
export function encodeError(error: PserverError): Uint8Array {
  return encodeMessage({ error: error.toWire() });
}

/** Throws the error that a reply carries, if it carries one. */
export function throwIfError(fields: Fields): void {
  const error = fields["error"];
  if (error === undefined) return;
  const wire = asMap(error, "error");
  const { details } = wire;
  throw errorFromWire({
    code: textField(wire, "code"),
    message: textField(wire, "message", Number.POSITIVE_INFINITY),
    details: details === undefined || details === null ? {} : asMap(details, "error details"),
  });
}

/** An outcome as messages and snapshots hold it. */
export type OutcomeRow = readonly (number | string | readonly (number | string)[])[];

/**
 * Returns an outcome as messages and snapshots hold it: `[n, seq, version]`, of a rejection also code and text, and of a
 * record that a guard has changed `[action, norm, limit]`.
 */
export function outcomeRow(outcome: Outcome): OutcomeRow {
  const { n, seq, version, code, message, guard } = outcome;
  if (guard !== undefined) return [n, seq, version, [guard.action, guard.norm, guard.limit]];
  return code === undefined ? [n, seq, version] : [n, seq, version, code, message ?? ""];
}

/** Reads the outcome in a row; @throws BAD_MESSAGE if it is not valid. */
export function parseOutcomeRow(row: unknown): Outcome {
  if (!Array.isArray(row)) throw new PserverError("BAD_MESSAGE", "outcome: expected a list");
  const [n, seq, version, code, message] = row as unknown[];
  const entry: Fields = { n, seq, version, code, message };
  const outcome = {
    n: integerField(entry, "n", 1),
    seq: integerField(entry, "seq"),
    version: integerField(entry, "version"),
  };
  if (code === undefined) return outcome;
  if (Array.isArray(code)) return { ...outcome, guard: parseDecision(code) };
  const text = textField(entry, "code");
  return {
    ...outcome,
    code: isErrorCode(text) ? text : "INTERNAL",
    message: textField(entry, "message", TEXT_LENGTH_MAX),
  };
}

function parseDecision(row: readonly unknown[]): GuardDecision {
  const [action, norm, limit] = row;
  const fields: Fields = { norm, limit };
  return {
    action: toGuardAction(action),
    norm: numberField(fields, "norm"),
    limit: numberField(fields, "limit"),
  };
}
