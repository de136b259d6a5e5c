import { type Position } from "../protocol/index.ts";
/** A moment of a job's history as somebody names it. */
export type Point = {
    readonly kind: "now";
} | {
    readonly kind: "start";
} | {
    readonly kind: "time";
    readonly timeMs: number;
} | {
    readonly kind: "position";
    readonly shard: number;
    readonly seq: number;
    /** Generation of the journal; undefined for the newest one. */
    readonly generation: number | undefined;
} | {
    readonly kind: "step";
    readonly step: number;
} | {
    readonly kind: "update";
    readonly trainer: string;
    readonly session: number;
    /** Number of the update in its shard. */
    readonly n: number;
    /** Its shard; undefined if only one shard has the number. */
    readonly shard: number | undefined;
} | {
    readonly kind: "mark";
    readonly name: string;
};
/** A position in every shard of a job, by the shard's number. */
export type Cut = readonly Position[];
/** A point with the cut that it means. */
export interface ResolvedPoint {
    readonly point: Point;
    readonly cut: Cut;
    /** Time of the cut, in milliseconds since 1970; undefined if the point is not a time. */
    readonly timeMs: number | undefined;
}
/** Parses a point. @throws BAD_VALUE if the text names none, or one before the year 1970. */
export declare function parsePoint(text: string, nowMs: number): Point;
/** Formats a point so that it can be parsed again. */
export declare function formatPoint(point: Point): string;
/** Formats a time in ISO form, with milliseconds. */
export declare function formatTime(timeMs: number): string;
//# sourceMappingURL=points.d.ts.map