import { encodeMessage, type Fields, type Message } from "./codec.ts";
import { integerField, listField, textField } from "./fields.ts";
import { throwIfError } from "./outcomes.ts";
import { type Position, parsePosition } from "./position.ts";
import { PULL_WAIT_MS_MAX } from "./pulls.ts";

/**
 * Asks a shard how far its members are. It answers once it has folded up to the position, knows a
 * members' revision of at least `revision` and has closed `step`; or with TIMEOUT after `waitMs`.
 */
export interface StepRequest extends Position {
  readonly revision: number;
  /** The step that must have closed; 0 for none. */
  readonly step: number;
  readonly waitMs: number;
}

/** Progress of a job's members, as one shard knows it. */
export interface StepReply extends Position {
  readonly revision: number;
  /** The last step that has closed; 0 before the first. */
  readonly step: number;
  /** Members that have not ended the step after it: some of them, in the order of their ids. */
  readonly waitingFor: readonly string[];
}

/** Most members that a reply names. */
export const WAITING_FOR_MAX = 16;

/** A step request as a message. */
export function encodeStepRequest(request: StepRequest): Uint8Array {
  return encodeMessage({ ...request });
}

/** @throws BAD_MESSAGE if the fields are not a valid step request. */
export function parseStepRequest(fields: Fields): StepRequest {
  return {
    ...parsePosition(fields),
    revision: integerField(fields, "revision"),
    step: integerField(fields, "step"),
    waitMs: integerField(fields, "waitMs", 0, PULL_WAIT_MS_MAX),
  };
}

/** A step reply as a message. */
export function encodeStepReply(reply: StepReply): Uint8Array {
  return encodeMessage({ ...reply });
}

/** @throws BAD_MESSAGE if the message is not a valid step reply, or the error that the message carries. */
export function parseStepReply({ fields }: Message): StepReply {
  throwIfError(fields);
  const waitingFor = listField(fields, "waitingFor", WAITING_FOR_MAX);
  return {
    ...parsePosition(fields),
    revision: integerField(fields, "revision"),
    step: integerField(fields, "step"),
    waitingFor: waitingFor.map((trainer) => textField({ trainer }, "trainer")),
  };
}
