import type { Answers, Outcome } from "../../protocol/messages/outcomes.ts";
import type { Position } from "../../protocol/messages/position.ts";
import { type OutcomeCommands, type RecordSettler } from "./outcome-tracker.ts";
import { type Positions } from "./shard-window.ts";
import { type BlockUpdate, type Failure, type UpdateCall } from "./update-call.ts";
/**
 * Commands of the outbox to its I/O layer. They are called while the outbox takes an event, and return
 * nothing. None may raise an event before it returns, except that `publish` and `repeat` report their failure
 * by `publishFailed`.
 */
export interface OutboxCommands extends OutcomeCommands {
    /**
     * Makes the message of an update under its number `update.n` in this session, and publishes it with the
     * token of `update.slot` and `update.serial`. `done` stands in the message: the number up to which the
     * trainer needs no outcomes any more. The I/O layer keeps the message until `release`.
     */
    publish(update: BlockUpdate, session: number, done: number): void;
    /** Publishes the kept message of an update again, unchanged, with the same token. */
    repeat(update: BlockUpdate): void;
    /** Releases the kept message; its memory can be used again at once if `isReusable`. */
    release(update: BlockUpdate, isReusable: boolean): void;
    /**
     * Sends a PING; raises `read` with this number when it is answered. Called only while no PING is without an answer on
     * the present connection.
     */
    ping(sendNumber: number): void;
    /** Raises `tick` at this time. Called only while no tick is set. */
    setTimer(atMs: number): void;
}
/**
 * What the outbox tells the rest of the core, at the end of an event, when the outbox's state is consistent.
 */
export interface OutboxListener {
    /** Called when every update of the call has its fate. */
    callOver(call: UpdateCall, nowMs: number): void;
    /** Called when a host says that the session is over: SUPERSEDED or REJOIN. */
    sessionOver(failure: Failure, nowMs: number): void;
}
/** Dependencies of Outbox. */
interface OutboxDeps {
    readonly commands: OutboxCommands;
    readonly listener: OutboxListener;
    readonly positions: Positions;
    /** Bytes of elements that may be without a PubAck, however fast the link is. */
    readonly inFlightBytesMax: number;
    /** Numbers of one shard that may be open. */
    readonly windowRecords: number;
}
/**
 * Publishes journal records and learns what became of them. It reads no clock: events that need the time
 * carry it as `nowMs`.
 *
 * A waiting update becomes a message only when both windows admit it: that of bytes in flight, which follows the speed
 * of the link, and that of numbers of its shard. A record is repeated until its PubAck and no longer: after a
 * reconnect, because what is published while disconnected is lost; when the broker has read it and its PubAck has not
 * been sent for 2 s; and, with growing delays, while the journal is full or does not exist yet. Repeats are harmless: a
 * shard applies each number once.
 *
 * The broker handles the messages of a connection in order. So the answer to a PING shows that it has read what was
 * published before, and that all that it had sent by then has come. While a record, or its PubAck, is on a slow link,
 * no time runs.
 *
 * An update waits, or has an open number, or has its fate. A record without a PubAck is in flight, even if it
 * was given up, until the broker has answered or can no longer receive it.
 */
export declare class Outbox implements RecordSettler {
    #private;
    constructor(deps: OutboxDeps);
    /** Bytes without a PubAck. */
    get inFlightBytes(): number;
    /**
     * Takes a call with updates to send. `callOver` is called when each update has its fate: at once if the
     * call has no updates, or if its `end` is already known.
     */
    send(call: UpdateCall, nowMs: number): void;
    /** Ends a call, at its deadline for instance: its pending updates are given up. */
    endCall(call: UpdateCall, reason: Failure, nowMs: number): void;
    /** Begins a session: numbers begin at 1 again, and nothing is in flight. */
    start(session: number, nowMs: number): void;
    /** Ends the session: nothing is published until `start`. */
    pause(): void;
    /** Notes that the broker has stored a record. */
    stored(slot: number, serial: number, shard: number, at: Position, nowMs: number): void;
    /** Notes that the broker has refused a record; the same record can be stored later if `isRetryable`. */
    refused(slot: number, serial: number, failure: Failure, isRetryable: boolean, nowMs: number): void;
    /** Notes that the broker has answered the PING of this number. */
    read(sendNumber: number, nowMs: number): void;
    /** Notes that the `publish` or `repeat` of an update has failed; raised before that command returns. */
    publishFailed(update: BlockUpdate, failure: Failure): void;
    /**
     * Takes outcomes from an owner; `isReply` if they were asked for. Outcomes of another session are ignored.
     */
    answered(answers: Answers, isReply: boolean, nowMs: number): void;
    /** Takes an error in answer to a request for outcomes; `retryAfterMs` is how long it says to wait. */
    askFailed(shard: number, failure: Failure, retryAfterMs: number, nowMs: number): void;
    /**
     * Notes that the broker's permissions forbid what was published for an update; ignored if the update is no
     * longer in flight.
     */
    denied(update: BlockUpdate, failure: Failure, nowMs: number): void;
    /** Notes that the connection is lost: what is published from now on does not arrive. */
    disconnected(): void;
    /** Notes that the connection is back. */
    reconnected(nowMs: number): void;
    /** Raised at the time of `setTimer`. */
    tick(nowMs: number): void;
    /** Notes that a request for outcomes could not be published: the records asked for are given up. */
    askNotPublished(shard: number, numbers: readonly number[], failure: Failure): void;
    settle(update: BlockUpdate, outcome: Outcome): void;
    giveUp(update: BlockUpdate, reason: Failure): void;
    endSession(failure: Failure): void;
}
export {};
//# sourceMappingURL=outbox.d.ts.map