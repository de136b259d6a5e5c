import type { UpdateEvent } from "../../actors/journal/describe-record.ts";
/** Consecutive values of a series, as one point. */
export interface SeriesPoint {
    /** Place of the first value: milliseconds since 1970, or a step. */
    readonly x: number;
    readonly min: number;
    readonly max: number;
    readonly mean: number;
    readonly count: number;
}
/** The values of one trainer and, of norms, one parameter. */
export interface Series {
    readonly name: string;
    readonly points: readonly SeriesPoint[];
}
/** The name of a note, drawn at the place of the note. */
export interface Label {
    readonly x: number;
    readonly name: string;
}
/** A value that is NaN or an infinity, which has a place on the horizontal axis only. */
export interface NotFinite {
    readonly x: number;
    /** Name of the series that it belongs to. */
    readonly name: string;
}
/** The ends of an axis. */
export interface Extent {
    readonly min: number;
    readonly max: number;
}
/** Titles and kinds of a chart's axes. */
export interface ChartAxes {
    /** Name of the values: `norm`, or the name of a note's entry. */
    readonly title: string;
    readonly by: "time" | "step";
    /** Whether equal differences or equal ratios of values have equal distances. */
    readonly scale: "linear" | "log";
}
/** The contents of a chart. */
export interface Chart extends ChartAxes {
    /** In the order of their names. */
    readonly series: readonly Series[];
    readonly labels: readonly Label[];
    /** The first values that are not finite, and how many there are in all. */
    readonly notFinite: readonly NotFinite[];
    readonly notFiniteCount: number;
    /** Ends of the axes: of `y` over all finite values, of `x` over all that is drawn; both are 0 without any. */
    readonly x: Extent;
    readonly y: Extent;
    /** Number of values of 0 or less, which have no place on a `log` scale. */
    readonly leftOut: number;
}
/** Returns a chart as `--json` prints it. */
export declare function chartEntry({ labels, x, y, leftOut, ...chart }: Chart): unknown;
/** Returns what a chart shows, in one line. */
export declare function chartHeading({ title, by, scale, notFiniteCount }: Chart): string;
/** How charts draw a value that is not finite, at their upper edge. */
export declare const NOT_FINITE = "\u00D7";
/** Collects the values of a chart from updates in their order, in bounded memory. */
export declare class ChartCollector {
    #private;
    constructor(axes: ChartAxes);
    /** Adds the values and the label of an update; most have none. */
    add(event: UpdateEvent): void;
    /** Returns the chart of the updates added so far. */
    chart(): Chart;
}
/** Returns round numbers between two ends, about `count` of them, ends included where they are round. */
export declare function niceTicks(min: number, max: number, count: number): number[];
/** Writes a place on the horizontal axis. */
export declare function xText({ by, x }: Chart, at: number): string;
/** A vertical axis. */
export interface YAxis {
    /** Returns the place of a value: 0 at the lower end of the axis, 1 at the upper one. */
    fraction(value: number): number;
    /** Returns the value at a place. */
    value(share: number): number;
    /** Returns about `count` values to write on the axis. */
    ticks(count: number): number[];
}
/** Makes the vertical axis of a chart. */
export declare function yAxis({ scale, y }: Chart): YAxis;
/** Returns the ends of an axis, apart even if all values are the same. */
export declare function widened({ min, max }: Extent): Extent;
//# sourceMappingURL=chart.d.ts.map