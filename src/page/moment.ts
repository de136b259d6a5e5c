import { ask, askInTurn, errorText, jobPath } from "./api.ts";
import { type Column, fill, make, table } from "./dom.ts";
import { numberText, shapeText, timeText } from "./format.ts";
import type { JobView, View } from "./job.ts";

/** Places of the slider. */
const PLACES = 1000;

/** How long the slider must rest before the model is rebuilt. */
const REST_MS = 250;

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

/** Shows the model as it was at the time that a slider is dragged to, rebuilt from the journals. */
export function moment(): View {
  const slider = make("input", {
    type: "range",
    min: 0,
    max: PLACES,
    value: PLACES,
    step: 1,
    id: "moment",
  });
  const time = make("output", { for: "moment" });
  const told = make("p", { class: "soft", role: "status" });
  const list = make("div");
  const element = make(
    "section",
    {},
    make("h2", {}, "The model at a moment"),
    make("div", { class: "slider" }, make("label", { for: "moment" }, "Time: ", time), slider),
    told,
    list,
  );
  let job: string | undefined;
  let span: Span | undefined;
  let asking = new AbortController();
  let resting = 0;

  const timeAt = ({ from, to }: Span): number =>
    from + ((to - from) * Number(slider.value)) / PLACES;

  slider.addEventListener("input", () => {
    if (span === undefined) return;
    fill(time, timeText(timeAt(span)));
    slider.setAttribute("aria-valuetext", timeText(timeAt(span)));
    clearTimeout(resting);
    resting = window.setTimeout(() => void show(), REST_MS);
  });

  async function load(name: string): Promise<void> {
    try {
      span =
        (await ask<Span | null>(jobPath(name, "span"), AbortSignal.timeout(15_000))) ?? undefined;
      if (span === undefined) fill(told, "Nothing has been recorded yet.");
      else await show();
    } catch (error) {
      fill(told, errorText(error));
    }
  }

  async function show(): Promise<void> {
    if (job === undefined || span === undefined) return;
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const isNow = Number(slider.value) === PLACES;
    fill(time, isNow ? "now" : timeText(timeAt(span)));
    fill(told, "The model is rebuilt from the journals …");
    const at = isNow ? "now" : new Date(timeAt(span)).toISOString();
    try {
      const { parameters } = await askInTurn<ModelAt>(jobPath(job, "model", { at }), signal);
      fill(
        list,
        table("Parameters at this moment", COLUMNS, parameters, "There were no parameters."),
      );
      fill(told, isNow ? "Drag the slider to see the model as it was." : "");
    } catch (error) {
      if (!signal.aborted) fill(told, errorText(error));
    }
  }

  return {
    element,
    update: ({ name }: JobView) => {
      if (name === job) return;
      job = name;
      void load(name);
    },
  };
}

const COLUMNS: readonly Column<Summary>[] = [
  { title: "parameter", className: "name", cell: ({ name }) => name },
  { title: "shape", cell: ({ shape }) => shapeText(shape) },
  { title: "version", isNumber: true, cell: ({ version }) => version.most },
  { title: "norm", isNumber: true, cell: ({ norm }) => numberText(norm) },
  { title: "least", isNumber: true, cell: ({ min }) => numberText(min) },
  { title: "largest", isNumber: true, cell: ({ max }) => numberText(max) },
  { title: "values", cell: ({ histogram, name }) => histogramOf(histogram, name) },
  { title: "changed since", isNumber: true, cell: changedText },
  { title: "by up to", isNumber: true, cell: ({ toNow }) => numberText(toNow?.largest) },
];

function changedText({ toNow, shape }: Summary): string {
  if (toNow?.differing === undefined) return "replaced";
  const elements = shape.reduce((product, size) => product * size, 1);
  return `${((100 * toNow.differing) / elements).toFixed(0)} %`;
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
    const bar = document.createElementNS(SVG, "rect");
    const height = (10 * count) / most;
    const place = { x: i, y: 10 - height, width: 0.9, height };
    for (const [key, value] of Object.entries(place)) bar.setAttribute(key, String(value));
    svg.append(bar);
  });
  return svg;
}
