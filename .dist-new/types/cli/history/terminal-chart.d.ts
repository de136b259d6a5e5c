import type { PaintRank, TextFormat } from "../output/colors.ts";
import { type Chart } from "./chart.ts";
/**
 * Draws a chart as lines of a terminal: dots in the colours of the trainers, or, without colours, a letter for
 * each. A label is a dotted column with its name above.
 */
export declare function terminalChart(chart: Chart, format: TextFormat, paintRank: PaintRank, isColored: boolean): string[];
//# sourceMappingURL=terminal-chart.d.ts.map