import { encodeMessage, type Fields, type Message, packValue, unpackValue } from "../codec.ts";
import { type Synchronization, toSynchronization } from "../config/index.ts";
import { PserverError } from "../errors.ts";
import { asMap, flagField, integerField, listField, mapField, textField } from "../fields.ts";
import type { Layout } from "../layout.ts";
import {
  FRAGMENT_NAME_LENGTH_MAX,
  LIVE_SESSIONS_MAX,
  MEMBERS_MAX,
  PARAMETERS_PER_REQUEST_MAX,
} from "../limits.ts";
import { escapeId, unescapeId } from "../names.ts";
import {
  type Declaration,
  parseParameterInfo,
  parseTrainerSessions,
  type TrainerSession,
} from "./lifecycle-messages.ts";

/** The shard is folded under these rules from this record on. */
export interface RulesRecord {
  readonly verb: "rules";
  readonly rules: number;
  /** How the job's trainers keep step; absent if they do not. */
  readonly synchronization?: Synchronization;
}

/**
 * The members of the job's steps from this record on. A record with a lower revision than an earlier one is
 * ignored. `started`: enough members have been present at one time; until then no step closes.
 */
export interface MembersRecord {
  readonly verb: "members";
  readonly revision: number;
  readonly started: boolean;
  /** Ids, ascending, each once. */
  readonly trainers: readonly string[];
}

/** A parameter that hosts have granted to the trainer that initializes it. */
export interface GrantedParameter extends Declaration {
  readonly epoch: number;
  readonly layout: Layout;
  /** Number of its first block, see `ParameterInfo`. */
  readonly firstNumber: number;
}

/**
 * The parameters that this trainer initializes from this record on, each under its epoch. Any other `init` of
 * a block is rejected. An epoch below an earlier one is ignored.
 */
export interface DeclareRecord {
  readonly verb: "declare";
  readonly trainer: string;
  readonly parameters: readonly GrantedParameter[];
}

/** What a shard knows of a job's initialization that was finished. */
export interface InitializedJob {
  readonly epoch: number;
  /** How often what was initialized had changed since; see `LifecycleContext.revised`. */
  readonly revised: number;
  /** The session that has initialized it. */
  readonly session: number;
}

/**
 * The job, or parameters that were created by themselves, are initialized. It tells a shard what else only an entry
 * of the job's bucket says. What is older than what the shard has been told is ignored.
 */
export interface ReadyRecord {
  readonly verb: "ready";
  /** Absent if the record is about parameters only. */
  readonly job?: InitializedJob;
  /** Names, each with the epoch under which it is initialized. */
  readonly parameters: readonly (readonly [parameter: string, epoch: number])[];
}

/** Removes the blocks of a parameter up to this epoch, and its declaration. */
export interface DropRecord {
  readonly verb: "drop";
  readonly parameter: string;
  readonly epoch: number;
}

/** Ends every session up to this one: they must join again. */
export interface FloorRecord {
  readonly verb: "floor";
  readonly session: number;
}

/** Ends every session up to `upTo` but the live ones. */
export interface SessionsRecord {
  readonly verb: "sessions";
  readonly upTo: number;
  /** Sessions up to `upTo` that have not ended. */
  readonly live: readonly number[];
}

/**
 * Makes the shard forget these trainers, if it remembers them with exactly these sessions: no host has given
 * out these numbers.
 */
export interface ForgetRecord {
  readonly verb: "forget";
  readonly trainers: readonly TrainerSession[];
}

/** Ends the sessions of a trainer up to this one, which was too far ahead of the fold: it must join again. */
export interface EndRecord {
  readonly verb: "end";
  readonly trainer: string;
  readonly session: number;
}

/**
 * Closes the round of a fragment: the sums of the contributions folded before this record are applied. Ignored unless
 * it is the open round, and at least so many contributions to it were folded.
 */
export interface CloseRecord {
  readonly verb: "close";
  readonly fragment: string;
  /** Number of the round, from 1 on: the version that the fragment gets. */
  readonly round: number;
  /**
   * How many contributions to the round its writer has folded. With 0 a round closes that has none, and changes nothing
   * but the version: hosts do not write that, but a history can be folded without the contributions of a trainer.
   */
  readonly contributions: number;
}

/** A host's journal record. */
export type HostRecord =
  | RulesRecord
  | MembersRecord
  | DeclareRecord
  | ReadyRecord
  | DropRecord
  | FloorRecord
  | SessionsRecord
  | ForgetRecord
  | EndRecord
  | CloseRecord;

/** Writes a host's record as a message. Lists go into its bytes, because a header has no space for them. */
export function encodeHostRecord(record: HostRecord): Uint8Array {
  switch (record.verb) {
    case "members": {
      const { verb: _verb, trainers, ...entries } = record;
      const ids = trainers.map(escapeId).join("\n");
      return encodeMessage(entries, new TextEncoder().encode(ids));
    }
    case "declare": {
      const { trainer, parameters } = record;
      return encodeMessage({ trainer }, packValue(parameters));
    }
    case "ready": {
      const { job, parameters } = record;
      return encodeMessage(job === undefined ? {} : { job }, packValue(parameters));
    }
    case "sessions":
      return encodeMessage({ upTo: record.upTo }, packValue(record.live));
    case "forget":
      return encodeMessage({}, packValue(record.trainers));
    default: {
      const { verb: _verb, ...entries } = record;
      return encodeMessage({ ...entries });
    }
  }
}

/**
 * Reads a host's record of a verb.
 * @throws BAD_MESSAGE and the like naming what is wrong.
 */
export function parseHostRecord(verb: HostRecord["verb"], message: Message): HostRecord {
  const { fields, data } = message;
  switch (verb) {
    case "rules":
      return parseRules(fields);
    case "members":
      return {
        verb,
        revision: integerField(fields, "revision", 1),
        started: flagField(fields, "started"),
        trainers: parseMembers(data),
      };
    case "declare": {
      const trainer = textField(fields, "trainer");
      escapeId(trainer);
      const parameters = unpackList("parameters", data, PARAMETERS_PER_REQUEST_MAX);
      return { verb, trainer, parameters: parameters.map(parseGranted) };
    }
    case "ready": {
      const { job } = fields;
      return {
        verb,
        ...(job === undefined ? {} : { job: parseInitializedJob(asMap(job, "job")) }),
        parameters: unpackList("parameters", data, PARAMETERS_PER_REQUEST_MAX).map(parseReady),
      };
    }
    case "drop":
      return {
        verb,
        parameter: textField(fields, "parameter"),
        epoch: integerField(fields, "epoch"),
      };
    case "floor":
      return { verb, session: integerField(fields, "session") };
    case "sessions": {
      const upTo = integerField(fields, "upTo", 1);
      const live = unpackList("live", data, LIVE_SESSIONS_MAX);
      return { verb, upTo, live: live.map((live) => integerField({ live }, "live", 1, upTo)) };
    }
    case "forget":
      return { verb, trainers: parseTrainerSessions(unpackValue(data)) };
    case "end": {
      const trainer = textField(fields, "trainer");
      escapeId(trainer);
      return { verb, trainer, session: integerField(fields, "session", 1) };
    }
    case "close":
      return {
        verb,
        fragment: textField(fields, "fragment", FRAGMENT_NAME_LENGTH_MAX),
        round: integerField(fields, "round", 1),
        contributions: integerField(fields, "contributions", 0, MEMBERS_MAX),
      };
  }
}

/** Reads an initialization in a `ready` record, a reply or a saved state; @throws BAD_MESSAGE. */
export function parseInitializedJob(fields: Fields): InitializedJob {
  return {
    epoch: integerField(fields, "epoch", 1),
    revised: integerField(fields, "revised"),
    session: integerField(fields, "session"),
  };
}

function parseReady(value: unknown): readonly [parameter: string, epoch: number] {
  const row: Fields = { ...listField({ ready: value }, "ready", 2) };
  return [textField(row, "0"), integerField(row, "1", 1)];
}

/** Reads a parameter in a `declare` record or a saved state; @throws BAD_MESSAGE and the like. */
export function parseGranted(value: unknown): GrantedParameter {
  const { ready: _ready, ...granted } = parseParameterInfo(asMap(value, "parameter"));
  return granted;
}

function parseRules(fields: Fields): RulesRecord {
  const rules = integerField(fields, "rules", 1);
  if (fields["synchronization"] === undefined) return { verb: "rules", rules };
  const synchronization = toSynchronization(mapField(fields, "synchronization"));
  return { verb: "rules", rules, synchronization };
}

function parseMembers(data: Uint8Array): string[] {
  if (data.length === 0) return [];
  const ids = new TextDecoder().decode(data).split("\n");
  if (ids.length <= MEMBERS_MAX) return ids.map(unescapeId);
  throw new PserverError(
    "BAD_LENGTH",
    `tensor bytes: expected at most ${MEMBERS_MAX} members; received ${ids.length}`,
    { expected: `at most ${MEMBERS_MAX} members`, received: ids.length },
  );
}

function unpackList(key: string, data: Uint8Array, lengthMax: number): readonly unknown[] {
  return listField({ [key]: unpackValue(data) }, key, lengthMax);
}
