import { type Chart } from "./chart.ts";
/** Writes a chart as an SVG image of its own. */
export declare function svgChart(chart: Chart): string;
/** The origin of a chart's values, for the text of the page. */
export interface ChartOrigin {
    readonly job: string;
    /** Where the history was read. */
    readonly source: string;
    readonly madeMs: number;
}
/** Writes a chart as one page that needs nothing else: no script, no network. */
export declare function htmlPage(chart: Chart, { job, source, madeMs }: ChartOrigin): string;
//# sourceMappingURL=svg-chart.d.ts.map