import { type ErrorCode, type ErrorDetails } from "../../protocol/errors.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import type { Position } from "../../protocol/messages/position.ts";
/**
 * An error as the core handles it. The core decides by the code and by numbers in the details, and hands the
 * whole back unchanged. The I/O layer's `PserverError` is one.
 */
export interface Failure {
    readonly code: ErrorCode;
    readonly message: string;
    readonly details: ErrorDetails;
}
/** Returns the position that a failure expected; numbers that it does not name are 0. */
export declare function expectedPosition({ details }: Failure): Position;
/** Returns the session that is over according to a failure; 0 if it names none. */
export declare function receivedSession({ details }: Failure): number;
/** What became of a block update; `pending` until that is known. */
export type Fate = "pending" | "applied" | "late" | "rejected" | "unknown" | "unsent";
/** How a call's updates count. */
interface CallMode {
    /** Whether the call ends when the records have their PubAcks, without waiting for outcomes. */
    readonly isDoneWhenStored: boolean;
    /** Whether a gradient that came too late for its step is counted instead of failing the call. */
    readonly countsLate: boolean;
    /** Whether a block that is initialized already counts as applied. */
    readonly countsPresent: boolean;
}
/** Size of a record that the I/O layer has to send for a call. */
export interface UpdateSize {
    readonly shard: number;
    /** Blocks that the record updates: 1, more for a batch. Its fate counts for each of them. */
    readonly blocks: number;
    /** Bytes of its elements, which the bound of bytes in flight counts. */
    readonly dataBytes: number;
    /** Whether its message names the block version that a gradient was made from. */
    readonly namesVersion: boolean;
}
/**
 * The updates of one call, which succeeds or fails as one. Its counts always add up: `pending + applied +
 * late + rejected + unknown + unsent` is the number of blocks of all its updates.
 */
export interface UpdateCall {
    /** Chosen by the I/O layer. */
    readonly id: number;
    mode: CallMode;
    readonly updates: BlockUpdate[];
    pending: number;
    applied: number;
    late: number;
    unknown: number;
    unsent: number;
    /** The first update that was rejected, and why. After a rejection no more updates of the call are sent. */
    rejected: BlockUpdate | undefined;
    rejection: Failure | undefined;
    /** The first failure that kept an update from being stored. */
    obstacle: Failure | undefined;
    /** The failure that ended the call or the session before every update had its fate. */
    end: Failure | undefined;
}
/**
 * One future journal record: what a call has for one block or, in a batch, for several blocks of a shard; or
 * a clock. It is in at most one {@link UpdateList} at a time: that of its shard's waiting updates, that of
 * the updates in flight, or that of its shard's stored ones.
 */
export interface BlockUpdate {
    readonly call: UpdateCall;
    /** Its place in the call. */
    readonly index: number;
    readonly shard: number;
    readonly blocks: number;
    readonly dataBytes: number;
    /**
     * Whether its next message names the version that a gradient was made from; a repeat after a fallback does
     * not.
     */
    namesVersion: boolean;
    fate: Fate;
    /** Its number in the session and shard; 0 until it is sent. */
    n: number;
    /** Whether its number is open: sent, and neither settled nor given up. */
    isOpen: boolean;
    /** Whether an owner has answered that its session had ended, so that it was never applied. */
    isRejoined: boolean;
    /** Its place among the records in flight; -1 if it is not in flight. */
    slot: number;
    /** Number that no other record in the slot has had. */
    serial: number;
    /** Whether the I/O layer holds its message, so that it can be repeated. */
    hasMessage: boolean;
    /** How often it was published, and how often the broker has refused it. */
    sends: number;
    refusals: number;
    /** Number of its last publication among all publications of the trainer. */
    sendNumber: number;
    sentAtMs: number;
    /** Bytes of all records that were stored before its last publication. */
    storedBytesBefore: number;
    /** When the broker was known to have read its last publication; Infinity while it is not. */
    readAtMs: number;
    /** When to publish it again after a refusal; Infinity if the broker has not refused it. */
    retryAtMs: number;
    retryDelayMs: number;
    /** The broker's last reason for not storing it. */
    obstacle: Failure | undefined;
    /** Where it is stored; generation 0 if that is not known. */
    storedGeneration: number;
    storedSeq: number;
    /** When to ask for its outcome. */
    askAtMs: number;
    /** Its neighbours in its list, which owns these fields. */
    previous: BlockUpdate | undefined;
    next: BlockUpdate | undefined;
}
/** Makes a call with its updates, none of them sent. */
export declare function newUpdateCall(id: number, mode: CallMode, sizes: readonly UpdateSize[]): UpdateCall;
/** Resets an update as if it had never been sent. It must be in no list, not open and not in flight. */
export declare function resetUpdate(update: BlockUpdate): void;
/** Returns whether the broker has refused every publication of the update. */
export declare function isStoredNowhere(update: BlockUpdate): boolean;
/** Returns whether an update of the call is still to be stored. */
export declare function hasUnstored(call: UpdateCall): boolean;
/** Returns whether every update of the call has its fate. */
export declare function isOver(call: UpdateCall): boolean;
/**
 * Returns whether the call has failed. Its error is the rejection, or is made from the unknown and unsent
 * updates.
 */
export declare function hasFailed(call: UpdateCall): boolean;
/** Notes that the update was applied, or stored if that is enough. */
export declare function applied(update: BlockUpdate): void;
/** Notes the outcome of the update; the first rejection is the error of the call. */
export declare function settled(update: BlockUpdate, { code, message }: Outcome): void;
/** Notes that the update will never be applied. */
export declare function rejected(update: BlockUpdate, failure: Failure): void;
/** Notes that the update was given up, and may have been stored. */
export declare function unknown(update: BlockUpdate): void;
/** Notes that the update was given up, and is not stored. */
export declare function unsent(update: BlockUpdate, obstacle: Failure | undefined): void;
/** Notes what ended the call or the session before every update had its fate; only the first end counts. */
export declare function ended(call: UpdateCall, end: Failure): void;
export {};
//# sourceMappingURL=update-call.d.ts.map