import type { Chart, Extent, SeriesPoint } from "../../history/reports/chart.ts";
import { dateTimeText } from "../../history/reports/update-entry.ts";
import { visible } from "../../protocol/errors.ts";
import { cutMiddle } from "../output/wrap.ts";
import { chartHeading, NOT_FINITE, roundXTicks, widened, xText, yAxis } from "./chart-axes.ts";
import { compactNumber } from "./numbers.ts";

const WIDTH = 960;
/** Height of the image without the legend, which comes below. */
const HEIGHT = 440;
const MARGIN = { left: 72, right: 16, top: 40, bottom: 32 } as const;

/** Approximate width of a letter. */
const LETTER_WIDTH = 7;

/** Sizes in the legend: height of a row; beside each name a dash of its line, and space. */
const LEGEND = { rowHeight: 18, keyWidth: 18, keyGap: 6, gap: 20 } as const;

/** Maximum number of names in the legend; there may be as many lines as trainers and parameters. */
const NAMES_MAX = 32;

/** Maximum number of letters of a name in the legend. */
const NAME_LETTERS_MAX = 48;

/** Colours of trainers, in turn: told apart on white and on black, also by most colour-blind people. */
const COLORS = [
  "#0072b2",
  "#d55e00",
  "#009e73",
  "#cc79a7",
  "#b8860b",
  "#56b4e9",
  "#8c564b",
  "#7f7f7f",
] as const;

/** The styles of a chart, which follow a dark page. */
const STYLE = [
  "text{font:12px system-ui,sans-serif;fill:currentColor}",
  ".title{font-size:15px;font-weight:600}",
  ".axis{stroke:currentColor;stroke-width:1}",
  ".grid{stroke:currentColor;stroke-opacity:.15}",
  ".mark{stroke:currentColor;stroke-dasharray:4 4;stroke-opacity:.6}",
  ".line{fill:none;stroke-width:1.6;stroke-linejoin:round}",
  ".range{stroke:none;fill-opacity:.18}",
].join("");

/** How lines after the first of each colour are drawn: dashes of the line, in turn. */
const DASHES = ["", "6 3", "2 2", "8 3 2 3"] as const;

/** Returns the colour of a line, by its place among all. */
function colorOf(rank: number): string {
  return COLORS[rank % COLORS.length] ?? "#000";
}

/** Writes the attributes by which a line is drawn. */
function strokesOf(rank: number): string {
  const dashes = DASHES[Math.floor(rank / COLORS.length) % DASHES.length];
  const dashed = dashes === "" ? "" : ` stroke-dasharray="${dashes}"`;
  return `stroke="${colorOf(rank)}"${dashed}`;
}

/** Writes a chart as an SVG image of its own. */
export function svgChart(chart: Chart): string {
  const legend = legendOf(chart);
  const height = HEIGHT + legend.height;
  const [x, y] = [widened(chart.x), yAxis(chart)];
  const bottom = HEIGHT - MARGIN.bottom;
  const xOf = (value: number): number =>
    between(MARGIN.left, WIDTH - MARGIN.right, (value - x.min) / (x.max - x.min));
  const yOf = (value: number): number => between(bottom, MARGIN.top, y.fraction(value));
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" color="#222" ` +
      `aria-label="${escaped(chart.title)}">`,
    `<style>${STYLE}</style>`,
    text(MARGIN.left, 22, chartHeading(chart), 'class="title"'),
  ];
  for (const tick of y.ticks(5)) {
    const at = yOf(tick);
    parts.push(line(MARGIN.left, at, WIDTH - MARGIN.right, at, "grid"));
    parts.push(text(MARGIN.left - 8, at + 4, compactNumber(tick), 'text-anchor="end"'));
  }
  for (const tick of xTicks(chart, x)) {
    parts.push(text(xOf(tick), bottom + 18, xText(chart, tick), 'text-anchor="middle"'));
  }
  parts.push(line(MARGIN.left, bottom, WIDTH - MARGIN.right, bottom, "axis"));
  let free = 0;
  for (const { x: at, name } of chart.labels) {
    const left = xOf(at);
    parts.push(line(left, MARGIN.top, left, bottom, "mark"));
    // A name that another one covers is left out.
    if (left < free) continue;
    parts.push(text(left + 4, MARGIN.top + 10, name));
    free = left + 4 + LETTER_WIDTH * (name.length + 1);
  }
  chart.series.forEach(({ points }, rank) => {
    parts.push(...seriesShapes(points, rank, xOf, yOf));
  });
  const ranks = new Map(chart.series.map(({ name }, rank) => [name, rank]));
  for (const { x: at, name } of chart.notFinite) {
    const style = `text-anchor="middle" style="fill:${colorOf(ranks.get(name) ?? 0)}"`;
    parts.push(text(xOf(at), MARGIN.top + 4, NOT_FINITE, style));
  }
  parts.push(...legend.shapes);
  return `${parts.join("\n")}\n</svg>\n`;
}

/**
 * Draws the names of the lines with their colours, in rows below the chart; returns the shapes and their common
 * height.
 */
function legendOf({ series }: Chart): { readonly shapes: string[]; readonly height: number } {
  const shapes: string[] = [];
  let [left, top] = [MARGIN.left as number, HEIGHT + LEGEND.rowHeight - 6];
  const place = (name: string, strokes: string | undefined): void => {
    const keyWidth = strokes === undefined ? 0 : LEGEND.keyWidth + LEGEND.keyGap;
    const width = keyWidth + LETTER_WIDTH * name.length;
    if (left > MARGIN.left && left + width > WIDTH - MARGIN.right) {
      left = MARGIN.left;
      top += LEGEND.rowHeight;
    }
    if (strokes !== undefined) {
      const y = short(top - 4);
      const [x1, x2] = [short(left), short(left + LEGEND.keyWidth)];
      shapes.push(`<line class="line" ${strokes} x1="${x1}" x2="${x2}" y1="${y}" y2="${y}"/>`);
    }
    shapes.push(text(left + keyWidth, top, name));
    left += width + LEGEND.gap;
  };
  series.slice(0, NAMES_MAX).forEach(({ name }, rank) => {
    place(cutMiddle(name, NAME_LETTERS_MAX), strokesOf(rank));
  });
  const othersCount = series.length - NAMES_MAX;
  if (othersCount > 0) place(`and ${othersCount} more`, undefined);
  return { shapes, height: top - HEIGHT + LEGEND.rowHeight };
}

function seriesShapes(
  points: readonly SeriesPoint[],
  rank: number,
  xOf: (x: number) => number,
  yOf: (y: number) => number,
): string[] {
  const at = (x: number, y: number): string => `${short(xOf(x))},${short(yOf(y))}`;
  const middle = points.map(({ x, mean }) => at(x, mean)).join(" ");
  const color = colorOf(rank);
  const shapes = [`<polyline class="line" ${strokesOf(rank)} points="${middle}"/>`];
  const [only] = points;
  if (only !== undefined && points.length === 1) {
    const [cx, cy] = [short(xOf(only.x)), short(yOf(only.mean))];
    return [`<circle cx="${cx}" cy="${cy}" r="3" fill="${color}"/>`];
  }
  if (points.every(({ count }) => count === 1)) return shapes;
  const upper = points.map(({ x, max }) => at(x, max));
  const lower = points.map(({ x, min }) => at(x, min)).reverse();
  const range = `<polygon class="range" fill="${color}" points="${[...upper, ...lower].join(" ")}"/>`;
  return [range, ...shapes];
}

function xTicks(chart: Chart, { min, max }: Extent): number[] {
  const anywhere = (): number[] =>
    Array.from({ length: 7 }, (_, i) => min + ((max - min) * (i + 0.5)) / 7);
  return roundXTicks(chart, { min, max }, 8) ?? anywhere();
}

function between(from: number, to: number, share: number): number {
  return from + share * (to - from);
}

function short(value: number): string {
  return String(Number(value.toFixed(2)));
}

function line(x1: number, y1: number, x2: number, y2: number, kind: string): string {
  const [a, b, c, d] = [x1, y1, x2, y2].map(short);
  return `<line class="${kind}" x1="${a}" y1="${b}" x2="${c}" y2="${d}"/>`;
}

function text(x: number, y: number, content: string, attributes = ""): string {
  return `<text x="${short(x)}" y="${short(y)}" ${attributes}>${escaped(content)}</text>`;
}

/**
 * Escapes text for XML and HTML. Characters that XML does not allow, or that would turn the text round, are as
 * {@link visible} shows them.
 */
function escaped(content: string): string {
  return visible(content)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replace(/[\ufffe\uffff]/g, "\ufffd");
}

const PAGE_STYLE = [
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

/** The origin of a chart's values, for the text of the page. */
export interface ChartOrigin {
  /** One job, or those that are compared. */
  readonly jobs: readonly string[];
  /** Where the history was read. */
  readonly source: string;
  readonly madeMs: number;
}

/** Writes a chart as one page that needs nothing else: no script, no network. */
export function htmlPage(chart: Chart, { jobs, source, madeMs }: ChartOrigin): string {
  const title = `${chart.title} of ${jobs.length > 1 ? "jobs" : "job"} ${jobs.join(", ")}`;
  const owner = jobs.length > 1 ? "job" : "trainer";
  const whose = chart.title === "norm" ? `${owner} and parameter` : owner;
  const rows = chart.series.map(({ name, points }, rank) => {
    const last = points.at(-1)?.mean;
    const values = points.reduce((sum, { count }) => sum + count, 0);
    const least = Math.min(...points.map(({ min }) => min));
    const largest = Math.max(...points.map(({ max }) => max));
    const ends = points.length === 0 ? [undefined, undefined] : [least, largest];
    const cells = [String(values), ...[...ends, last].map(compactNumber)];
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
    `<style>${PAGE_STYLE}</style>`,
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
