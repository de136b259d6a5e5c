import { PserverError } from "../../protocol/errors.ts";
import type { BlockUpdate, Fate, UpdateCall } from "../core/block-update.ts";
import type { Failure } from "../core/failure.ts";
import { hasFailed } from "../core/update-call.ts";
import type { UpdateSource } from "./update-source.ts";

/** Updates listed in an error; a large tensor has thousands. */
const NAMES_MAX = 64;

/** A call that is over, as its error is made from it. */
export interface OverCall {
  readonly call: UpdateCall;
  readonly sources: readonly UpdateSource[];
  readonly trainer: string;
}

/**
 * The error of a call that is over; undefined if it has succeeded. It is the first rejection; else
 * OUTCOME_UNKNOWN, naming the updates that are applied once or not at all; else what ended the call or
 * kept updates from being stored.
 */
export function callError(over: OverCall): PserverError | undefined {
  const { call } = over;
  if (!hasFailed(call)) return undefined;
  if (call.rejected !== undefined && call.rejection !== undefined) {
    return rejectionError(over, call.rejected, call.rejection);
  }
  return call.unknown > 0 ? unknownError(over) : unsentError(over);
}

/** The failure as an error. */
export function toError(failure: Failure): PserverError {
  if (failure instanceof PserverError) return failure;
  return new PserverError(failure.code, failure.message, failure.details);
}

function rejectionError(over: OverCall, update: BlockUpdate, rejection: Failure): PserverError {
  const { call, trainer } = over;
  const { applied, unknown, unsent } = call;
  const { code, message } = rejection;
  const first = new PserverError(
    code,
    `${describe(over, update)}: ${message}`,
    { ...rejection.details, ...detailsOf(over, update), trainer },
    { cause: toError(rejection) },
  );
  if (applied + unknown === 0) return first;
  return new PserverError(
    code,
    `${first.message} (other updates of the call: ${applied} applied, ${unknown} unknown, ${unsent} not sent)`,
    { ...first.details, ...rest(over), ...listed(over, "unknown", "unknown", unknown) },
    { cause: first },
  );
}

function unknownError(over: OverCall): PserverError {
  const { call, trainer } = over;
  const { end, unknown } = call;
  const code = end === undefined || end.code === "TIMEOUT" ? "OUTCOME_UNKNOWN" : end.code;
  const first = call.updates.find(({ fate }) => fate === "unknown");
  return new PserverError(
    code,
    `${end === undefined ? "the session ended" : end.message}: ${unknown} block updates, the first ${first && describe(over, first)}, were sent and are applied once or not at all`,
    { ...listed(over, "pieces", "unknown", unknown), ...rest(over), trainer },
    { cause: end && toError(end) },
  );
}

function unsentError(over: OverCall): PserverError {
  const { applied, unsent, obstacle, end: known } = over.call;
  const end = toError(known ?? WITHOUT_REASON);
  const { code, message, details } = end.code === "TIMEOUT" ? (obstacle ?? end) : end;
  const tail = applied === 0 ? "nothing was applied" : `${applied} were applied`;
  return new PserverError(
    code,
    `${code === end.code ? message : `${end.message}; last: ${message}`}; ${unsent} block updates were not stored, ${tail}`,
    { ...details, ...rest(over) },
    { cause: end },
  );
}

const WITHOUT_REASON: Failure = {
  code: "INTERNAL",
  message: "block updates were given up without a reason",
  details: {},
};

function rest(over: OverCall): object {
  const { applied, unsent } = over.call;
  return { ...listed(over, "applied", "applied", applied), unsent };
}

/** The updates of a fate, under a key of the details, in the order of the call. */
function listed(over: OverCall, key: string, fate: Fate, count: number): object {
  const updates = over.call.updates.filter((update) => update.fate === fate);
  const list = { [key]: updates.slice(0, NAMES_MAX).map((update) => nameOf(over, update)) };
  return count > NAMES_MAX ? { ...list, [`${key}Count`]: count } : list;
}

function detailsOf(over: OverCall, update: BlockUpdate): Record<string, unknown> {
  const { index: block, ...name } = nameOf(over, update) as Record<string, unknown>;
  const { parameter, ...others } = name;
  return parameter === undefined ? others : { parameter, block, ...others };
}

function nameOf(over: OverCall, { index, shard, n }: BlockUpdate): object {
  const topic = over.sources[index]?.topic;
  const about =
    topic?.kind === "block"
      ? { parameter: topic.parameter, index: topic.index }
      : { step: topic?.step };
  return { ...about, shard, ...(n > 0 ? { n } : {}) };
}

function describe(over: OverCall, { index, shard }: BlockUpdate): string {
  const topic = over.sources[index]?.topic;
  return topic?.kind === "block"
    ? `${topic.parameter} block ${topic.index}`
    : `end of step ${topic?.step} in shard ${shard}`;
}
