import { type Fields, type Position } from "../../protocol/index.ts";
import type { Leases, LeaseView } from "../job/leases.ts";
import type { Owners } from "../job/owners-client.ts";
import { type BucketDeps, BucketEntry } from "./lock.ts";
import { type MembersDeps } from "./members.ts";
/**
 * Hands out the session numbers of a job: each is given once, and later ones are higher. Requests that come while a
 * write is under way share the next write, so that many trainers may join at once. The host limits how many wait by
 * limiting the requests that it works on.
 */
export declare class SessionCounter {
    #private;
    constructor(deps: BucketDeps);
    /** Returns the next number. @throws as {@link BucketEntry.change} does. */
    next(): Promise<number>;
    /** Returns the last number given; 0 before the first. */
    last(): Promise<number>;
}
/** A trainer's latest session. The entry outlives the lease, so that no older session comes back. */
export interface TrainerEntry {
    readonly session: number;
    readonly token: string;
    readonly ended: boolean;
    /** How often it has exited the steps, as its last `exit` in this session tells; absent for 0. */
    readonly exits?: number;
}
/** Makes the entry under a trainer's key. */
export declare function trainerEntry(key: string): BucketEntry<TrainerEntry | undefined>;
/** Dependencies of sessions, and of membership in steps. */
export interface SessionDeps extends MembersDeps {
    readonly hostId: string;
    readonly maxPayloadBytes: number;
    readonly leases: Leases;
    /** Watches the trainers' leases. */
    readonly view: LeaseView;
    readonly owners: Owners;
    readonly counter: SessionCounter;
}
/**
 * Starts a session, or returns the one that the same process has started already. Earlier sessions of the trainer no
 * longer keep step.
 * @throws SUPERSEDED if a newer session has joined at the same time, JOB_DAMAGED if the counter of sessions has
 * fallen back.
 */
export declare function join(deps: SessionDeps, trainer: string, fields: Fields): Promise<Fields>;
/** Renews the trainer's lease, or claims it again if it ran out. */
export declare function renew(deps: SessionDeps, trainer: string, fields: Fields): Promise<Fields>;
/** Ends a session: its initialization can be taken over at once, and it no longer keeps step. */
export declare function leave(deps: SessionDeps, trainer: string, fields: Fields): Promise<Fields>;
/**
 * Returns the session in a request if it is the trainer's latest and has not ended.
 * @throws as {@link requireTrainer}.
 */
export declare function requireSession(deps: SessionDeps, trainer: string, fields: Fields): Promise<number>;
/**
 * Returns the trainer's entry if the session in a request is its latest and has not ended.
 * @throws SUPERSEDED if a newer session has joined, REJOIN if it has ended or was never begun.
 */
export declare function requireTrainer(deps: SessionDeps, trainer: string, fields: Fields): Promise<TrainerEntry>;
/**
 * Does as {@link requireSession}, and renews the lease: a trainer that asks to be selected must not be replaced at
 * once because it was slow to renew.
 */
export declare function requireLiveSession(deps: SessionDeps, trainer: string, fields: Fields): Promise<number>;
/**
 * Whether a session counts as dead: a newer session of its trainer has joined, it has left, or its
 * lease is lost and still not held.
 */
export declare function isGone(deps: SessionDeps, holder: {
    readonly trainer: string;
    readonly session: number;
}): Promise<boolean>;
/** Renews the lease of a trainer's session, or claims it. @throws SUPERSEDED if a newer session holds it, BUSY. */
export declare function holdLease(deps: SessionDeps, trainer: string, session: number): Promise<void>;
/** Result of {@link endSessions}. */
export interface EndedSessions {
    /** How many sessions of the job are live. */
    readonly live: number;
    /** Position of the last record that was appended to each journal. */
    readonly at: ReadonlyMap<number, Position>;
}
/**
 * Tells these shards' journals which sessions have ended, so that they forget their trainers, and makes them forget
 * trainers whose sessions no host has given, since anybody can name a number.
 *
 * The shards are first asked for the trainers that they remember. A trainer that they name had its session, if a host
 * gave it one, before the sweep reads which numbers have been given. So no trainer that joins during the sweep is
 * forgotten.
 * @throws JOB_DAMAGED, before any journal is written, if the counter has fallen back.
 */
export declare function endSessions(deps: SessionDeps, shards: readonly number[]): Promise<EndedSessions>;
/** Compares the counter with every other entry of the job that names a session. @throws JOB_DAMAGED */
export declare function checkCounter(deps: SessionDeps): Promise<void>;
//# sourceMappingURL=sessions.d.ts.map