import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { type JobSubjects, type Position, PserverError } from "../../protocol/index.ts";
import { type FoldedRecord, type FoldObserver } from "../fold/journal-record.ts";
import type { Shard } from "../fold/shard.ts";
import { type TapeSpan } from "./tape-decoder.ts";
/** Dependencies of {@link TapeStore}. */
export interface TapeStoreDeps {
    readonly client: Pick<JetStreamClient, "publish">;
    readonly manager: JetStreamManager;
    readonly subjects: JobSubjects;
    readonly shard: number;
}
/** The last message of a shard's tape: its sequence in the stream, and what it covers. */
export interface TapeEnd extends TapeSpan {
    readonly streamSeq: number;
}
/** One shard's part of the tape of a job, for its owner. */
export declare class TapeStore {
    #private;
    constructor(deps: TapeStoreDeps);
    /**
     * Reads the last message; undefined if there is none. A message that cannot be read covers nothing: its lines are
     * written again.
     * @throws TIMEOUT, ….
     */
    last(): Promise<TapeEnd | undefined>;
    /**
     * Appends a message after the one with sequence `after` in the stream (0: the first of the shard).
     * @returns its sequence; undefined if the last message is another one.
     * @throws NO_SPACE, TIMEOUT, … if it was not stored, or nobody knows.
     */
    append(bytes: Uint8Array, after: number): Promise<number | undefined>;
}
/** The storage that a job's tape takes in the broker. */
export interface TapeStorage {
    readonly messages: number;
    readonly bytes: number;
}
/**
 * Reads how much storage the tape of a job takes in the broker.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like.
 */
export declare function readTapeStorage(manager: JetStreamManager, subjects: JobSubjects): Promise<TapeStorage>;
/** Creates the stream of a job's tape unless it exists. Nothing is ever removed from it. */
export declare function ensureTapeStream(manager: JetStreamManager, subjects: JobSubjects, replicas: number): Promise<void>;
/** Dependencies of {@link TapeWriter}. */
export interface TapeWriterDeps {
    readonly store: Pick<TapeStore, "last" | "append">;
    readonly shard: number;
    /** The shard being folded. The writer uses the scratch of its memory. */
    readonly folded: Pick<Shard, "memory" | "block">;
    /** Returns the generation of the journal being folded. */
    readonly generation: () => number;
    /** Called when messages were stored, or failed to be, so that the fold may go on. */
    readonly onProgress: () => void;
    /** Called for the first failure to store a message after a success. Storing is retried. */
    readonly onFailed: (error: PserverError) => void;
    /** Called for the first record that could not be described, and for the first lines left out. */
    readonly onIncomplete: (error: PserverError) => void;
}
/** Counts of records whose lines on the tape are missing or empty. */
export interface TapeGaps {
    /** Records whose lines only say that they could not be described. */
    readonly undescribed: number;
    /** Records without lines. */
    readonly leftOut: number;
}
/**
 * Writes the tape of a shard: lines of each record that its owner folds, in the order of the journal, without a gap.
 * A new owner folds the records after its snapshot again; it skips those whose lines are stored already. A message is
 * stored only after the last one that this owner knows, so that two owners at one time leave no hole; lines that both
 * have stored are recognized by their positions.
 *
 * Failures of the tape never stop the shard: a record that cannot be described has a line that says so; while no
 * message can be stored, the shard waits {@link PATIENCE_MS}, and then leaves lines out.
 */
export declare class TapeWriter implements FoldObserver {
    #private;
    constructor(deps: TapeWriterDeps);
    /**
     * Reads how far the tape goes. Must precede {@link observe}. If it fails, it is repeated before lines are stored.
     */
    open(): Promise<void>;
    /** Whether the fold must wait until messages are stored. */
    get holdsUp(): boolean;
    /** Counts of records whose lines are missing or empty, since this writer was made. */
    get gaps(): TapeGaps;
    /** Takes a record that was just folded. */
    observe(folded: FoldedRecord): void;
    /** Takes a record that could not be described or written, and writes a line that says so. */
    failed(folded: FoldedRecord, error: PserverError): void;
    /**
     * Stores all lines of records up to `at`; returns without that if no message could be stored for {@link
     * PATIENCE_MS}.
     * @throws the reason why a message could not be stored. Storing is retried, and the call may be, too.
     */
    flush(at: Position): Promise<void>;
    /** Stops storing; another owner completes the tape. */
    close(): void;
}
//# sourceMappingURL=tape-writer.d.ts.map