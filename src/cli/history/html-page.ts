import { dateTimeText, shortNumber } from "./event-text.ts";
import type { Chart } from "./series.ts";
import { colorOf, escaped, svgChart } from "./svg-chart.ts";

const STYLE = [
  ":root{color-scheme:light dark}",
  "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}",
  // On a narrow screen the chart scrolls: shrunk to it, its text could not be read.
  ".chart{overflow-x:auto}",
  ".chart svg{width:100%;min-width:48rem;height:auto}",
  "@media (prefers-color-scheme:dark){svg{color:#ddd}}",
  "table{border-collapse:collapse}",
  "td,th{padding:.2rem 1rem .2rem 0;text-align:right;font-variant-numeric:tabular-nums}",
  // A number such as 4e-3 is not broken at its hyphen.
  "td:not(:first-child){white-space:nowrap}",
  "td:first-child,th:first-child{text-align:left}",
  "td:first-child{overflow-wrap:anywhere}",
  ".dot{display:inline-block;width:.6em;height:.6em;border-radius:50%;margin-right:.5em}",
].join("");

/** What is said about where the chart comes from. */
export interface ChartOrigin {
  readonly job: string;
  /** Where the history was read. */
  readonly source: string;
  readonly madeMs: number;
}

/** A chart as one page that needs nothing else: no script, no network. */
export function htmlPage(chart: Chart, { job, source, madeMs }: ChartOrigin): string {
  const title = `${chart.title} of job ${job}`;
  const whose = chart.title === "norm" ? "trainer and parameter" : "trainer";
  const rows = chart.series.map(({ name, points }, rank) => {
    const last = points.at(-1)?.mean;
    const values = points.reduce((sum, { count }) => sum + count, 0);
    const least = Math.min(...points.map(({ min }) => min));
    const largest = Math.max(...points.map(({ max }) => max));
    const cells = [String(values), ...[least, largest, last].map(shortNumber)];
    const rest = cells.map((cell) => `<td>${cell}</td>`).join("");
    const dot = `<span class="dot" style="background:${colorOf(rank)}"></span>`;
    return `<tr><td>${dot}${escaped(name)}</td>${rest}</tr>`;
  });
  return [
    "<!doctype html>",
    '<html lang="en">',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width,initial-scale=1">',
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<h1>${escaped(title)}</h1>`,
    // The page's colour, which a dark page changes, must reach the image.
    `<div class="chart">${svgChart(chart).replace(' color="#222"', "")}</div>`,
    "<table>",
    `<tr><th>${whose}</th><th>values</th><th>least</th><th>largest</th><th>last</th></tr>`,
    ...rows,
    "</table>",
    `<p>Read from ${escaped(source)} at ${dateTimeText(madeMs)}.</p>`,
    "</html>",
    "",
  ].join("\n");
}
