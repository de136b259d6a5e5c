import { ask, askInTurn, errorText, jobPath } from "./api.ts";
import { askChart } from "./charts.ts";
import { type Column, fill, head, make, statusLine, table } from "./dom.ts";
import { ageText, numberText, shapeText, shareText, timeText } from "./format.ts";
import { GoOn } from "./go-on.ts";
import type { JobView } from "./job.ts";
import { LineChart } from "./line-chart.ts";
import type { View } from "./view.ts";

/** Places of the slider; the last one is the newest state. */
const PLACES = 1000;

/** How long the slider must rest before the model is rebuilt. */
const REST_MS = 250;

/** How often the newest moment is looked up while the slider is there. */
const AGAIN_MS = 10_000;

/** How long the server may take to look up moments and losses. */
const ASK_MS = 15_000;

const CHART_HEIGHT = 140;

/** From when to when the model can be rebuilt, in milliseconds since 1970. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** What the values of a parameter were like. */
interface Summary {
  readonly name: string;
  readonly shape: readonly number[];
  readonly version: { readonly least: number; readonly most: number };
  readonly norm: number | string;
  readonly min: number | string;
  readonly max: number | string;
  readonly nonFinite: number;
  readonly histogram: readonly number[];
  readonly toNow?: {
    readonly differing?: number;
    readonly largest?: number;
    readonly mean?: number;
  };
}

/** The model at a moment, as far as it is shown. */
interface ModelAt {
  readonly parameters: readonly Summary[];
}

/** Shows the model as it was at the time that a slider is dragged to, and lets a job go on from there. */
export function moment(): View {
  const chart = new LineChart(CHART_HEIGHT);
  const slider = make("input", {
    type: "range",
    min: 0,
    max: PLACES,
    value: PLACES,
    step: 1,
    id: "moment",
    disabled: true,
  });
  const time = make("output", { for: "moment", class: "moment" });
  const [from, to] = [make("span"), make("span")];
  const told = statusLine();
  const list = make("div");
  const goOn = new GoOn();
  const element = make(
    "div",
    { class: "views" },
    make(
      "section",
      {},
      head("The model at a moment"),
      chart.element,
      make(
        "div",
        { class: "slider" },
        make("label", { for: "moment" }, "Time: ", time),
        slider,
        make("div", { class: "ends soft" }, from, to),
      ),
      told,
    ),
    make("section", {}, head("Parameters"), list),
    goOn.element,
  );
  chart.element.hidden = true;
  let view: JobView | undefined;
  let span: Span | undefined;
  let lookedUpMs = 0;
  let asking = new AbortController();
  let resting = 0;

  const isNow = (): boolean => Number(slider.value) === PLACES;
  const timeAt = ({ from: first, to: last }: Span): number =>
    Math.round(first + ((last - first) * Number(slider.value)) / PLACES);

  slider.addEventListener("input", () => {
    tellTime();
    clearTimeout(resting);
    resting = window.setTimeout(() => void show(), REST_MS);
  });

  /** Says which moment the slider is at. */
  function tellTime(): void {
    if (span === undefined || view === undefined) return;
    const timeMs = timeAt(span);
    const before = `${timeText(timeMs)}, ${ageText(span.to - timeMs)} before the newest record`;
    const text = isNow() ? "now" : before;
    fill(time, text);
    slider.setAttribute("aria-valuetext", text);
    fill(from, timeText(span.from));
    fill(to, "now");
    chart.mark(isNow() ? undefined : timeMs);
    const point = isNow() ? undefined : new Date(timeMs).toISOString();
    goOn.update(view, point, isNow() ? "as it is now" : `as of ${timeText(timeMs)}`);
  }

  async function load(name: string): Promise<void> {
    fill(told, "What is kept of the job is looked up …");
    void drawLosses(name);
    await lookUp(name);
    if (span !== undefined) await show();
  }

  /** Looks up which moments can be shown. */
  async function lookUp(name: string): Promise<void> {
    lookedUpMs = Date.now();
    try {
      const signal = AbortSignal.timeout(ASK_MS);
      const found = (await ask<Span | null>(jobPath(name, "span"), signal)) ?? undefined;
      if (name !== view?.name) return;
      span = found;
      slider.disabled = span === undefined;
      if (span === undefined) fill(told, "Nothing has been recorded yet.");
      tellTime();
    } catch (error) {
      fill(told, `✕ ${errorText(error)}`);
    }
  }

  async function drawLosses(name: string): Promise<void> {
    const query = { value: "loss", by: "time", isLog: false } as const;
    // Without losses the slider is enough.
    const found = await askChart(name, query, AbortSignal.timeout(ASK_MS)).catch(() => undefined);
    const hasLines = found !== undefined && found.content.lines.length > 0;
    chart.element.hidden = !hasLines;
    if (hasLines && name === view?.name) chart.show(found.content);
  }

  async function show(): Promise<void> {
    if (view === undefined || span === undefined) return;
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    tellTime();
    fill(told, "The model is rebuilt from the journals …");
    const isNewest = isNow();
    const at = isNewest ? "now" : new Date(timeAt(span)).toISOString();
    try {
      const { parameters } = await askInTurn<ModelAt>(jobPath(view.name, "model", { at }), signal);
      fill(
        list,
        table("Parameters at this moment", COLUMNS, parameters, "There were no parameters."),
      );
      fill(told, isNewest ? "Drag the slider to see the model as it was." : "");
    } catch (error) {
      if (!signal.aborted) fill(told, `✕ ${errorText(error)}`);
    }
  }

  return {
    element,
    update: (newest: JobView) => {
      const isOther = newest.name !== view?.name;
      view = newest;
      if (isOther) void load(newest.name);
      else if (isNow() && Date.now() - lookedUpMs > AGAIN_MS) void lookUp(newest.name);
      else tellTime();
    },
  };
}

const COLUMNS: readonly Column<Summary>[] = [
  { title: "parameter", className: "name", cell: ({ name }) => name },
  { title: "shape", cell: ({ shape }) => shapeText(shape) },
  {
    title: "version",
    hint: "how many updates its blocks have had: the most of them",
    isNumber: true,
    cell: ({ version }) => numberText(version.most),
  },
  { title: "L2 norm", isNumber: true, cell: ({ norm }) => numberText(norm) },
  { title: "least", isNumber: true, cell: ({ min }) => numberText(min) },
  { title: "largest", isNumber: true, cell: ({ max }) => numberText(max) },
  {
    title: "values",
    hint: "how many values lie where, from the least to the largest",
    cell: ({ histogram, name }) => histogramOf(histogram, name),
  },
  {
    title: "changed since",
    hint: "elements that are different now",
    isNumber: true,
    cell: changedText,
  },
  {
    title: "by up to",
    hint: "the largest difference of an element",
    isNumber: true,
    cell: ({ toNow }) => numberText(toNow?.largest),
  },
];

function changedText({ toNow, shape }: Summary): string {
  if (toNow?.differing === undefined) return "replaced";
  return shareText(
    toNow.differing,
    shape.reduce((product, size) => product * size, 1),
  );
}

const SVG = "http://www.w3.org/2000/svg";

function histogramOf(bars: readonly number[], name: string): SVGElement {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${bars.length} 10`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "histogram");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `histogram of the values of ${name}`);
  const most = Math.max(1, ...bars);
  bars.forEach((count, i) => {
    if (count === 0) return;
    const bar = document.createElementNS(SVG, "rect");
    // A bar that can be seen, however few values it stands for.
    const height = Math.max(0.4, (10 * count) / most);
    const place = { x: i, y: 10 - height, width: 0.85, height };
    for (const [key, value] of Object.entries(place)) bar.setAttribute(key, String(value));
    svg.append(bar);
  });
  return svg;
}
