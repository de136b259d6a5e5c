import type { Chart, Extent, Series } from "../../history/reports/chart.ts";
import { visible } from "../../protocol/errors.ts";
import type { PaintRank, TextFormat } from "../output/colors.ts";
import { cutMiddle, textWidth } from "../output/wrap.ts";
import {
  chartHeading,
  NOT_FINITE,
  roundXTicks,
  widened,
  xText,
  type YAxis,
  yAxis,
} from "./chart-axes.ts";
import { compactNumber } from "./numbers.ts";

/** Width of a chart where no terminal limits it. */
const WIDTH_DEFAULT = 100;
const WIDTH_MAX = 240;
const WIDTH_MIN = 40;

/** Number of lines of the drawing, without axes and legend. */
const ROWS = 18;

const Y_AXIS_COLUMNS = 10;

/** Maximum columns of a label's name. */
const LABEL_COLUMNS = 16;

/** Dots of a braille character by row and column, as bits. */
const BRAILLE = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;

/** Letters that tell trainers apart where there are no colours. */
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

/** A character of the drawing. */
interface Cell {
  text: string;
  /** The series that it belongs to; undefined in a label's column or where nothing is drawn. */
  rank: number | undefined;
}

/**
 * Draws a chart as lines of a terminal: dots in the colours of the trainers, or, without colours, a letter for
 * each. A label is a dotted column with its name above.
 */
export function terminalChart(
  chart: Chart,
  format: TextFormat,
  paintRank: PaintRank,
  isColored: boolean,
): string[] {
  const terminalWidth = Number.isFinite(format.width) ? format.width : WIDTH_DEFAULT;
  const width = Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, terminalWidth));
  const columns = width - Y_AXIS_COLUMNS - 2;
  const grid = new Grid(chart, columns, ROWS);
  for (const { x } of chart.labels) grid.drawLabel(x);
  chart.series.forEach((series, rank) => {
    if (isColored) grid.drawDots(series, rank);
    else grid.drawLetters(series, rank);
  });
  const ranks = new Map(chart.series.map(({ name }, rank) => [name, rank]));
  for (const { x, name } of chart.notFinite) grid.drawCross(x, ranks.get(name));
  return [
    format.paint("strong", visible(chartHeading(chart))),
    ...labelLine(chart, grid, format),
    ...grid.rows.map((row, i) =>
      `${yLabel(chart, i)} │${rowText(row, format, paintRank)}`.trimEnd(),
    ),
    `${" ".repeat(Y_AXIS_COLUMNS)} └${"─".repeat(columns)}`,
    xLine(chart, columns),
    ...legend(chart, width, paintRank, isColored),
  ];
}

class Grid {
  readonly rows: Cell[][];
  readonly columns: number;
  readonly #x: Extent;
  readonly #y: YAxis;

  constructor(chart: Chart, columns: number, rows: number) {
    this.columns = columns;
    this.#x = widened(chart.x);
    this.#y = yAxis(chart);
    this.rows = Array.from({ length: rows }, () =>
      Array.from({ length: columns }, () => ({ text: " ", rank: undefined })),
    );
  }

  /** Returns the column of an x value, of so many columns. */
  column(x: number, columns: number = this.columns): number {
    const { min, max } = this.#x;
    return Math.min(columns - 1, Math.max(0, Math.floor(((x - min) / (max - min)) * columns)));
  }

  drawLabel(x: number): void {
    const column = this.column(x);
    for (const row of this.rows) {
      const cell = row[column];
      if (cell !== undefined) cell.text = "┊";
    }
  }

  /** Marks a value that is not finite, in the highest line. */
  drawCross(x: number, rank: number | undefined): void {
    const cell = this.rows[0]?.[this.column(x)];
    if (cell !== undefined) Object.assign(cell, { text: NOT_FINITE, rank });
  }

  /** Draws dots from the least to the largest value of each point, and a line through the means. */
  drawDots({ points }: Series, rank: number): void {
    let before: { column: number; row: number } | undefined;
    for (const { x, min, max, mean } of points) {
      const column = this.column(x, 2 * this.columns);
      for (let row = this.#row(max, 4); row <= this.#row(min, 4); row++) {
        this.#dot(column, row, rank);
      }
      const here = { column, row: this.#row(mean, 4) };
      if (before !== undefined) this.#line(before, here, rank);
      before = here;
    }
  }

  drawLetters({ points }: Series, rank: number): void {
    for (const { x, mean } of points) {
      const cell = this.rows[this.#row(mean, 1)]?.[this.column(x)];
      if (cell === undefined) continue;
      const isOther = cell.rank !== undefined && cell.rank !== rank;
      cell.text = isOther ? "*" : (LETTERS[rank % LETTERS.length] ?? "*");
      cell.rank = rank;
    }
  }

  #line(
    from: { column: number; row: number },
    to: { column: number; row: number },
    rank: number,
  ): void {
    const [columns, rows] = [to.column - from.column, to.row - from.row];
    const count = Math.max(Math.abs(columns), Math.abs(rows));
    for (let i = 1; i < count; i++) {
      const share = i / count;
      const column = Math.round(from.column + share * columns);
      this.#dot(column, Math.round(from.row + share * rows), rank);
    }
  }

  #dot(column: number, row: number, rank: number): void {
    const cell = this.rows[row >> 2]?.[column >> 1];
    if (cell === undefined) return;
    const bit = BRAILLE[row & 3]?.[column & 1] ?? 0;
    const code = cell.text.charCodeAt(0);
    const bits = code >= 0x2800 && code <= 0x28ff ? code - 0x2800 : 0;
    cell.text = String.fromCharCode(0x2800 + (bits | bit));
    cell.rank = rank;
  }

  /** Returns the row of a value, counted from the top, with `parts` rows to a line. */
  #row(value: number, parts: number): number {
    const rows = this.rows.length * parts;
    const at = Math.floor((1 - this.#y.fraction(value)) * rows);
    return Math.min(rows - 1, Math.max(0, at));
  }
}

function rowText(row: readonly Cell[], format: TextFormat, paintRank: PaintRank): string {
  let text = "";
  for (let i = 0; i < row.length; ) {
    const rank = row[i]?.rank;
    const isLabel = row[i]?.text === "┊";
    let part = "";
    for (; i < row.length && row[i]?.rank === rank && (row[i]?.text === "┊") === isLabel; i++) {
      part += row[i]?.text ?? " ";
    }
    if (rank !== undefined) text += paintRank(rank, part);
    else text += isLabel ? format.paint("faint", part) : part;
  }
  return text;
}

/** Writes the number beside a line: those of the highest, the middle and the lowest line. */
function yLabel(chart: Chart, row: number): string {
  const shares: Readonly<Record<number, number>> = {
    0: 1,
    [Math.floor(ROWS / 2)]: 0.5,
    [ROWS - 1]: 0,
  };
  const share = shares[row];
  const label = share === undefined ? "" : compactNumber(yAxis(chart).value(share));
  return label.padStart(Y_AXIS_COLUMNS);
}

function xLine(chart: Chart, columns: number): string {
  const { min, max } = widened(chart.x);
  const line = Array.from({ length: columns }, () => " ");
  let free = 0;
  for (const tick of ticksOf(chart, min, max, columns)) {
    const text = xText(chart, tick);
    const at = Math.floor(((tick - min) / (max - min)) * columns);
    if (at < free || at + text.length > columns) continue;
    [...text].forEach((character, i) => {
      line[at + i] = character;
    });
    free = at + text.length + 2;
  }
  return `${" ".repeat(Y_AXIS_COLUMNS + 2)}${line.join("")}`.trimEnd();
}

function ticksOf(chart: Chart, min: number, max: number, columns: number): number[] {
  const count = Math.max(2, Math.floor(columns / 16));
  const anywhere = (): number[] =>
    Array.from({ length: count }, (_, i) => min + ((max - min) * i) / count);
  return roundXTicks(chart, { min, max }, count) ?? anywhere();
}

/** Writes the names of labels above their columns, as far as they do not overlap. */
function labelLine(chart: Chart, grid: Grid, format: TextFormat): string[] {
  if (chart.labels.length === 0) return [];
  let line = "";
  let columns = 0;
  for (const { x, name } of chart.labels) {
    const at = grid.column(x);
    if (at < columns) continue;
    const text = cutMiddle(visible(name), Math.min(LABEL_COLUMNS, grid.columns - at));
    line += `${" ".repeat(at - columns)}${text} `;
    columns = at + textWidth(text) + 1;
  }
  line = `${" ".repeat(Y_AXIS_COLUMNS + 2)}${line}`;
  return [format.paint("faint", line.trimEnd())];
}

function legend(
  { series }: Chart,
  width: number,
  paintRank: PaintRank,
  isColored: boolean,
): string[] {
  const lines: string[] = [];
  let line = "";
  let columns = 0;
  series.forEach(({ name, points }, rank) => {
    const last = points.at(-1);
    const symbol = isColored ? "●" : (LETTERS[rank % LETTERS.length] ?? "*");
    const text = `${symbol} ${cutMiddle(visible(name), 24)} ${compactNumber(last?.mean)}`;
    if (columns > 0 && columns + textWidth(text) > width) {
      lines.push(line);
      [line, columns] = ["", 0];
    }
    line += `${columns > 0 ? "   " : ""}${paintRank(rank, text)}`;
    columns += textWidth(text) + 3;
  });
  return columns > 0 ? [...lines, line] : lines;
}
