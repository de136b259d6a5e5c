import type { Position } from "../../protocol/messages/position.ts";
import type { BlockUpdate, Failure, UpdateCall } from "./block-update.ts";

import type { SessionRequest } from "./session-core.ts";
import type { StepCall } from "./steps-core.ts";

/**
 * Commands of the outbox to its shell. Every command is given synchronously while an event is being taken,
 * and returns nothing. None may raise an event before it returns, but for `publish` and `repeat`, which
 * report their failure by `publishFailed`.
 */
export interface OutboxCommands {
  /**
   * Makes the message of an update under its number `update.n` in this session, and publishes it with the
   * token of `update.slot` and `update.serial`. `done` is what the message says that the trainer needs
   * no outcome of any more. The shell keeps the message until `release`.
   */
  publish(update: BlockUpdate, session: number, done: number): void;
  /** Publishes the kept message of an update again, unchanged, with the same token. */
  repeat(update: BlockUpdate): void;
  /** Lets go of the kept message; its memory can be used again at once if `isReusable`. */
  release(update: BlockUpdate, isReusable: boolean): void;
  /** Asks the owner of a shard for the outcomes of these numbers once it has applied this position. */
  askOutcomes(shard: number, session: number, numbers: readonly number[], at: Position): void;
  /** Raises `tick` at this time. Given only while no tick is set. */
  setTimer(atMs: number): void;
}

/** What the outbox tells the rest of the core. Told at the end of an event, when its state is whole. */
export interface OutboxListener {
  /** Every update of the call has its fate. */
  callOver(call: UpdateCall, nowMs: number): void;
  /** A host says that the session is over: SUPERSEDED or REJOIN. */
  sessionOver(failure: Failure, nowMs: number): void;
}

/** What the positions tell the rest of the core. */
export interface PositionsListener {
  /** The journal that `seen` is a position of has been replaced; it is the last one seen of it. */
  journalReplaced(shard: number, seen: Position): void;
}

/** Commands of the session to its shell. All return before their result is known. */
export interface SessionCommands {
  /** Joins under a token of its own within this time: raises `joined` or `rejoinFailed`. */
  rejoin(timeoutMs: number): void;
  /** Renews the lease within this time: raises `renewed` or `renewFailed`. */
  renew(timeoutMs: number): void;
  /** Raises `renewalDue` at this time instead of any set before; Infinity: never. */
  setRenewal(atMs: number): void;
  /** Asks a request again under the current session. */
  repeatRequest(request: SessionRequest): void;
  /** A request has failed for good. */
  failRequest(request: SessionRequest, failure: Failure): void;
  /** The client can do nothing more: a newer session has joined, or joining is refused. */
  loseClient(failure: Failure): void;
}

/** What the session tells the rest of the core. */
export interface SessionListener {
  /** The session has ended: nothing may be published under it. */
  sessionEnded(): void;
  /** A session has begun, the first or a later one. */
  sessionBegan(session: number, nowMs: number): void;
}

/** What the steps have their shell do. All commands return before anything of them is known. */
export interface StepsCommands {
  /** Asks hosts to make the trainer a member: raises `entered` or `failed`. */
  enter(call: StepCall): void;
  /** Asks hosts to end the membership: raises `exited` or `failed`. */
  exitMembers(call: StepCall): void;
  /**
   * Asks a shard how far it is once it knows this revision of the members and has closed the step that
   * `wantedStep` names, at each repeat anew: raises `stepAnswered` or `askFailed`.
   */
  askStep(call: StepCall, shard: number, revision: number): void;
  /** Sends the gradients of the call, in this step, 0 for none: raises `gradientsSent` or `failed`. */
  sendGradients(call: StepCall, step: number, countsLate: boolean): void;
  /** Tells every shard that the trainer has ended this step: raises `clocksSent` or `failed`. */
  sendClocks(call: StepCall, step: number): void;
  /** The call has succeeded. */
  stepCallDone(call: StepCall): void;
  /** The call has failed. */
  stepCallFailed(call: StepCall, failure: Failure): void;
}
