import type { Fields } from "../codec.ts";
import {
  type ParameterConfig,
  type Synchronization,
  toSharedConfig,
  toSynchronization,
} from "../config/index.ts";
import type { Dtype } from "../dtypes.ts";
import { PserverError } from "../errors.ts";
import {
  asMap,
  dtypeField,
  flagField,
  integerField,
  listField,
  mapField,
  textField,
  wordField,
} from "../fields.ts";
import { type Layout, layoutFromWire } from "../layout.ts";
import {
  BLOCK_NUMBER_MAX,
  HEADER_BYTES_MAX,
  PARAMETERS_PER_REQUEST_MAX,
  SHARDS_MAX,
  TRAINERS_PER_MESSAGE_MAX,
} from "../limits.ts";
import { escapeId, escapeName } from "../names.ts";
import { checkShape } from "../tensor.ts";
import { laterPosition, type Position, parsePosition } from "./position.ts";

/**
 * Most bytes of a parameter in a request or a reply. Name, configuration with a table of learning rates, and
 * shape take less than 1,600.
 */
const PARAMETER_BYTES_MAX = 2048;

/**
 * Returns how many parameters one request can declare or ask for, so that neither the request nor its reply
 * exceeds `payloadBytesMax`, the largest message that the broker takes.
 */
export function parametersPerRequest(payloadBytesMax: number): number {
  const fitting = Math.floor((payloadBytesMax - HEADER_BYTES_MAX) / PARAMETER_BYTES_MAX);
  return Math.max(1, Math.min(PARAMETERS_PER_REQUEST_MAX, fitting));
}

/** State of a job or of one parameter: the lifecycle machine's three states. */
export type LifecycleState = "uninitialized" | "initializing" | "ready";

/** Where the journals of a job stood: one position per shard, by shard number. */
export type ShardPositions = readonly Position[];

/** A request to join. `token` tells a repeat from a second process. */
export interface JoinRequest {
  readonly token: string;
}

/** Most characters of the time at which a job was made. */
const MADE_LENGTH_MAX = 39;

/** Answer to `join`. */
export interface JoinReply {
  readonly session: number;
  /** When the job was made: it tells the job from another one of its name. */
  readonly made: string;
  readonly shards: number;
  readonly leaseMs: number;
  readonly journal: "file" | "memory";
  readonly synchronization: Synchronization;
  readonly maxPayloadBytes: number;
}

/** Answer to `enter`: the trainer is a member from this revision on. */
export interface EnterReply {
  readonly revision: number;
}

/** Any request of a joined trainer. */
export interface SessionRequest {
  readonly session: number;
}

/** A request `enter` or `exit`, about membership in the job's steps. */
export interface MembershipRequest extends SessionRequest {
  /** How often the trainer has exited, including this request; 0 from a client that does not say. */
  readonly exits: number;
}

/** Answer to `begin` and `create`. The epoch is that of the present or last initialization. */
export interface BeginReply {
  readonly selected: boolean;
  readonly state: LifecycleState;
  readonly epoch: number;
  /** The trainer that initializes or initialized; "" if none. */
  readonly by: string;
}

/** A parameter as its initializer declares it. */
export interface Declaration {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly config: ParameterConfig;
}

/** Declares parameters of the initialization with this epoch. */
export interface DeclareRequest extends SessionRequest {
  readonly epoch: number;
  readonly parameters: readonly Declaration[];
}

/** Starts the lifecycle of one parameter, as Legion's `create_if_not_already_created` does. */
export interface CreateRequest extends SessionRequest {
  readonly parameter: Declaration;
}

/**
 * Ends the initialization of the job, or of the one parameter named. `at`: positions up to which the trainer
 * has published.
 */
export interface FinishRequest extends SessionRequest {
  readonly epoch: number;
  readonly parameter?: string;
  readonly at: readonly (Position & { readonly shard: number })[];
}

/** A parameter as hosts know it. `ready`: its initialization is finished. */
export interface ParameterInfo extends Declaration {
  readonly epoch: number;
  readonly ready: boolean;
  readonly layout: Layout;
  /**
   * Number of its first block; block i has the number i higher. Numbers name blocks in batches and batched reads. Each
   * initialization gets others, and none is given twice in a job.
   */
  readonly firstNumber: number;
}

/** Asks for the job's state and for parameters: those named, or a page after a name. */
export interface StatusRequest {
  readonly names?: readonly string[];
  readonly after?: string;
  readonly limit?: number;
}

/** Answer to `status`. Parameters come in request order (null: unknown), or in name order. */
export interface StatusReply {
  readonly state: LifecycleState;
  readonly epoch: number;
  readonly by: string;
  readonly shards: number;
  readonly parameters: readonly (ParameterInfo | null)[];
  /** Whether another page follows. */
  readonly more: boolean;
  /** Where the journals stood at `finish`; empty before. */
  readonly at: ShardPositions;
}

/** @throws BAD_MESSAGE if the fields are not a valid join. */
export function parseJoinRequest(fields: Fields): JoinRequest {
  return { token: textField(fields, "token", 64) };
}

/** Reads when the job was made which a trainer has joined; undefined if the trainer has joined none yet. */
export function parseMade(fields: Fields): string | undefined {
  return fields["made"] === undefined ? undefined : textField(fields, "made", MADE_LENGTH_MAX);
}

/** @throws BAD_MESSAGE if the entries name no session. */
export function parseSessionRequest(fields: Fields): SessionRequest {
  return { session: integerField(fields, "session", 1) };
}

/** @throws BAD_MESSAGE if the fields are not a valid `enter` or `exit`. */
export function parseMembershipRequest(fields: Fields): MembershipRequest {
  const exits = fields["exits"] === undefined ? 0 : integerField(fields, "exits");
  return { ...parseSessionRequest(fields), exits };
}

/** @throws EMPTY for no parameter; BAD_NAME, BAD_DTYPE, BAD_SHAPE or BAD_CONFIG for a wrong one. */
export function parseDeclareRequest(fields: Fields): DeclareRequest {
  const parameters = listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX);
  if (parameters.length === 0) {
    throw new PserverError("EMPTY", "declare: expected at least one parameter; received none");
  }
  return {
    ...parseSessionRequest(fields),
    epoch: integerField(fields, "epoch", 1),
    parameters: parameters.map(parseDeclaration),
  };
}

/** @throws as {@link parseDeclareRequest} does. */
export function parseCreateRequest(fields: Fields): CreateRequest {
  return { ...parseSessionRequest(fields), parameter: parseDeclaration(fields["parameter"]) };
}

/** @throws BAD_MESSAGE if the fields are not a valid finish. */
export function parseFinishRequest(fields: Fields): FinishRequest {
  const at = listField(fields, "at", SHARDS_MAX).map((value) => {
    const entry = asMap(value, "at");
    return { shard: integerField(entry, "shard", 0, SHARDS_MAX - 1), ...parsePosition(entry) };
  });
  return { ...parseSessionRequest(fields), ...parseTarget(fields), at };
}

/** Reads the epoch of a `finish` or `abort` and, if it concerns one parameter, the name. */
export function parseTarget(fields: Fields): { epoch: number; parameter?: string } {
  const epoch = integerField(fields, "epoch", 1);
  if (fields["parameter"] === undefined) return { epoch };
  return { epoch, parameter: checkedName(fields, "parameter") };
}

/** @throws BAD_MESSAGE if the fields are not a valid status request. */
export function parseStatusRequest(fields: Fields): StatusRequest {
  if (fields["names"] !== undefined) {
    const names = listField(fields, "names", PARAMETERS_PER_REQUEST_MAX);
    return { names: names.map((name) => checkedName({ name }, "name")) };
  }
  if (fields["limit"] === undefined) return {};
  const limit = integerField(fields, "limit", 1, PARAMETERS_PER_REQUEST_MAX);
  return fields["after"] === undefined ? { limit } : { limit, after: textField(fields, "after") };
}

/** @throws BAD_MESSAGE if the fields are not a valid reply to `join`. */
export function parseJoinReply(fields: Fields): JoinReply {
  return {
    session: integerField(fields, "session", 1),
    made: textField(fields, "made", MADE_LENGTH_MAX),
    shards: integerField(fields, "shards", 1, SHARDS_MAX),
    leaseMs: integerField(fields, "leaseMs", 1),
    journal: journalField(fields),
    synchronization: toSynchronization(fields["synchronization"]),
    maxPayloadBytes: integerField(fields, "maxPayloadBytes", 1),
  };
}

/** @throws BAD_MESSAGE if the fields are not a valid reply to `enter`. */
export function parseEnterReply(fields: Fields): EnterReply {
  return { revision: integerField(fields, "revision", 1) };
}

/** @throws BAD_MESSAGE if the fields are not a valid reply to `begin` or `create`. */
export function parseBeginReply(fields: Fields): BeginReply {
  return {
    selected: flagField(fields, "selected"),
    state: stateField(fields),
    epoch: integerField(fields, "epoch"),
    by: textField(fields, "by"),
  };
}

/** Reads the parameters in a reply to `declare`, `create` or `status`; null where there is none. */
export function parseParameters(fields: Fields): (ParameterInfo | null)[] {
  return listField(fields, "parameters", PARAMETERS_PER_REQUEST_MAX).map((value) =>
    value === null || value === undefined ? null : parseParameterInfo(value),
  );
}

/** @throws BAD_MESSAGE if the fields are not a valid reply to `status`. */
export function parseStatusReply(fields: Fields): StatusReply {
  return {
    state: stateField(fields),
    epoch: integerField(fields, "epoch"),
    by: textField(fields, "by"),
    shards: integerField(fields, "shards", 1, SHARDS_MAX),
    parameters: parseParameters(fields),
    more: flagField(fields, "more"),
    at: listField(fields, "at", SHARDS_MAX).map((entry) => parsePosition(asMap(entry, "at"))),
  };
}

/** Reads a parameter in a reply; @throws BAD_MESSAGE and the like if it is malformed. */
export function parseParameterInfo(value: unknown): ParameterInfo {
  const fields = asMap(value, "parameter");
  const layout = layoutFromWire(fields["layout"]);
  return {
    ...parseDeclaration(fields),
    epoch: integerField(fields, "epoch", 1),
    ready: flagField(fields, "ready"),
    layout,
    firstNumber: integerField(fields, "firstNumber", 1, BLOCK_NUMBER_MAX - (layout.blocks - 1)),
  };
}

function parseDeclaration(value: unknown): Declaration {
  const fields = asMap(value, "parameter");
  return {
    name: checkedName(fields, "name"),
    dtype: dtypeField(fields),
    shape: checkShape(listField(fields, "shape", 64)),
    config: configField(fields),
  };
}

/** Reads a configuration in any of the forms that callers may give. */
function configField(fields: Fields): ParameterConfig {
  const value = fields["config"];
  const isBytes = typeof value === "string" || value instanceof Uint8Array;
  return toSharedConfig(isBytes ? value : mapField(fields, "config"));
}

/** Reads the parameter's name under `key`; @throws BAD_NAME or BAD_MESSAGE if it is not valid. */
export function checkedName(fields: Fields, key: string): string {
  const name = fields[key];
  if (typeof name !== "string") return textField(fields, key);
  escapeName(name);
  return name;
}

function stateField(fields: Fields): LifecycleState {
  return wordField(fields, "state", ["uninitialized", "initializing", "ready"]);
}

function journalField(fields: Fields): "file" | "memory" {
  return wordField(fields, "journal", ["file", "memory"]);
}

/** A trainer that a shard remembers, with its session. */
export type TrainerSession = readonly [trainer: string, session: number];

/**
 * Reads a list of trainers with their sessions.
 * @throws BAD_MESSAGE, BAD_NAME and the like, also for more than fit into one.
 */
export function parseTrainerSessions(list: unknown): TrainerSession[] {
  const rows = listField({ trainers: list }, "trainers", TRAINERS_PER_MESSAGE_MAX);
  return rows.map((value): TrainerSession => {
    const row: Fields = { ...listField({ row: value }, "row", 2) };
    const trainer = textField(row, "0");
    escapeId(trainer);
    return [trainer, integerField(row, "1", 1)];
  });
}

/** Returns the entries of a request for the trainers after an id; "" asks from the first one on. */
export function trainersRequest(after: string): Fields {
  return { after };
}

/** Reads the id after which an owner is asked for trainers; @throws BAD_MESSAGE. */
export function parseTrainersRequest(fields: Fields): string {
  return textField(fields, "after");
}

/** Some of the trainers that a shard remembers. */
export interface RememberedTrainers {
  /** The list is the last one if it is not full. */
  readonly trainers: readonly TrainerSession[];
  /** The highest session that hosts have given out, as they have told the shard. */
  readonly toldUpTo: number;
}

/** Returns the entries of the reply. */
export function trainersReply(remembered: RememberedTrainers): Fields {
  return { ...remembered };
}

/** Reads the trainers in a reply; @throws as {@link parseTrainerSessions}. */
export function parseTrainersReply(fields: Fields): RememberedTrainers {
  const toldUpTo = integerField(fields, "toldUpTo");
  return { trainers: parseTrainerSessions(fields["trainers"]), toldUpTo };
}

/**
 * Asks page after page for every parameter of a job, ready or not, in the order of names, and for the job's
 * state. Positions are the latest of all pages, because each page covers only its own parameters; everything
 * else is from the last page.
 * @throws what `ask` throws.
 */
export async function readStatusPages(
  ask: (request: StatusRequest) => Promise<StatusReply>,
): Promise<{ status: StatusReply; parameters: ParameterInfo[] }> {
  const parameters: ParameterInfo[] = [];
  let at: readonly Position[] = [];
  for (;;) {
    const after = parameters.at(-1)?.name;
    const limit = PARAMETERS_PER_REQUEST_MAX;
    const status = await ask(after === undefined ? { limit } : { limit, after });
    const page = status.parameters.filter((info) => info !== null);
    parameters.push(...page);
    const earlier = at;
    if (status.at.length > 0) at = status.at.map((own, i) => laterPosition(earlier[i], own));
    if (!status.more || page.length === 0) return { status: { ...status, at }, parameters };
  }
}
