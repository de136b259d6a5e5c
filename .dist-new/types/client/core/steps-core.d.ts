import type { Synchronization } from "../../protocol/config/index.ts";
import type { Failure } from "./update-call.ts";
/** Commands of the step machine to its I/O layer. All return before their result is known. */
export interface StepsCommands {
    /** Asks hosts to make the trainer a member: raises `entered` or `failed`. */
    enter(call: StepCall): void;
    /** Asks hosts to end the membership: raises `exited` or `failed`. */
    exitMembers(call: StepCall): void;
    /**
     * Asks a shard which step it has closed. The shard answers once it knows this revision of the members and
     * has closed the step of `wantedStep`, which is read again for each repeat: raises `stepAnswered` or
     * `askFailed`.
     */
    askStep(call: StepCall, shard: number, revision: number): void;
    /** Sends the gradients of the call, in this step, 0 for none: raises `gradientsSent` or `gradientsFailed`. */
    sendGradients(call: StepCall, step: number, countsLate: boolean): void;
    /** Tells every shard that the trainer has ended this step: raises `clocksSent` or `failed`. */
    sendClocks(call: StepCall, step: number): void;
    /** Reports that the call has succeeded. */
    stepCallDone(call: StepCall): void;
    /** Reports that the call has failed. */
    stepCallFailed(call: StepCall, failure: Failure): void;
}
/**
 * A trainer's part in the steps of a `sync` or `ssp` job. The trainer enters at its first gradient, in the
 * step after the last one that any shard has closed.
 *
 * Calls have their turns in the order in which they came. A call keeps its turn until it is over, except that
 * gradients which do not end the step give it up as soon as they are under way.
 */
export declare class StepsCore {
    #private;
    constructor(commands: StepsCommands);
    /** Steps this trainer has ended, those before it entered included. */
    get ended(): number;
    /** The step that must have closed before this trainer reads; undefined for none. */
    get readStep(): number | undefined;
    /** Notes that a session has begun, in which the trainer is not a member yet. */
    sessionBegan(session: number, shards: number, synchronization: Synchronization): void;
    /** Notes that a shard has closed a step. */
    noteClosed(shard: number, step: number): void;
    /**
     * Notes that a shard has fallen back: steps that had closed there may be open again, and close only when
     * this trainer tells the shard again which steps it has ended. So the trainer enters again at its next
     * gradient; until then its reads wait for no step.
     */
    fellBack(shard: number): void;
    /**
     * Notes that a read was refused because the trainer is no longer a member, or was made one again without
     * its knowledge. It enters at its next gradient; until then its reads wait for no step.
     */
    lostPlace(): void;
    /** Begins a call. If it fails, the step that it was to end is still open. */
    begin(call: StepCall): void;
    /**
     * Ends a call at its deadline, or because its caller has aborted it. The requests of the I/O layer for it
     * fail by themselves.
     */
    endCall(call: StepCall, failure: Failure): void;
    /** Notes that the trainer is a member from this revision on. */
    entered(call: StepCall, revision: number): void;
    /** Notes that the trainer is no longer a member. */
    exited(call: StepCall): void;
    /** Returns the step to wait for in a request that is about to be published. */
    wantedStep(call: StepCall): number;
    /** Notes that a shard knows the members and has closed this step. */
    stepAnswered(call: StepCall, shard: number, step: number): void;
    /** Takes the failure of a request to a shard. */
    askFailed(call: StepCall, failure: Failure): void;
    /**
     * Notes that the gradients of a call have been applied, or stored if that is enough; `late` of them came
     * too late.
     */
    gradientsSent(call: StepCall, late: number): void;
    /** Notes that the clocks of `call.step` have been applied in every shard. */
    clocksSent(call: StepCall): void;
    /** Takes the failure of the gradients of a call, of which `taken` blocks are applied or may be. */
    gradientsFailed(call: StepCall, failure: Failure, taken: number): void;
    /** Takes the failure of a command. */
    failed(call: StepCall, failure: Failure): void;
}
/** What a call of the step machine does. */
export type StepCallKind = "gradients" | "end" | "exit";
/** Phases of a call; each but `queued`, `draining` and `over` waits for the I/O layer. */
type StepPhase = 
/** Waits for its turn. */
"queued"
/** Asks to become a member. */
 | "entering"
/** Asks every shard which step it has closed, as a new member. */
 | "arriving"
/** Tells shards that were behind the largest closed step that the trainer has ended as much. */
 | "catching-up"
/** Asks whether the step before its own has closed in the shards of its gradients. */
 | "opening"
/** Tells shards that the trainer has ended the steps that have closed without it. */
 | "skipping"
/** Its gradients are under way. */
 | "sending"
/** Waits until the gradients of other calls have their outcome. */
 | "draining"
/** Tells every shard that the trainer has ended its step. */
 | "ending" | "exiting" | "over";
/** A call under way in the step machine. */
export interface StepCall {
    /** Chosen by the I/O layer. */
    readonly id: number;
    readonly kind: StepCallKind;
    /** The shards that its gradients go to, each once. */
    readonly shards: readonly number[];
    /** Whether it ends the step after its gradients. */
    readonly endsStep: boolean;
    phase: StepPhase;
    /** Whether its gradients count among those under way. */
    isSending: boolean;
    /** Whether its gradients have been sent again, because they were too early for a shard. */
    isResent: boolean;
    /** The failure by which it lost its place in the steps, after which it has entered again. */
    placeLost: Failure | undefined;
    /** The step in which its gradients were sent last, and whether some of them were taken, or may have been. */
    sentIn: number;
    isTaken: boolean;
    /** The step that it was ending when it lost its place; 0 for none. */
    ends: number;
    /** Blocks whose gradients came too late. */
    late: number;
    /** Revision of the members, and session, under which the trainer has entered. */
    revision: number;
    session: number;
    /** The step that it waits for, or whose clock it sends. */
    step: number;
    /** Missing answers, the least and the largest step in the answers, and the first failure. */
    missing: number;
    least: number;
    most: number;
    failure: Failure | undefined;
}
/** Makes a call that has not begun. */
export declare function newStepCall(id: number, kind: StepCallKind, shards?: readonly number[], endsStep?: boolean): StepCall;
export {};
//# sourceMappingURL=steps-core.d.ts.map