import type { Synchronization } from "../../protocol/config/index.ts";
import type { MembersRecord } from "../../protocol/messages/host-records.ts";
/** The step table of a shard in the state of a snapshot. */
export interface SavedSteps {
    /** Revision of the members; 0 before the first `members` record. */
    readonly revision: number;
    readonly started: boolean;
    /** Last closed step. */
    readonly closed: number;
    /** The members and the last step that each has ended, ascending by id. */
    readonly members: readonly (readonly [trainer: string, clock: number])[];
    /** Senders of gradients of the open step, ascending. */
    readonly participants: readonly string[];
}
/** A step that the last record has closed. */
export interface ClosedStep {
    /** Divisor of the sums of its gradients. */
    readonly divisor: number;
}
/** Progress of the steps of a shard. */
export interface StepProgress {
    readonly synchronization: Synchronization;
    readonly revision: number;
    readonly started: boolean;
    readonly closed: number;
    /** Number of members. */
    readonly memberCount: number;
    /** Returns the last step that a member has ended; undefined for anybody else. */
    clockOf(trainer: string): number | undefined;
    /** Returns the first `limit` members, ascending, that have not ended the step after {@link closed}. */
    waitingFor(limit: number): string[];
}
/**
 * Holds the members of a shard's steps, the last step that each has ended, and the last closed step. It is part of
 * the fold, so it is a pure function of the records.
 *
 * A step closes when enough members have ended it: all of them, or all but the backups. A new member starts at the
 * last closed step; a removed one is no longer waited for.
 */
export declare class StepTable implements StepProgress {
    #private;
    /** Synchronization of the job; must be set before any other call. */
    set synchronization(synchronization: Synchronization);
    get synchronization(): Synchronization;
    get revision(): number;
    get started(): boolean;
    get closed(): number;
    get memberCount(): number;
    clockOf(trainer: string): number | undefined;
    waitingFor(limit: number): string[];
    /** Replaces the members if the revision is higher than the present one; else does nothing. */
    takeMembers({ revision, started, trainers }: MembersRecord): void;
    /**
     * Notes that a trainer has ended all steps up to this one; a lower step changes nothing. `leadSteps` is how far the
     * step may be ahead of the last closed step or of the trainer's own clock.
     * @throws NOT_MEMBER, BAD_VALUE for a step too far ahead, or UNSUPPORTED in a job whose trainers do not keep step.
     */
    takeClock(trainer: string, step: number, leadSteps: number): void;
    /**
     * Passes if a trainer may send a gradient of this step now.
     * @throws BAD_VALUE if it names a step outside `sync`, or none in `sync`; in `sync` also NOT_MEMBER,
     * LATE if its step has closed, EARLY if the one before has not.
     */
    checkGradient(trainer: string, step: number | undefined): void;
    /** Notes the sender of a gradient that was added to the open step. */
    noteGradient(trainer: string): void;
    /**
     * Closes the open step if enough members have ended it, and also all further steps that enough have ended: no
     * gradient of those can have been taken. Undefined if no step closes.
     */
    close(): ClosedStep | undefined;
    /** Returns the state to save; equal tables give equal states. */
    save(): SavedSteps;
    /**
     * Restores what {@link save} returned.
     * @throws SNAPSHOT_DAMAGED if no sequence of records leads to this state.
     */
    restore(state: SavedSteps): void;
}
//# sourceMappingURL=step-table.d.ts.map