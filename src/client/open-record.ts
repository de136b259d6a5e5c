import type { PserverError } from "../protocol/errors.ts";
import type { Position } from "../protocol/outcomes.ts";
import type { Batch, Piece } from "./batch.ts";

/** The first delay after which a record is sent again that the broker did not store. */
const RETRY_FIRST_MS = 50;

/** A record that was sent under a number and has no outcome yet. */
export interface OpenRecord {
  readonly piece: Piece;
  readonly n: number;
  /** Names the record in its PubAck's subject. */
  readonly token: string;
  /** The call that waits for it; undefined once that has its answer. */
  batch: Batch | undefined;
  /** The message, kept to be repeated until its PubAck. */
  bytes: Uint8Array | undefined;
  /** How often it was sent, and how often the broker said that it did not store it. */
  sends: number;
  refusals: number;
  /** Place of its last sending among all sendings of the connection. */
  sendNumber: number;
  sentAtMs: number;
  /** When to send it again after a refusal. */
  retryAtMs: number | undefined;
  retryDelayMs: number;
  /** Why the broker did not store it, the last time. */
  obstacle: PserverError | undefined;
  /** Where it is stored. */
  stored: Position | undefined;
  /** When to ask for its outcome. */
  askAtMs: number;
  /** Whether a host refused it because its session had ended: it was never applied. */
  rejoin: boolean;
}

/** A record that is about to be sent for the first time. */
export function newRecord(
  piece: Piece,
  batch: Batch,
  n: number,
  token: string,
  bytes: Uint8Array,
): OpenRecord {
  return {
    piece,
    batch,
    n,
    token,
    bytes,
    sends: 0,
    refusals: 0,
    sendNumber: 0,
    sentAtMs: 0,
    retryAtMs: undefined,
    retryDelayMs: RETRY_FIRST_MS,
    obstacle: undefined,
    stored: undefined,
    askAtMs: Number.POSITIVE_INFINITY,
    rejoin: false,
  };
}

/** Whether the broker said of every sending that it did not store it. */
export function isStoredNowhere(record: OpenRecord): boolean {
  return record.stored === undefined && record.sends === record.refusals;
}
