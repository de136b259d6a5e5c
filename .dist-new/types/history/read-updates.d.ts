import { type UpdateEvent } from "../actors/journal/describe-record.ts";
import { JobSubjects, type Position } from "../protocol/index.ts";
import type { Cut, Point } from "./points.ts";
import { type HistorySource, type ShardHistory } from "./source.ts";
import { type UpdateFilter } from "./update-stream.ts";
/**
 * Updates of a shard in the order of its journal. The records are folded, so that the outcome of each is known. A
 * record that cannot be folded is one update, rejected with FOLD_FAILED: the last one of its generation that is
 * known.
 */
export declare class JournalUpdates {
    #private;
    constructor(history: ShardHistory, subjects: JobSubjects, signal: AbortSignal);
    /**
     * Reads the updates after a position up to another one, some at a time. Leaves out what the source does not hold
     * any more. May be called again to go on.
     * @throws errors of the source and the fold; the reason of the signal.
     */
    between(after: Position, to: Position): AsyncGenerator<readonly UpdateEvent[]>;
    /** Reads the updates after a position as they come, until the signal is aborted. @throws as {@link between}. */
    follow(after: Position): AsyncGenerator<readonly UpdateEvent[]>;
}
/** Range of the updates of a shard. */
export interface ShardSpan {
    readonly after: Position;
    readonly to: Position;
    /** Updates that were stored before this time, in milliseconds since 1970, are not wanted. */
    readonly fromMs: number;
}
/**
 * The updates of a shard after a position up to another one: from its tape, which reaches back to the job's
 * beginning and needs no fold, and what has no line there, or none yet, from its journal.
 * @throws as `tapeUpdates` and `JournalUpdates.between`.
 */
export declare function shardUpdates(history: ShardHistory, journal: JournalUpdates, { after, to, fromMs }: ShardSpan, signal: AbortSignal): AsyncGenerator<readonly UpdateEvent[]>;
/** Options of {@link readUpdates}. */
export interface UpdateQuery extends UpdateFilter, UpdateRange {
    /** Whether later updates are read, too, as they come, until the signal is aborted. */
    readonly follow?: boolean;
    /** Only the last so many of those up to `until`: 1 or more. */
    readonly last?: number;
    readonly signal: AbortSignal;
}
/**
 * Reads the updates of a job, some at a time, in the order of the times at which the broker stored them; between
 * shards that order is as good as the broker's clock. Followed ones come in the order of arrival. Memory does not
 * grow with the length of the history, but with `last`.
 * @throws errors of the source and the fold; the reason of the signal.
 */
export declare function readUpdates(source: HistorySource, query: UpdateQuery): AsyncGenerator<readonly UpdateEvent[]>;
/** Range of a history between two points. */
export interface UpdateRange {
    /** The range begins after this cut; undefined for all that is known. */
    readonly since: Cut | undefined;
    /** It begins after this time, in milliseconds since 1970. */
    readonly sinceMs: number;
    /** It ends with this cut. */
    readonly until: Cut;
    /** It ends with this time, in milliseconds since 1970. */
    readonly untilMs: number;
}
/**
 * Resolves the range between two points. A time, an update and a named note may lie before what the journals keep:
 * tapes reach back further.
 * @throws as `resolvePoint`.
 */
export declare function resolveRange(source: HistorySource, since: Point, until: Point, signal: AbortSignal): Promise<UpdateRange>;
//# sourceMappingURL=read-updates.d.ts.map