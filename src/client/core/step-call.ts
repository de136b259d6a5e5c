import type { Failure } from "./failure.ts";

/** What a call of the step machine does. */
export type StepCallKind = "gradients" | "end" | "exit";

/** Where a call is; each phase but `queued`, `draining` and `over` waits for the shell. */
export type StepPhase =
  /** Waits for its turn. */
  | "queued"
  /** Asks to become a member. */
  | "entering"
  /** Asks every shard how far it is, as a new member. */
  | "arriving"
  /** Tells shards that were behind the largest closed step that it has ended as much. */
  | "catching-up"
  /** Asks whether the step before its own has closed where its gradients go. */
  | "opening"
  /** Tells shards that it has ended the steps which have closed without it. */
  | "skipping"
  /** Its gradients are under way. */
  | "sending"
  /** Waits until the gradients of other calls have their outcome. */
  | "draining"
  /** Tells every shard that it has ended its step. */
  | "ending"
  | "exiting"
  | "over";

/** A call under way in the step machine. */
export interface StepCall {
  /** Chosen by the shell. */
  readonly id: number;
  readonly kind: StepCallKind;
  /** The shards that its gradients go to, each once. */
  readonly shards: readonly number[];
  /** Whether it ends the step after its gradients. */
  readonly endsStep: boolean;
  phase: StepPhase;
  /** Whether its gradients count among those under way. */
  isSending: boolean;
  /** Whether its gradients have been sent a second time, because a shard found them too early. */
  isResent: boolean;
  /** Blocks whose gradients came too late. */
  late: number;
  /** Revision of the members and session under which it has entered. */
  revision: number;
  session: number;
  /** The step that it waits for, or whose clock it sends. */
  step: number;
  /** Answers that are missing, the least and the largest step answered, and the first failure. */
  missing: number;
  least: number;
  most: number;
  failure: Failure | undefined;
}

/** A call that has not begun. */
export function newStepCall(
  id: number,
  kind: StepCallKind,
  shards: readonly number[] = [],
  endsStep = true,
): StepCall {
  return {
    id,
    kind,
    shards: [...new Set(shards)],
    endsStep,
    phase: "queued",
    isSending: false,
    isResent: false,
    late: 0,
    revision: 0,
    session: 0,
    step: 0,
    missing: 0,
    least: 0,
    most: 0,
    failure: undefined,
  };
}
