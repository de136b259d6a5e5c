import uPlot from "uplot";
import { make } from "./dom.ts";
import { numberText } from "./format.ts";

/** One line of a chart. */
export interface Line {
  readonly name: string;
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
}

/** What a chart shows. */
export interface ChartContent {
  readonly lines: readonly Line[];
  readonly by: "time" | "step";
  readonly isLog: boolean;
  /** Describes the chart for those who do not see it. */
  readonly label: string;
}

/** Dashes of lines, in turn: lines differ without colours, too. Their colours are `--line-1` and so on. */
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 4], [14, 4], [2, 6], [6, 2]] as const;

const FONT = "12px system-ui, sans-serif";

/** Draws lines over time or steps; the element is as wide as its place, and follows it and the reader's colours. */
export class LineChart {
  readonly element: HTMLElement = make("div", { class: "chart" });
  readonly #height: number;
  #plot: uPlot | undefined;
  #content: ChartContent | undefined;
  #markMs: number | undefined;

  constructor(height: number) {
    this.#height = height;
    this.element.style.minHeight = `${height}px`;
    new ResizeObserver(() => {
      this.#plot?.setSize({ width: this.#width(), height });
    }).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /** Shows these lines in place of others; where only their values differ, the reader's cursor stays. */
  show(content: ChartContent): void {
    const before = this.#content;
    this.#content = content;
    if (before === undefined || outlineOf(before) !== outlineOf(content)) this.#draw();
    else this.#plot?.setData(dataOf(content));
  }

  /** Marks a time in milliseconds since 1970, or none, by a vertical line. */
  mark(timeMs: number | undefined): void {
    if (timeMs === this.#markMs) return;
    this.#markMs = timeMs;
    this.#plot?.redraw(false);
  }

  #draw(): void {
    if (this.#content === undefined) return;
    const { lines, by, isLog, label } = this.#content;
    this.#plot?.destroy();
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", label);
    const style = getComputedStyle(document.documentElement);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const axis: uPlot.Axis = {
      ...{ stroke: color("--soft"), font: FONT, gap: 8, size: 32 },
      grid: { stroke: color("--grid"), width: 1 },
      ticks: { show: false },
    };
    this.#plot = new uPlot(
      {
        ...{ width: this.#width(), height: this.#height },
        padding: [12, 16, 0, 0],
        scales: { x: { time: by === "time" }, y: { distr: isLog ? 3 : 1 } },
        axes: [
          by === "time" ? { ...axis, space: 76, values: clockTicks } : axis,
          { ...axis, size: 60, values: (_, ticks) => ticks.map(tickText) },
        ],
        series: [
          { label: by, value: by === "time" ? "{HH}:{mm}:{ss}" : (_, step) => numberText(step) },
          ...lines.map(({ name }, i) =>
            seriesOf(name, i, color(`--line-${(i % DASHES.length) + 1}`)),
          ),
        ],
        cursor: { points: { size: 7 } },
        legend: { show: lines.length > 0, live: true },
        hooks: { draw: [(plot) => this.#drawMark(plot, color("--accent"))] },
      },
      dataOf(this.#content),
      this.element,
    );
  }

  #drawMark({ ctx, bbox, valToPos }: uPlot, color: string): void {
    if (this.#markMs === undefined) return;
    const x = Math.round(valToPos(this.#markMs / 1000, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) return;
    ctx.save();
    ctx.strokeStyle = color;
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }

  #width(): number {
    return Math.max(240, this.element.clientWidth);
  }
}

/** What of a chart is drawn anew where it differs. */
function outlineOf({ lines, by, isLog, label }: ChartContent): string {
  return JSON.stringify([by, isLog, label, lines.map(({ name }) => name)]);
}

function dataOf({ lines, by }: ChartContent): uPlot.AlignedData {
  const scale = by === "time" ? 1000 : 1;
  const tables = lines.map(({ x, y }): uPlot.AlignedData => [x.map((at) => at / scale), [...y]]);
  return tables.length === 0 ? [[]] : uPlot.join(tables);
}

function seriesOf(name: string, i: number, stroke: string): uPlot.Series {
  const dash = DASHES[i % DASHES.length] ?? [];
  const value = (_: uPlot, y: number | null): string => numberText(y);
  // A line with few points would else be hard to find.
  const points: uPlot.Series.Points = {
    show: (plot, series) => (plot.data[series]?.length ?? 0) < 60,
    size: 5,
  };
  return { label: name, stroke, dash: [...dash], width: 1.75, spanGaps: true, value, points };
}

const MINUTE_S = 60;
const DAY_S = 86_400;

/** Writes times of an axis, in seconds since 1970, as exactly as their distance asks for. */
function clockTicks(
  _: uPlot,
  times: number[],
  _axis: number,
  _space: number,
  step: number,
): string[] {
  return times.map((seconds) => {
    const time = new Date(seconds * 1000);
    if (step >= DAY_S) return time.toLocaleDateString([], { month: "short", day: "numeric" });
    const clock = time.toLocaleTimeString([], { hour12: false });
    return step < MINUTE_S ? clock : clock.slice(0, -3);
  });
}

function tickText(value: number | null): string {
  return value === null ? "" : numberText(value);
}
