import { type ErrorCode } from "../../protocol/errors.ts";
import type { SessionsRecord } from "../../protocol/messages/host-records.ts";
import type { TrainerSession } from "../../protocol/messages/lifecycle-messages.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import type { RecordHeader } from "../../protocol/messages/records.ts";
import type { Rules } from "./rules.ts";
/** A trainer and a number of its records. */
export type CountRow = readonly [trainer: string, records: number];
/**
 * Returns the outcome of a rejected record. The text is made well-formed, so that a snapshot restores the same
 * characters.
 */
export declare function rejection(n: number, seq: number, code: ErrorCode, message: string): Outcome;
/** Returns the outcome of a record before the first `rules`. */
export declare function noRules(n: number, seq: number): Outcome;
/** State of one trainer in a shard. */
export interface TrainerEntry {
    readonly session: number;
    /** The trainer never again sends a number up to this one; the outcomes up to it are forgotten. */
    readonly done: number;
    /** Outcomes of numbers above `done`, in the order of the journal. */
    readonly outcomes: ReadonlyMap<number, Outcome>;
    /** Number of the session's rejected records less its applied ones; never below 0. */
    readonly rejected: number;
}
/** Read access to the trainers that a shard remembers. */
export interface RememberedSessions {
    /** Highest session that hosts have reported as given out; 0 before the first report. */
    readonly floor: number;
    /**
     * Returns the first `count` trainers after this id, with their sessions, in order of the UTF-16 code units of the
     * ids.
     */
    after(id: string, count: number): TrainerSession[];
}
/**
 * Remembers the outcomes of each trainer's records, so that a repeated record gets the first answer.
 *
 * A record is admitted at most once. The outcome of an admitted record, applied or rejected, is noted and answered to
 * every repeat. A record that is not admitted does not change this table.
 */
export declare class TrainerTable implements RememberedSessions {
    #private;
    /** The highest session reported as given out; sessions up to it have ended, except for the live ones. */
    get floor(): number;
    /** The sessions up to the floor that have not ended, ascending. */
    get live(): number[];
    /** Number of trainers. */
    get count(): number;
    /** Lists the trainers with more rejected records than applied ones, in the order of {@link sorted}. */
    rejectedCounts(): [trainer: string, rejected: number][];
    /** Lists all entries by trainer, in order of the UTF-16 code units of the ids. */
    sorted(): [trainer: string, entry: TrainerEntry][];
    after(id: string, count: number): TrainerSession[];
    /**
     * Returns the answer to a record that is not admitted; undefined for one that is. The answer is the first outcome
     * of a repeat, or SETTLED, SUPERSEDED, REJOIN, QUOTA, WINDOW or TOO_MANY_TRAINERS. Only a first outcome and SETTLED
     * say anything about an earlier copy of the record.
     */
    answerUnlessAdmitted(trainer: string, header: RecordHeader, seq: number, rules: Rules): Outcome | undefined;
    /** Notes the outcome of an admitted record and forgets those up to its `done`. */
    note(trainer: string, header: RecordHeader, outcome: Outcome): void;
    /** Returns the outcome of one record, as of record `seq`; see `Shard.outcomes`. */
    outcome(trainer: string, session: number, n: number, seq: number, rules: Rules): Outcome;
    /** Ends every session up to `session`. The floor never falls. */
    raiseFloor(session: number): void;
    /**
     * Ends every session up to `upTo` that is not live, and forgets its trainer. An ended session never becomes live
     * again, not even by a delayed record that still lists it.
     */
    endSessions({ upTo, live }: Pick<SessionsRecord, "upTo" | "live">): void;
    /**
     * Forgets each of these trainers if it still has the session named with it. Unlike an ended session, that session
     * may send again.
     */
    forget(trainers: readonly TrainerSession[]): void;
    /** Restores {@link floor} and {@link live}; must precede {@link restore}. */
    restoreSessions(floor: number, live: readonly number[]): void;
    /** Moves all outcomes to record 0: the sequences of the journal start again at 1. */
    restartJournal(): void;
    /**
     * Restores a saved entry.
     * @throws SNAPSHOT_DAMAGED if no sequence of records leads to it.
     */
    restore(trainer: string, entry: TrainerEntry, rules: Rules): void;
}
/** Counts of senders to a shard and of their rejected and unreadable records. */
export interface Senders {
    /** Number of remembered trainers. */
    readonly trainers: number;
    /** Number of parameters that hosts have declared. */
    readonly declared: number;
    /** Number of records without a readable sender: damaged, malformed, or of another shard. */
    readonly unreadable: number;
    /** The trainers whose session has more rejected than applied records, with the difference. */
    readonly rejectedOf: readonly CountRow[];
    /** Numbers of unreadable records, by the trainer in their subjects. */
    readonly unreadableOf: readonly CountRow[];
}
/** Counts of unreadable records: in total, and for a limited number of trainers. */
export declare class UnreadableCounts {
    #private;
    /** Count over all senders. */
    get total(): number;
    /** Lists the counts by trainer, in order of the UTF-16 code units of the ids. */
    sorted(): CountRow[];
    /**
     * Counts one record, in total and for its trainer if known. Trainers beyond `trainersMax` have no
     * count of their own.
     */
    count(trainer: string | undefined, trainersMax: number): void;
    /** Restores saved counts. */
    restore(total: number, byTrainer: readonly CountRow[]): void;
}
//# sourceMappingURL=trainer-table.d.ts.map