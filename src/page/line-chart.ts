import uPlot from "uplot";
import { make } from "./dom.ts";
import { numberText } from "./format.ts";

/** One line of a chart. */
export interface Line {
  readonly name: string;
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
}

/** Colours and dashes of lines, in turn: lines differ without colours, too. */
const STROKES = [
  ["#3572c6", []],
  ["#d2691e", [8, 4]],
  ["#2e8b57", [2, 3]],
  ["#a04db3", [10, 3, 2, 3]],
  ["#b3891a", [4, 4]],
  ["#c2415c", [14, 4]],
  ["#2a9aa8", [2, 6]],
  ["#7a7f88", [6, 2]],
] as const;

const HEIGHT = 300;

/** Draws lines over time or steps; the element is as wide as its place, and follows it. */
export class LineChart {
  readonly element: HTMLElement = make("div", { class: "chart" });
  readonly #observer: ResizeObserver;
  #plot: uPlot | undefined;

  constructor() {
    this.#observer = new ResizeObserver(() => {
      this.#plot?.setSize({ width: this.#width(), height: HEIGHT });
    });
    this.#observer.observe(this.element);
  }

  /** Shows these lines in place of others. `label` describes the chart for those who do not see it. */
  show(lines: readonly Line[], by: "time" | "step", isLog: boolean, label: string): void {
    this.#plot?.destroy();
    this.element.setAttribute("role", "img");
    this.element.setAttribute("aria-label", label);
    const style = getComputedStyle(document.documentElement);
    const [ink, grid] = [style.getPropertyValue("--soft"), style.getPropertyValue("--line")];
    const scale = by === "time" ? 1000 : 1;
    const tables = lines.map(({ x, y }): uPlot.AlignedData => [x.map((at) => at / scale), [...y]]);
    const data: uPlot.AlignedData = tables.length === 0 ? [[]] : uPlot.join(tables);
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid } };
    this.#plot = new uPlot(
      {
        width: this.#width(),
        height: HEIGHT,
        scales: { x: { time: by === "time" }, y: { distr: isLog ? 3 : 1 } },
        axes: [axis, { ...axis, size: 64, values: (_, ticks) => ticks.map(tickText) }],
        series: [{}, ...lines.map(({ name }, i) => seriesOf(name, i))],
        legend: { live: true },
      },
      data,
      this.element,
    );
  }

  #width(): number {
    return Math.max(240, this.element.clientWidth);
  }
}

function seriesOf(name: string, i: number): uPlot.Series {
  const [stroke, dash] = STROKES[i % STROKES.length] ?? STROKES[0];
  const value = (_: uPlot, y: number | null): string => numberText(y);
  return { label: name, stroke, dash: [...dash], width: 1.5, spanGaps: true, value };
}

function tickText(value: number | null): string {
  return value === null ? "" : numberText(value);
}
