import { type Position, PserverError } from "../../../protocol/index.ts";
import type { FoldedRecord, FoldObserver } from "../../fold/journal-record.ts";
import type { Shard } from "../../fold/shard.ts";
import type { TapeStore } from "./tape-store.ts";
/** Dependencies of {@link TapeWriter}. */
export interface TapeWriterDeps {
    readonly store: Pick<TapeStore, "last" | "append">;
    readonly shard: number;
    /** The shard's part of the bytes that the tape may have. */
    readonly bytesMax: number;
    /** The shard being folded. The writer uses the scratch of its memory. */
    readonly folded: Pick<Shard, "memory" | "block" | "nameOfNumber">;
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
    /** Records without lines, because these could not be stored. */
    readonly leftOut: number;
    /** Records without lines, because their trainers had used up their allowances. */
    readonly thinned: number;
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