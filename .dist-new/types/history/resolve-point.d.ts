import type { UpdateEvent } from "../actors/journal/describe-record.ts";
import { type Position } from "../protocol/index.ts";
import { type Point, type ResolvedPoint } from "./points.ts";
import { type HistorySource, type Inventory, type ShardHistory, type TimedRecord } from "./source.ts";
/** A record that was found. */
export interface RecordMatch {
    readonly shard: number;
    readonly position: Position;
    /** When the broker stored it; rounded to microseconds if only the tape has it. */
    readonly timeMs: number;
}
/** What to search for, as lines of the tape and as records. */
export interface RecordSearch {
    readonly isEvent: (event: UpdateEvent) => boolean;
    readonly isRecord: (record: TimedRecord) => boolean;
}
/**
 * Searches a shard in the order of its journals, without a fold: in the tape, and in the journal for records that
 * have no line there, or for all if the tape cannot be read. Ends at the first match, or with `isLast` returns the
 * last one.
 * @throws errors of the source; the reason of the signal.
 */
export declare function searchShard(history: ShardHistory, wanted: RecordSearch, isLast: boolean, signal: AbortSignal): Promise<RecordMatch | undefined>;
/**
 * Finds the newest note of this name, in all that is kept of journal and tape.
 * @throws BAD_VALUE if there is none; errors of the source; the reason of the signal.
 */
export declare function findMark(source: HistorySource, name: string, signal: AbortSignal): Promise<RecordMatch>;
/**
 * Finds the position of the record that closed a step in a shard. Folds from the newest snapshot before it.
 * @throws HISTORY_LOST if the step closed before what is kept, BAD_VALUE if it has not closed; errors of the source;
 * the reason of the signal.
 */
export declare function findStep(history: ShardHistory, inventory: Inventory, job: string, step: number, signal: AbortSignal): Promise<Position>;
/** A point that names an update of a trainer. */
export type UpdatePoint = Extract<Point, {
    kind: "update";
}>;
/**
 * Finds the first record with the number of an update, in all that is kept of journals and tape; repeated ones follow
 * it.
 * @throws HISTORY_LOST if none is kept but some records are not, BAD_VALUE if there has never been one, if several
 * shards have that number and the point names none of them; errors of the source.
 */
export declare function findUpdate(source: HistorySource, point: UpdatePoint, signal: AbortSignal): Promise<RecordMatch>;
/**
 * Finds the cut that a point means. A time cuts each shard after the records that the broker stored up to
 * it; a position cuts its own shard right after that record, and the others at the record's time.
 * @throws HISTORY_LOST if the point lies before what is kept, BAD_VALUE if it lies after it or names a
 * shard or generation that the job does not have; what the source throws; the reason of `signal`.
 */
export declare function resolvePoint(source: HistorySource, point: Point, signal: AbortSignal): Promise<ResolvedPoint>;
/** A point that names the record of a trainer, which has to be searched for. */
export type SearchedPoint = Extract<Point, {
    kind: "update" | "mark";
}>;
/** Finds the record that a point names. @throws as `findUpdate` and `findMark`. */
export declare function findPointed(source: HistorySource, point: SearchedPoint, signal: AbortSignal): Promise<RecordMatch>;
/**
 * Returns the cut of a record that was found: its own shard right after it, the others at its time.
 * @throws HISTORY_LOST if another shard's history does not reach back so far; errors of the source.
 */
export declare function resolveFound(source: HistorySource, point: SearchedPoint, { shard, position, timeMs }: RecordMatch, signal: AbortSignal): Promise<ResolvedPoint>;
//# sourceMappingURL=resolve-point.d.ts.map