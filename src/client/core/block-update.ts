import type { Failure } from "./failure.ts";

/** What became of a block update; `pending` until its call has been told. */
export type Fate = "pending" | "applied" | "late" | "rejected" | "unknown" | "unsent";

/** How a call's updates count. */
export interface CallMode {
  /** Whether a PubAck is enough: the outcome is not waited for. */
  readonly isDoneWhenStored: boolean;
  /** Whether a gradient that came too late for its step is counted instead of failing the call. */
  readonly countsLate: boolean;
  /** Whether a block that is initialized already counts as applied. */
  readonly countsPresent: boolean;
}

/** A record of a call as the shell announces it. */
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
  /** Chosen by the shell. */
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
  /** Whether the shell holds its message, so that it can be repeated. */
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
