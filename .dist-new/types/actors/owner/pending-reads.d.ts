import { type Fallback, type Fields, type Position, PserverError } from "../../protocol/index.ts";
import { type Clock } from "../concurrent.ts";
import type { Shard } from "../fold/shard.ts";
import type { StepProgress } from "../fold/step-table.ts";
import type { Asker } from "./responder.ts";
/** What to do with a request now. */
export type Evaluation = {
    readonly kind: "wait";
} | {
    readonly kind: "answer";
} | {
    readonly kind: "refuse";
    readonly error: PserverError;
};
/** A request that may have to wait until the fold has progressed. */
interface PendingRead<Wanted> {
    /** Key of the trainer or host that asks. */
    readonly from: string;
    readonly wanted: Wanted;
    readonly waitMs: number;
    /** Called once, now or later, unless {@link refuse} is called. */
    readonly run: () => void;
    readonly refuse: (error: PserverError) => void;
}
/** A served shard as the parts that answer its requests see it. */
export interface AnsweredShard {
    readonly number: number;
    readonly shard: Shard;
    readonly positions: PositionQueue;
    readonly steps: StepQueue;
    /** Position of the fold. */
    readonly position: Position;
    /** Records that the shard has lost with journals that were replaced. */
    readonly fallbacks: readonly Fallback[];
    /** Makes a snapshot of this position or later unless there is one. */
    snapshot(at: Position): Promise<Fields>;
    /** Makes the reply to `status`. */
    status(): Fields;
    /** Returns the free memory of the host. */
    memory(): Fields;
}
/** A position that a request needs, and how long the request may wait for it. */
export type Waiting = Position & {
    readonly waitMs: number;
};
/** Lets requests wait until the fold of a shard has reached what they need. */
export declare class ReadConditions {
    #private;
    constructor(served: AnsweredShard);
    /** Calls `run` once the fold has reached a position; calls `refuse` if it does not in time or cannot. */
    afterPosition({ from }: Asker, { generation, seq, waitMs }: Waiting, run: () => void, refuse: (error: PserverError) => void): void;
    /** Calls `run` once the fold has reached a position and then a step, both within `waitMs`. */
    afterStep(asker: Asker, request: Waiting, wanted: WantedStep, run: () => void, refuse: (error: PserverError) => void): void;
    /** Calls `run` once the fold has reached the position and the step that a read of values names. */
    afterBoth(asker: Asker, request: Waiting & {
        readonly step?: number;
    }, run: () => void, refuse: (error: PserverError) => void): void;
}
/**
 * Asks the broker for the last sequence of a generation, which shows whether a wanted position is lost. `tell` gets
 * undefined if the broker does not say.
 */
type QueryLastSeq = (wanted: Position, tell: (lastSeq: number | undefined) => void) => void;
/** A position that a request needs, and the asker. */
export interface WantedPosition extends Position {
    /** Id of the trainer or host. */
    readonly asker: string;
}
/** Dependencies of {@link PositionQueue}. */
interface PositionQueueDeps {
    readonly shard: number;
    /** Returns the records that the shard has lost with journals that were replaced. */
    readonly fallbacks: () => readonly Fallback[];
    readonly lastSeq: QueryLastSeq;
    /** Called when an asker gets JOURNAL_LOST because the journal ends before its position. */
    readonly onLost: (error: PserverError, wanted: WantedPosition) => void;
    readonly clock?: Clock;
}
/** Requests that are answered once the fold of a shard has reached a position. Does no I/O. */
export declare class PositionQueue {
    #private;
    constructor(deps: PositionQueueDeps);
    /**
     * Runs `run` once the fold, now at `folded`, has reached the wanted position. Calls `refuse` with
     * TIMEOUT after `waitMs`, JOURNAL_REPLACED for a position in an old journal, JOURNAL_LOST when the
     * journal is known to end before the position, or BUSY if too many requests are pending.
     */
    at(folded: Position, { wanted, ...read }: PendingRead<WantedPosition>): void;
    /** Answers requests for positions up to `folded`, and refuses those for an old journal. */
    advance(folded: Position): void;
    /** Refuses all pending requests. */
    refuseAll(error: PserverError): void;
}
/** State of a shard's steps that a request needs. */
export interface WantedStep {
    /** Revision of the members that must be known. */
    readonly revision: number;
    /** Step that must have closed. */
    readonly step: number;
    readonly trainer: string;
    /** Whether it asks for values; a trainer that is no member may wait for these, too. */
    readonly isRead: boolean;
}
/** Requests that are answered once a step of a shard has closed. Does no I/O. */
export declare class StepQueue {
    #private;
    constructor(shard: number, clock?: Clock);
    /**
     * Runs `run` once the steps have progressed as wanted. Calls `refuse` with TIMEOUT after `waitMs`, naming the
     * trainers waited for; with the error of {@link evaluateStep}; or with BUSY if too many requests are pending.
     * `progress` is a live view.
     */
    at(progress: StepProgress, { wanted, ...read }: PendingRead<WantedStep>): void;
    /** Answers or refuses requests after records have been folded. */
    advance(): void;
    /** Refuses all pending requests. */
    refuseAll(error: PserverError): void;
}
/**
 * Decides whether a request is answered, waits, or is refused: with UNSUPPORTED in an `async` job, or with NOT_MEMBER
 * if the step might never close because of the asker. A trainer waits only for steps that it has ended. If it is no
 * member, nobody waits for it. If the shard's clock of it is lower, it was removed and has entered again without
 * knowing, by a request that came late: then all others wait for it.
 */
export declare function evaluateStep(wanted: WantedStep, progress: StepProgress): Evaluation;
export {};
//# sourceMappingURL=pending-reads.d.ts.map