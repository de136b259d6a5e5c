import type { Synchronization } from "../../protocol/config/index.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { Deadline } from "../calls/calls.ts";
import { type Positions } from "../core/shard-window.ts";
import { type StepCall, type StepsCommands } from "../core/steps-core.ts";
import type { Failure } from "../core/update-call.ts";
import type { Requests } from "../wire/wire.ts";
import type { Session } from "./session.ts";
import { type UpdateSender } from "./update-sender.ts";
/** Dependencies of step requests. */
interface StepRequestDeps {
    readonly requests: Requests;
    readonly subjects: JobSubjects;
    readonly trainer: string;
    readonly positions: Positions;
}
/** Dependencies of Steps. */
interface StepsDeps extends StepRequestDeps {
    readonly session: Session;
    readonly sender: UpdateSender;
}
/** How the gradients of one call take part in the steps of the job. */
export interface StepPlace {
    /** The step they belong to; undefined unless the job is synchronous. */
    readonly step: number | undefined;
    /** Whether gradients that come after their step has closed are counted instead of failing the call. */
    readonly countsLate: boolean;
}
/** What became of the gradients of one call. */
export interface GradResult {
    /**
     * Blocks whose gradient was left out, because their step had closed before it came. This happens in a job
     * with backup trainers, or in the first step after this trainer has entered the job's steps.
     */
    readonly lateBlocks: number;
}
/** Sends the gradients of a call as `place` says. */
type SendGradients = (place: StepPlace) => Promise<{
    late: number;
}>;
/** Does the I/O of the step machine, for calls with deadlines. */
export declare class Steps implements StepsCommands {
    #private;
    constructor(options: StepsDeps);
    /** Steps this trainer has ended, those before it entered included. */
    get ended(): number;
    /** The step that must have closed before this trainer reads; undefined for none. */
    get readStep(): number | undefined;
    /** Tells the step machine that a session has begun. */
    sessionBegan(session: number, shards: number, synchronization: Synchronization): void;
    /** Tells the step machine that a shard has answered a read that waited for a step. */
    noteClosed(shard: number, step: number): void;
    /** Tells the step machine that a read was refused because the trainer is no longer a member. */
    lostPlace(): void;
    /** Tells the step machine that a shard has fallen back. */
    fellBack(shard: number): void;
    /**
     * Sends gradients to shards as part of the open step, and ends the step if `endStep` is true. After an
     * error the step is still open.
     * A trainer that has lost its place in the steps enters again, once in a call.
     * @throws what `send` throws; TIMEOUT naming members waited for; NOT_MEMBER or LATE if the step had taken a part of
     * the gradients when it closed without the trainer.
     */
    gradients(call: {
        readonly shards: readonly number[];
        readonly endStep: boolean;
    }, deadline: Deadline, send: SendGradients): Promise<GradResult>;
    /** Ends the open step, once its gradients are stored; see `Client.endStep`. */
    endStep(deadline: Deadline): Promise<void>;
    /** Takes part in no later step; see `Client.exitSteps`. */
    exit(deadline: Deadline): Promise<void>;
    enter(call: StepCall): void;
    exitMembers(call: StepCall): void;
    askStep(call: StepCall, shard: number, revision: number): void;
    sendGradients(call: StepCall, step: number, countsLate: boolean): void;
    sendClocks(call: StepCall, step: number): void;
    stepCallDone(call: StepCall): void;
    stepCallFailed(call: StepCall, failure: Failure): void;
}
export {};
//# sourceMappingURL=steps.d.ts.map