import { type Message } from "../codec.ts";
import { type Synchronization } from "../config/index.ts";
import type { Layout } from "../layout.ts";
import { type Declaration, type TrainerSession } from "./lifecycle-messages.ts";
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
/** A host's journal record. */
export type HostRecord = RulesRecord | MembersRecord | DeclareRecord | DropRecord | FloorRecord | SessionsRecord | ForgetRecord;
/** Writes a host's record as a message. Lists go into its bytes, because a header has no space for them. */
export declare function encodeHostRecord(record: HostRecord): Uint8Array;
/**
 * Reads a host's record of a verb.
 * @throws BAD_MESSAGE and the like naming what is wrong.
 */
export declare function parseHostRecord(verb: HostRecord["verb"], message: Message): HostRecord;
/** Reads a parameter in a `declare` record or a saved state; @throws BAD_MESSAGE and the like. */
export declare function parseGranted(value: unknown): GrantedParameter;
//# sourceMappingURL=host-records.d.ts.map