import { ask, errorText, jobPath } from "./api.ts";
import { fill, make } from "./dom.ts";
import type { JobView, View } from "./job.ts";
import { type Line, LineChart } from "./line-chart.ts";

/** How often a chart that is seen is drawn anew while updates come. */
const AGAIN_MS = 10_000;

/** Lines that a chart shows; those with the most values come first. */
const LINES_MAX = 16;

/** A chart as `pserver plot --json` prints it, as far as it is shown. */
interface ChartEntry {
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly { readonly x: number; readonly mean: number }[];
  }[];
  readonly notFiniteCount: number;
  readonly damage: readonly string[];
}

/** Shows losses, other notes and norms over the whole life of a job. */
export function charts(): View {
  const chart = new LineChart();
  const value = make("input", { value: "loss", list: "values", size: 14 });
  const values = make(
    "datalist",
    { id: "values" },
    ["loss", "norm", "accuracy"].map((name) => make("option", { value: name })),
  );
  const by = make(
    "select",
    {},
    ["time", "step"].map((name) => make("option", {}, name)),
  );
  const log = make("input", { type: "checkbox" });
  const told = make("p", { class: "soft", role: "status" });
  const element = make(
    "section",
    {},
    make("h2", {}, "Losses, other notes, and norms of gradients"),
    make(
      "form",
      { class: "controls", onsubmit: submit },
      make("label", {}, "show", value, values),
      make("label", {}, "by", by),
      make("label", {}, log, "logarithmic"),
    ),
    chart.element,
    told,
  );
  let job: string | undefined;
  let drawnMs = 0;
  let asking = new AbortController();

  function submit(event: Event): void {
    event.preventDefault();
    void draw();
  }
  for (const control of [value, by, log]) control.addEventListener("change", () => void draw());

  async function draw(): Promise<void> {
    if (job === undefined) return;
    drawnMs = Date.now();
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const query = { value: value.value || "loss", by: by.value };
    try {
      const entry = await ask<ChartEntry>(jobPath(job, "chart", query), signal);
      const series = [...entry.series].sort((a, b) => b.points.length - a.points.length);
      const lines = series.slice(0, LINES_MAX).map(
        ({ name, points }): Line => ({
          name,
          x: points.map(({ x }) => x),
          y: points.map(({ mean }) => mean),
        }),
      );
      const what = `${query.value} by ${query.by} of ${lines.map(({ name }) => name).join(", ")}`;
      chart.show(lines, query.by === "step" ? "step" : "time", log.checked, what);
      fill(told, tellOf(entry, lines.length, query.value));
    } catch (error) {
      if (!signal.aborted) fill(told, errorText(error));
    }
  }

  return {
    element,
    update: ({ name }: JobView) => {
      const isOther = name !== job;
      job = name;
      if (isOther || Date.now() - drawnMs > AGAIN_MS) void draw();
    },
  };
}

function tellOf(
  { series, notFiniteCount, damage }: ChartEntry,
  shown: number,
  value: string,
): string {
  const parts: string[] = [];
  if (series.length === 0) parts.push(`Nothing has been noted as ${value} yet.`);
  if (series.length > shown) parts.push(`${shown} of ${series.length} lines are shown.`);
  if (notFiniteCount > 0) parts.push(`${notFiniteCount} values are not finite.`);
  return [...parts, ...damage].join(" ");
}
