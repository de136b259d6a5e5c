import type { Fields } from "../codec.ts";
import { type ParameterConfig, type Synchronization } from "../config/index.ts";
import type { Dtype } from "../dtypes.ts";
import { type Layout } from "../layout.ts";
import { type Position } from "./position.ts";
/**
 * Returns how many parameters one request can declare or ask for, so that neither the request nor its reply
 * exceeds `payloadBytesMax`, the largest message that the broker takes.
 */
export declare function parametersPerRequest(payloadBytesMax: number): number;
/** State of a job or of one parameter: the lifecycle machine's three states. */
export type LifecycleState = "uninitialized" | "initializing" | "ready";
/** Where the journals of a job stood: one position per shard, by shard number. */
export type ShardPositions = readonly Position[];
/** A request to join. `token` tells a repeat from a second process. */
export interface JoinRequest {
    readonly token: string;
}
/** Answer to `join`. */
export interface JoinReply {
    readonly session: number;
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
    readonly at: readonly (Position & {
        readonly shard: number;
    })[];
}
/** A parameter as hosts know it. `ready`: its initialization is finished. */
export interface ParameterInfo extends Declaration {
    readonly epoch: number;
    readonly ready: boolean;
    readonly layout: Layout;
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
export declare function parseJoinRequest(fields: Fields): JoinRequest;
/** @throws BAD_MESSAGE if the entries name no session. */
export declare function parseSessionRequest(fields: Fields): SessionRequest;
/** @throws BAD_MESSAGE if the fields are not a valid `enter` or `exit`. */
export declare function parseMembershipRequest(fields: Fields): MembershipRequest;
/** @throws EMPTY for no parameter; BAD_NAME, BAD_DTYPE, BAD_SHAPE or BAD_CONFIG for a wrong one. */
export declare function parseDeclareRequest(fields: Fields): DeclareRequest;
/** @throws as {@link parseDeclareRequest} does. */
export declare function parseCreateRequest(fields: Fields): CreateRequest;
/** @throws BAD_MESSAGE if the fields are not a valid finish. */
export declare function parseFinishRequest(fields: Fields): FinishRequest;
/** Reads the epoch of a `finish` or `abort` and, if it concerns one parameter, the name. */
export declare function parseTarget(fields: Fields): {
    epoch: number;
    parameter?: string;
};
/** @throws BAD_MESSAGE if the fields are not a valid status request. */
export declare function parseStatusRequest(fields: Fields): StatusRequest;
/** @throws BAD_MESSAGE if the fields are not a valid reply to `join`. */
export declare function parseJoinReply(fields: Fields): JoinReply;
/** @throws BAD_MESSAGE if the fields are not a valid reply to `enter`. */
export declare function parseEnterReply(fields: Fields): EnterReply;
/** @throws BAD_MESSAGE if the fields are not a valid reply to `begin` or `create`. */
export declare function parseBeginReply(fields: Fields): BeginReply;
/** Reads the parameters in a reply to `declare`, `create` or `status`; null where there is none. */
export declare function parseParameters(fields: Fields): (ParameterInfo | null)[];
/** @throws BAD_MESSAGE if the fields are not a valid reply to `status`. */
export declare function parseStatusReply(fields: Fields): StatusReply;
/** Reads a parameter in a reply; @throws BAD_MESSAGE and the like if it is malformed. */
export declare function parseParameterInfo(value: unknown): ParameterInfo;
/** Reads the parameter's name under `key`; @throws BAD_NAME or BAD_MESSAGE if it is not valid. */
export declare function checkedName(fields: Fields, key: string): string;
/** A trainer that a shard remembers, with its session. */
export type TrainerSession = readonly [trainer: string, session: number];
/**
 * Reads a list of trainers with their sessions.
 * @throws BAD_MESSAGE, BAD_NAME and the like, also for more than fit into one.
 */
export declare function parseTrainerSessions(list: unknown): TrainerSession[];
/** Returns the entries of a request for the trainers after an id; "" asks from the first one on. */
export declare function trainersRequest(after: string): Fields;
/** Reads the id after which an owner is asked for trainers; @throws BAD_MESSAGE. */
export declare function parseTrainersRequest(fields: Fields): string;
/** Some of the trainers that a shard remembers. */
export interface RememberedTrainers {
    /** The list is the last one if it is not full. */
    readonly trainers: readonly TrainerSession[];
    /** The highest session that hosts have given out, as they have told the shard. */
    readonly toldUpTo: number;
}
/** Returns the entries of the reply. */
export declare function trainersReply(remembered: RememberedTrainers): Fields;
/** Reads the trainers in a reply; @throws as {@link parseTrainerSessions}. */
export declare function parseTrainersReply(fields: Fields): RememberedTrainers;
/**
 * Asks page after page for every parameter of a job, ready or not, in the order of names, and for the job's
 * state. Positions are the latest of all pages, because each page covers only its own parameters; everything
 * else is from the last page.
 * @throws what `ask` throws.
 */
export declare function readStatusPages(ask: (request: StatusRequest) => Promise<StatusReply>): Promise<{
    status: StatusReply;
    parameters: ParameterInfo[];
}>;
//# sourceMappingURL=lifecycle-messages.d.ts.map