import type { JournalRecord } from "../actors/fold/journal-record.ts";
import type { HeadMark } from "../actors/owner/head-mark.ts";
import type { PieceRef, StoredManifest } from "../actors/snapshot/manifest.ts";
import type { Fields, Message, OwnerVerb, Position, Synchronization } from "../protocol/index.ts";

/** A record of a journal with the time at which the broker stored it. */
export interface TimedRecord extends JournalRecord {
  /** Milliseconds since 1970, with fractions. No part of the fold: nothing depends on it but reports. */
  readonly timeMs: number;
}

/** Records of one generation of a journal that can be read one after the other. */
export interface JournalSpan {
  readonly generation: number;
  readonly firstSeq: number;
  /** `firstSeq` − 1 if there is none. */
  readonly lastSeq: number;
}

/** A message of a shard's tape as the broker stored it. */
export interface StoredTapeMessage {
  /** Sequence in the stream of the job's tape. */
  readonly seq: number;
  /** When the broker stored it, in milliseconds since 1970. */
  readonly timeMs: number;
  readonly data: Uint8Array;
}

/** Where the reading of a tape begins. */
export type TapeStart =
  /** The first message that was stored at this time or later. */
  | { readonly kind: "time"; readonly timeMs: number }
  /** The message with this sequence, or the next one. */
  | { readonly kind: "message"; readonly seq: number };

/** A committed snapshot; its pieces are read by {@link ShardHistory.piece}. */
export interface KeptSnapshot extends StoredManifest {
  /** When its manifest was stored, in milliseconds since 1970. */
  readonly timeMs: number;
}

/** What a source knows of one shard. */
export interface ShardHistory {
  readonly shard: number;

  /** What can be read, by generation, ascending. */
  spans(): Promise<readonly JournalSpan[]>;

  /** The snapshots whose manifest is there, by generation and record, ascending. */
  snapshots(): Promise<readonly KeptSnapshot[]>;

  /**
   * The message that a manifest or a snapshot's state refers to.
   * @throws SNAPSHOT_DAMAGED if it is gone or its bytes have changed.
   */
  piece(ref: PieceRef): Promise<Uint8Array>;

  /**
   * Reads the records after `after` up to `toSeq` of the same generation, in order and without a gap, some
   * at a time.
   * @throws JOURNAL_DAMAGED if one is missing; TIMEOUT, NO_BROKER and the like if it cannot be read now;
   * ABORTED.
   */
  read(after: Position, toSeq: number, signal: AbortSignal): AsyncIterable<readonly TimedRecord[]>;

  /**
   * How far its owners have folded it, and what the journal was then; undefined if they have noted nothing yet.
   * Absent of a source that keeps no marks.
   * @throws INTERNAL if the mark is damaged.
   */
  mark?(): Promise<HeadMark | undefined>;

  /**
   * The messages of the shard's tape from `start` on, oldest first; some of them may repeat lines of others.
   * None if the job has no tape. Absent of a source that keeps none.
   */
  readTape?(start: TapeStart, signal: AbortSignal): AsyncIterable<StoredTapeMessage>;

  /** Position of the last record stored at or before `timeMs`; undefined if all are later. */
  positionAt(timeMs: number): Promise<Position | undefined>;
}

/** What every source knows of its job. */
export interface JobFacts {
  readonly job: string;
  readonly shards: number;
  readonly synchronization: Synchronization;
}

/**
 * The history of a job, wherever it is kept: in the broker, in an archive, in a recorded file, or in an
 * archive whose later part is in the broker. All commands of the debugger read through it.
 */
export interface HistorySource extends JobFacts {
  /** What a person may call it: `broker`, or the path of the archive or file. */
  readonly name: string;

  /** @throws BAD_VALUE for a shard that the job does not have. */
  shard(shard: number): ShardHistory;

  /**
   * Asks the owner of a shard; absent where no host can be reached.
   * @throws NO_OWNER if none answers; else the error in the reply.
   */
  askOwner?(shard: number, verb: OwnerVerb, fields: Fields): Promise<Message>;

  close(): Promise<void>;
}
