import {
  ERROR_CODES,
  type ErrorCode,
  type ErrorDetails,
  reactionToRejection,
} from "../../protocol/errors.ts";
import type { Outcome } from "../../protocol/messages/outcomes.ts";
import type { Position } from "../../protocol/messages/position.ts";

/**
 * An error as the core handles it: it decides by the code and by the numbers below, and hands the rest
 * back as it came. The I/O layer's `PserverError` is one.
 */
export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: ErrorDetails;
}

/** The position that a failure says was expected; what it does not say is 0. */
export function expectedPosition({ details }: Failure): Position {
  const { generation, seq } = (details["expected"] ?? {}) as Partial<Position>;
  return {
    generation: typeof generation === "number" ? generation : 0,
    seq: typeof seq === "number" ? seq : 0,
  };
}

/** The session that a failure says is over; 0 if it says none. */
export function receivedSession({ details }: Failure): number {
  const { received } = details;
  return typeof received === "number" ? received : 0;
}

/** What became of a block update; `pending` until its call has been told. */
export type Fate = "pending" | "applied" | "late" | "rejected" | "unknown" | "unsent";

/** How a call's updates count. */
interface CallMode {
  /** Whether a PubAck is enough: the outcome is not waited for. */
  readonly isDoneWhenStored: boolean;
  /** Whether a gradient that came too late for its step is counted instead of failing the call. */
  readonly countsLate: boolean;
  /** Whether a block that is initialized already counts as applied. */
  readonly countsPresent: boolean;
}

/** A record of a call as the I/O layer announces it. */
export interface UpdateSize {
  readonly shard: number;
  /** Blocks that its record updates: 1, more for a batch. What becomes of it counts for each. */
  readonly blocks: number;
  /** Bytes of its elements, which the window of bytes counts. */
  readonly dataBytes: number;
  /** Whether its message names the version of the block that a gradient was made from. */
  readonly namesVersion: boolean;
}

/**
 * The updates of one call, which succeeds or fails as one. Its counts always add up:
 * `pending + applied + late + rejected + unknown + unsent` is the number of blocks that its updates are
 * of.
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
  /** The first update that was rejected, and why. What is not sent yet then stays unsent. */
  rejected: BlockUpdate | undefined;
  rejection: Failure | undefined;
  /** What first kept an update from being stored. */
  obstacle: Failure | undefined;
  /** What ended the call or the session before every update had its fate. */
  end: Failure | undefined;
}

/**
 * One journal record to be: what a call has for one block or, in a batch, for several of a shard; or a
 * clock. It is in at most one
 * {@link UpdateList} at a time: the waiting ones of its shard, those in flight, those stored in its shard.
 */
export interface BlockUpdate {
  readonly call: UpdateCall;
  /** Its place in the call. */
  readonly index: number;
  readonly shard: number;
  readonly blocks: number;
  readonly dataBytes: number;
  /** Whether its next message names the version that a gradient was made from. */
  namesVersion: boolean;
  fate: Fate;

  /** Its number in the session and shard; 0 until it is sent. */
  n: number;
  /** Whether its number is open: sent, and neither settled nor given up. */
  isOpen: boolean;
  /** Whether a host refused it because its session had ended: it was never applied. */
  isRejoined: boolean;

  /** Its place among the records in flight; -1 if it is not in flight. */
  slot: number;
  /** Differs from that of every other record which has been in the slot. */
  serial: number;
  /** Whether the I/O layer holds its message, so that it can be repeated. */
  hasMessage: boolean;
  /** How often it was published, and how often the broker said that it did not store it. */
  sends: number;
  refusals: number;
  /** Place of its last publication among all of the trainer. */
  sendNumber: number;
  sentAtMs: number;
  /** When to publish it again after a refusal; Infinity if the broker has not refused it. */
  retryAtMs: number;
  retryDelayMs: number;
  /** Why the broker did not store it, the last time. */
  obstacle: Failure | undefined;

  /** Where it is stored; generation 0 if it is not known to be. */
  storedGeneration: number;
  storedSeq: number;
  /** When to ask for its outcome. */
  askAtMs: number;

  /** Its neighbours in the list it is in; owned by that list. */
  previous: BlockUpdate | undefined;
  next: BlockUpdate | undefined;
}

/** The first delay after which a record is published again that the broker did not store. */
const RETRY_FIRST_MS = 50;

/** A call with its updates, none of them sent. */
export function newUpdateCall(
  id: number,
  mode: CallMode,
  sizes: readonly UpdateSize[],
): UpdateCall {
  const updates: BlockUpdate[] = [];
  const call: UpdateCall = {
    id,
    mode,
    updates,
    pending: 0,
    applied: 0,
    late: 0,
    unknown: 0,
    unsent: 0,
    rejected: undefined,
    rejection: undefined,
    obstacle: undefined,
    end: undefined,
  };
  for (const size of sizes) {
    updates.push(newBlockUpdate(call, updates.length, size));
    call.pending += size.blocks;
  }
  return call;
}

function newBlockUpdate(call: UpdateCall, index: number, size: UpdateSize): BlockUpdate {
  return {
    call,
    index,
    shard: size.shard,
    blocks: size.blocks,
    dataBytes: size.dataBytes,
    namesVersion: size.namesVersion,
    fate: "pending",
    n: 0,
    isOpen: false,
    isRejoined: false,
    slot: -1,
    serial: 0,
    hasMessage: false,
    sends: 0,
    refusals: 0,
    sendNumber: 0,
    sentAtMs: 0,
    retryAtMs: Number.POSITIVE_INFINITY,
    retryDelayMs: RETRY_FIRST_MS,
    obstacle: undefined,
    storedGeneration: 0,
    storedSeq: 0,
    askAtMs: Number.POSITIVE_INFINITY,
    previous: undefined,
    next: undefined,
  };
}

/** Makes an update as if it had never been sent. It must be in no list, not open and not in flight. */
export function resetUpdate(update: BlockUpdate): void {
  update.n = 0;
  update.isRejoined = false;
  update.sends = 0;
  update.refusals = 0;
  update.retryAtMs = Number.POSITIVE_INFINITY;
  update.retryDelayMs = RETRY_FIRST_MS;
  update.obstacle = undefined;
  update.storedGeneration = 0;
  update.storedSeq = 0;
  update.askAtMs = Number.POSITIVE_INFINITY;
}

/** Whether the broker said of every publication that it did not store it. */
export function isStoredNowhere(update: BlockUpdate): boolean {
  return update.storedGeneration === 0 && update.sends === update.refusals;
}

/** Whether every update of the call has its fate. */
export function isOver(call: UpdateCall): boolean {
  return call.pending === 0;
}

/** Whether the call has failed; its error is the rejection, or made of what is unknown and unsent. */
export function hasFailed(call: UpdateCall): boolean {
  return call.rejection !== undefined || call.unknown > 0 || call.unsent > 0;
}

/** The update was applied, or stored if that is enough. */
export function applied(update: BlockUpdate): void {
  update.fate = "applied";
  update.call.applied += update.blocks;
  update.call.pending -= update.blocks;
}

/** The outcome of the update is known; the first rejection is the error of the call. */
export function settled(update: BlockUpdate, { code, message = "" }: Outcome): void {
  const { call } = update;
  const reaction = code === undefined ? undefined : reactionToRejection(code);
  if (code === undefined || (reaction === "count-present" && call.mode.countsPresent)) {
    applied(update);
  } else if (reaction === "count-late" && call.mode.countsLate) {
    update.fate = "late";
    call.late += update.blocks;
    call.pending -= update.blocks;
  } else {
    const text = message === "" ? ERROR_CODES[code].meaning : message;
    rejected(update, { code, message: text, details: {} });
  }
}

/** The update will never be applied. */
export function rejected(update: BlockUpdate, failure: Failure): void {
  const { call } = update;
  update.fate = "rejected";
  call.pending -= update.blocks;
  if (call.rejection !== undefined) return;
  call.rejected = update;
  call.rejection = failure;
}

/** The update was given up after it may have been stored. */
export function unknown(update: BlockUpdate): void {
  update.fate = "unknown";
  update.call.unknown += update.blocks;
  update.call.pending -= update.blocks;
}

/** The update was given up, and is stored nowhere. */
export function unsent(update: BlockUpdate, obstacle: Failure | undefined): void {
  const { call } = update;
  update.fate = "unsent";
  call.unsent += update.blocks;
  call.pending -= update.blocks;
  call.obstacle ??= obstacle;
}

/** Something ended the call or the session before every update had its fate; the first end counts. */
export function ended(call: UpdateCall, end: Failure): void {
  call.end ??= end;
}
