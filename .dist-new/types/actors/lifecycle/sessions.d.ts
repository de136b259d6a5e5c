import { type Fields, type Position } from "../../protocol/index.ts";
import type { Leases, LeaseView } from "../job/leases.ts";
import type { Owners } from "../job/owners-client.ts";
import { type KvEntry } from "../journal/kv-bucket.ts";
import { Counter } from "./counter.ts";
import type { JoinedTrainers } from "./joined-trainers.ts";
import { type BucketDeps, BucketEntry } from "./lock.ts";
import { type MembersDeps } from "./members.ts";
/** The last session number given. */
export declare const LAST_GIVEN: BucketEntry<number>;
/** The session up to which a sweep has looked for ended ones, or is about to; 0 before the first sweep. */
export declare const SWEPT: BucketEntry<number>;
/** Makes the counter of the sessions of a job. */
export declare function sessionCounter(deps: BucketDeps): Counter;
/** Reads the entry of one session number; 0 if there is none. @throws BAD_VERSION, JOB_DAMAGED. */
export declare function parseNumber(stored: KvEntry | undefined, key: string): number;
/** A trainer's latest session. The entry outlives the lease, so that no older session comes back. */
export interface TrainerEntry {
    readonly session: number;
    readonly token: string;
    readonly ended: boolean;
    /** How often it has exited the steps, as its last `exit` in this session tells; absent for 0. */
    readonly exits?: number;
}
/**
 * Reads the entry of a trainer; undefined if there is none.
 * @throws BAD_VERSION for an entry of another format, JOB_DAMAGED for a damaged one.
 */
export declare function parseTrainer(stored: KvEntry | undefined, key: string): TrainerEntry | undefined;
/** Makes the entry under a trainer's key. */
export declare function trainerEntry(key: string): BucketEntry<TrainerEntry | undefined>;
/** Dependencies of sessions, and of membership in steps. */
export interface SessionDeps extends MembersDeps {
    readonly hostId: string;
    readonly maxPayloadBytes: number;
    /** Asks the broker when the job was made that it holds now; undefined if it holds none of this name. */
    readonly madeNow: () => Promise<string | undefined>;
    readonly leases: Leases;
    /** Watches the trainers' leases. */
    readonly view: LeaseView;
    readonly owners: Owners;
    readonly counter: Counter;
    readonly joined: JoinedTrainers;
}
/**
 * Checks that a trainer which has joined before has joined this very job.
 * @throws JOB_REPLACED if it was a former job of this name; NO_HOST if this host itself is of a former one.
 */
export declare function requireSameJob({ job: { job, made }, madeNow }: Pick<SessionDeps, "job" | "madeNow">, trainer: string, fields: Fields): Promise<void>;
/**
 * Starts a session, or returns the one that the same process has started already. Earlier sessions of the trainer no
 * longer keep step.
 * @throws SUPERSEDED if a newer session has joined at the same time, JOB_DAMAGED if the counter of sessions has
 * fallen back, TOO_MANY_TRAINERS if it is a new trainer and there is no place for it.
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