import type { Position } from "../../protocol/position.ts";
import type { BlockUpdate, UpdateCall } from "./block-update.ts";
import type { Failure } from "./failure.ts";

/**
 * What the outbox has its shell do. Every command is given synchronously while an event is being taken,
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
