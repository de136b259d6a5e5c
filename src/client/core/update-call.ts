import {
  ERROR_CODES,
  type ErrorCode,
  type ErrorDetails,
  reactionToRejection,
} from "../../protocol/errors.ts";
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
export function expectedPosition({ details }: Failure): Position {
  const { generation, seq } = (details["expected"] ?? {}) as Partial<Position>;
  return {
    generation: typeof generation === "number" ? generation : 0,
    seq: typeof seq === "number" ? seq : 0,
  };
}

/** Returns the session that is over according to a failure; 0 if it names none. */
export function receivedSession({ details }: Failure): number {
  const { received } = details;
  return typeof received === "number" ? received : 0;
}

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
  /** The highest version in the outcome of one of its updates; 0 before the first. */
  version: number;
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

/** The first delay before a record that the broker has refused is published again. */
const RETRY_FIRST_MS = 50;

/** Makes a call with its updates, none of them sent. */
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
    version: 0,
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
    storedBytesBefore: 0,
    readAtMs: Number.POSITIVE_INFINITY,
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

/** Resets an update as if it had never been sent. It must be in no list, not open and not in flight. */
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

/** Returns whether the broker has refused every publication of the update. */
export function isStoredNowhere(update: BlockUpdate): boolean {
  return update.storedGeneration === 0 && update.sends === update.refusals;
}

/** Returns whether an update of the call is still to be stored. */
export function hasUnstored(call: UpdateCall): boolean {
  return call.updates.some(({ fate, storedGeneration }) => {
    return fate === "pending" && storedGeneration === 0;
  });
}

/** Returns whether every update of the call has its fate. */
export function isOver(call: UpdateCall): boolean {
  return call.pending === 0;
}

/**
 * Returns whether the call has failed. Its error is the rejection, or is made from the unknown and unsent
 * updates.
 */
export function hasFailed(call: UpdateCall): boolean {
  return call.rejection !== undefined || call.unknown > 0 || call.unsent > 0;
}

/** Notes that the update was applied, or stored if that is enough. */
export function applied(update: BlockUpdate): void {
  update.fate = "applied";
  update.call.applied += update.blocks;
  update.call.pending -= update.blocks;
}

/** Notes the outcome of the update; the first rejection is the error of the call. */
export function settled(update: BlockUpdate, { code, message = "", version }: Outcome): void {
  const { call } = update;
  call.version = Math.max(call.version, version);
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

/** Notes that the update will never be applied. */
export function rejected(update: BlockUpdate, failure: Failure): void {
  const { call } = update;
  update.fate = "rejected";
  call.pending -= update.blocks;
  if (call.rejection !== undefined) return;
  call.rejected = update;
  call.rejection = failure;
}

/** Notes that the update was given up, and may have been stored. */
export function unknown(update: BlockUpdate): void {
  update.fate = "unknown";
  update.call.unknown += update.blocks;
  update.call.pending -= update.blocks;
}

/** Notes that the update was given up, and is not stored. */
export function unsent(update: BlockUpdate, obstacle: Failure | undefined): void {
  const { call } = update;
  update.fate = "unsent";
  call.unsent += update.blocks;
  call.pending -= update.blocks;
  call.obstacle ??= obstacle;
}

/** Notes what ended the call or the session before every update had its fate; only the first end counts. */
export function ended(call: UpdateCall, end: Failure): void {
  call.end ??= end;
}
