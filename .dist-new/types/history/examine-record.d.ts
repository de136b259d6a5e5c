import { type Statistics } from "../actors/fold/statistics.ts";
import { type UpdateEvent } from "../actors/journal/describe-record.ts";
import { type Dtype, type ParameterConfig, type Position } from "../protocol/index.ts";
import type { Point } from "./points.ts";
import { type HistorySource, type TimedRecord } from "./source.ts";
/** A block before and after a record that named it. */
export interface ExaminedBlock {
    readonly parameter: string;
    readonly index: number;
    readonly dtype: Dtype;
    readonly shape: readonly number[];
    /** First element of the block in the parameter. */
    readonly start: number;
    readonly count: number;
    readonly epoch: number;
    readonly config: ParameterConfig;
    /** Its values before the record; undefined if it did not exist. */
    readonly before: Statistics | undefined;
    /** Its values right after the record and, in a `sync` job, after the step that the record has closed. */
    readonly after: Statistics;
    /** Elements whose bits the record has changed. */
    readonly changedElements: number;
}
/** Everything about one record. */
export interface ExaminedRecord {
    readonly record: TimedRecord;
    /** Its updates: one, or one for each entry of a batch. */
    readonly events: readonly UpdateEvent[];
    /** The blocks that its updates name and that exist after it, in the order of the updates. */
    readonly blocks: readonly ExaminedBlock[];
}
/**
 * Rebuilds the shard right before a record, folds the record, and reports what it did.
 * @throws HISTORY_LOST if nothing from which the shard can be rebuilt is kept; as `replayShard`.
 */
export declare function examineRecord(source: HistorySource, { shard: number, position }: LocatedRecord, signal: AbortSignal): Promise<ExaminedRecord>;
/** A point that names one record. */
export type RecordPoint = Extract<Point, {
    kind: "position" | "update";
}>;
/** A record, by its shard and position. */
export interface LocatedRecord {
    readonly shard: number;
    readonly position: Position;
}
/**
 * Finds the record that a point names. The record of an update is searched for in all that is kept; if it was
 * repeated, its first copy is found.
 * @throws BAD_VALUE for a position that is not kept; as {@link findUpdate}; errors of the source; the reason of the
 * signal.
 */
export declare function findRecord(source: HistorySource, point: RecordPoint, signal: AbortSignal): Promise<LocatedRecord>;
//# sourceMappingURL=examine-record.d.ts.map