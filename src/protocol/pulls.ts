import {
  type Allocate,
  type DraftMessage,
  draftMessage,
  encodeMessage,
  type Fields,
  type Message,
  sealMessage,
} from "./codec.ts";
import type { Dtype } from "./dtypes.ts";
import type { Encoding } from "./encoding/encodings.ts";
import { dtypeField, encodingField, integerField } from "./fields.ts";
import { throwIfError } from "./outcomes.ts";
import {
  type PartCounts,
  type PartIndex,
  parsePartEntry,
  partEntry,
  partIndexBytes,
  writePartIndex,
} from "./parts.ts";
import { type Position, parsePosition } from "./position.ts";

/**
 * When and how a request for values is answered: once the shard has folded up to the position (generation 1, seq 0
 * for "whatever is there"), or with TIMEOUT after `waitMs`.
 */
export interface ReadTerms extends Position {
  readonly waitMs: number;
  /** The step that must have closed in the shard; absent for none. */
  readonly step?: number;
  /** Encoding wanted for all elements; absent for the type of each block. */
  readonly encoding?: Encoding;
}

/** Asks a block actor for its values under an epoch. */
export interface PullRequest extends ReadTerms {
  readonly epoch: number;
  /** Set if only some elements are wanted: their index is the bytes of the request. */
  readonly part?: PartCounts;
}

/** A block's values, as its reply carries them; `data` is a view of the received buffer. */
export interface PullReply extends Position {
  readonly epoch: number;
  /** Element type of the block. */
  readonly dtype: Dtype;
  /** How the elements are written, if not as the type says. */
  readonly encoding?: Encoding;
  readonly version: number;
  /** The elements asked for, in the order of the index. */
  readonly data: Uint8Array;
}

/** The longest a request may wait at the server; clients repeat it until their own deadline. */
export const PULL_WAIT_MS_MAX = 10_000;

/** A pull as a message; `index` belongs to `request.part`. */
export function encodePullRequest(request: PullRequest, index?: PartIndex): Uint8Array {
  const { epoch, generation, seq, waitMs, step, encoding, part } = request;
  const entries = { epoch, generation, seq, waitMs, step, encoding };
  if (part === undefined || index === undefined) return encodeMessage(entries);
  const draft = draftMessage({ ...entries, part: partEntry(part) }, partIndexBytes(part));
  writePartIndex(draft.data, index);
  return sealMessage(draft);
}

/** @throws BAD_MESSAGE if the fields are not a valid pull. */
export function parsePullRequest(fields: Fields): PullRequest {
  const part = parsePartEntry(fields);
  return {
    epoch: integerField(fields, "epoch", 1),
    ...parseReadTerms(fields),
    ...(part === undefined ? {} : { part }),
  };
}

/** What every request for values says of the answer; @throws BAD_MESSAGE if the fields are not valid. */
export function parseReadTerms(fields: Fields): ReadTerms {
  const encoding = encodingField(fields);
  return {
    ...parsePosition(fields),
    waitMs: integerField(fields, "waitMs", 0, PULL_WAIT_MS_MAX),
    ...(fields["step"] === undefined ? {} : { step: integerField(fields, "step") }),
    ...(encoding === undefined ? {} : { encoding }),
  };
}

/** A reply with room for the values; fill and seal it as {@link DraftMessage} says. */
export function draftPullReply(
  reply: Omit<PullReply, "data">,
  dataBytes: number,
  allocate?: Allocate,
): DraftMessage {
  const { epoch, dtype, encoding, generation, seq, version } = reply;
  return draftMessage({ epoch, dtype, encoding, generation, seq, version }, dataBytes, allocate);
}

/** @throws BAD_MESSAGE if the message is not a valid pull reply, or the error that the message carries. */
export function parsePullReply(message: Message): PullReply {
  throwIfError(message.fields);
  const { fields, data } = message;
  const encoding = encodingField(fields);
  return {
    epoch: integerField(fields, "epoch", 1),
    dtype: dtypeField(fields),
    ...(encoding === undefined ? {} : { encoding }),
    ...parsePosition(fields),
    version: integerField(fields, "version"),
    data,
  };
}
