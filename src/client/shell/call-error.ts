import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import {
  type BlockUpdate,
  type Failure,
  type Fate,
  hasFailed,
  type UpdateCall,
} from "../core/block-update.ts";

import type { BlockName, Topic, UpdateSource } from "./update-sender.ts";

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
  const block = blamedBlock(topicOf(over, update), message);
  const first = new PserverError(
    code,
    `${block === undefined ? describe(over, update) : describeBlock(block)}: ${message}`,
    { ...rejection.details, ...detailsOf(over, update, block), trainer },
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

/** The blocks, or the clock, of updates of a fate, under a key of the details, in the order of the call. */
function listed(over: OverCall, key: string, fate: Fate, count: number): object {
  const names: object[] = [];
  for (const update of over.call.updates) {
    if (names.length === NAMES_MAX) break;
    if (update.fate !== fate) continue;
    const place = placeOf(update);
    for (const about of aboutOf(topicOf(over, update)).slice(0, NAMES_MAX - names.length)) {
      names.push({ ...about, ...place });
    }
  }
  return count > NAMES_MAX ? { [key]: names, [`${key}Count`]: count } : { [key]: names };
}

/** The block that a rejection names: the only one of its record, or that with which its text begins. */
function blamedBlock(topic: Topic | undefined, message: string): BlockName | undefined {
  if (topic?.kind !== "blocks") return undefined;
  if (topic.blocks.length === 1) return topic.blocks[0];
  return topic.blocks.find(({ parameter, index }) =>
    message.startsWith(`${quoteName(parameter)} block ${index}: `),
  );
}

function detailsOf(over: OverCall, update: BlockUpdate, block: BlockName | undefined): object {
  if (block !== undefined) {
    return { parameter: block.parameter, block: block.index, ...placeOf(update) };
  }
  const topic = topicOf(over, update);
  return { ...(topic?.kind === "clock" ? { step: topic.step } : {}), ...placeOf(update) };
}

function aboutOf(topic: Topic | undefined): readonly object[] {
  if (topic?.kind === "note") return [{ note: true }];
  if (topic?.kind !== "blocks") return [{ step: topic?.step }];
  return topic.blocks.map(({ parameter, index }) => ({ parameter, index }));
}

function placeOf({ shard, n }: BlockUpdate): object {
  return { shard, ...(n > 0 ? { n } : {}) };
}

function topicOf({ sources }: OverCall, { index }: BlockUpdate): Topic | undefined {
  return sources[index]?.topic;
}

function describe(over: OverCall, update: BlockUpdate): string {
  const topic = topicOf(over, update);
  if (topic?.kind === "note") return "note";
  if (topic?.kind !== "blocks") return `end of step ${topic?.step} in shard ${update.shard}`;
  const [first, ...others] = topic.blocks;
  const more = others.length === 0 ? "" : ` and ${others.length} others of its record`;
  return `${first === undefined ? "no block" : describeBlock(first)}${more}`;
}

function describeBlock({ parameter, index }: BlockName): string {
  return `${parameter} block ${index}`;
}
