import type { UpdateEvent } from "../actors/journal/describe-record.ts";
import { type Position } from "../protocol/index.ts";
import type { ShardHistory } from "./source.ts";
/** Consecutive lines of a shard's tape. */
export interface TapePart {
    readonly events: readonly UpdateEvent[];
    /** All lines of the tape up to here are in this part and those before it. */
    readonly covered: Position;
    /** Range of records right before the lines for which the tape has no lines: after one position up to another. */
    readonly skipped: {
        readonly after: Position;
        readonly to: Position;
    } | undefined;
}
/**
 * The lines of a shard's tape after a position up to another one, in the order of the journal, each once:
 * two owners may have written the same. Messages stored before `fromMs` are not read. In the place of a message
 * that cannot be read there is one update that is not described, and its records count as skipped.
 * @throws BAD_VERSION for lines of a format that this program lacks; what the source throws.
 */
export declare function tapeUpdates(history: ShardHistory, after: Position, to: Position, fromMs: number, signal: AbortSignal): AsyncGenerator<TapePart>;
/**
 * Merges several sources, each in the order of `keyOf`, into that order; of equal elements, those of the earlier
 * source come first. Reads each source no more than a batch ahead. Ends all sources when it ends.
 */
export declare function mergeSorted<T>(sources: readonly AsyncIterable<readonly T[]>[], keyOf: (element: T) => number): AsyncGenerator<readonly T[]>;
/** Yields the batches of several sources as they come. Ends all sources when it ends. */
export declare function mergeArrivals<T>(sources: readonly AsyncIterable<readonly T[]>[]): AsyncGenerator<readonly T[]>;
/**
 * Yields the last `count` elements of batches, 1 or more, as one batch once the batches have ended. Holds no more
 * than these.
 */
export declare function lastOf<T>(batches: AsyncIterable<readonly T[]>, count: number): AsyncGenerator<readonly T[]>;
/** Filter of updates; what is undefined admits all. */
export interface UpdateFilter {
    /** Updates of this parameter only. */
    readonly parameter?: string | undefined;
    /** Updates and notes of this trainer only. */
    readonly trainer?: string | undefined;
}
/** Whether an update is wanted. */
export declare function admits({ parameter, trainer }: UpdateFilter, event: UpdateEvent): boolean;
//# sourceMappingURL=update-stream.d.ts.map