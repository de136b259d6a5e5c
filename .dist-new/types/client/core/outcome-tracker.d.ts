import type { Answers, Outcome } from "../../protocol/messages/outcomes.ts";
import { type Position } from "../../protocol/messages/position.ts";
import { type Positions, type ShardWindow } from "./shard-window.ts";
import { type BlockUpdate, type Failure } from "./update-call.ts";
/** Commands of the tracker to the I/O layer. */
export interface OutcomeCommands {
    /**
     * Asks the owner of a shard for the outcomes of these numbers; it answers once it has folded up to this
     * position.
     */
    askOutcomes(shard: number, session: number, numbers: readonly number[], at: Position): void;
}
/** How long an answer may take before it is asked for, and the time between two requests for it. */
export declare const ASK_AFTER_MS = 1000;
/** What the outbox does with an open record for the tracker. */
export interface RecordSettler {
    /** Settles a record, whose outcome is known. */
    settle(update: BlockUpdate, outcome: Outcome): void;
    /** Gives a record up: its outcome will not be known. */
    giveUp(update: BlockUpdate, reason: Failure): void;
    /** Called when a host says that the session is over. */
    endSession(failure: Failure): void;
}
/** Dependencies of OutcomeTracker. */
interface OutcomeTrackerDeps {
    readonly positions: Positions;
    readonly commands: OutcomeCommands;
    readonly settler: RecordSettler;
}
/**
 * Takes the answers of shard owners, and asks for answers that do not come: an owner that has just taken a
 * shard over folds records without answering, and answers that are sent while the client is disconnected are
 * lost.
 */
export declare class OutcomeTracker {
    #private;
    constructor(deps: OutcomeTrackerDeps);
    /** Takes answers of this session from the owner of a shard; `isReply` if they were asked for. */
    take(window: ShardWindow | undefined, answers: Answers, isReply: boolean): void;
    /** Asks for the outcomes that are due in a shard, in one message. */
    ask(window: ShardWindow, session: number, nowMs: number): void;
    /** Takes an error in answer to a request for outcomes; `retryAfterMs` is how long it says to wait. */
    askFailed(window: ShardWindow, failure: Failure, retryAfterMs: number): void;
}
export {};
//# sourceMappingURL=outcome-tracker.d.ts.map