import { ask, errorText, jobPath } from "./api.ts";
import { fill, head, make, statusLine } from "./dom.ts";
import { countText } from "./format.ts";
import type { JobView } from "./job.ts";
import { type ChartContent, type Line, LineChart } from "./line-chart.ts";
import type { View } from "./view.ts";

/** How often a chart that is seen is drawn anew while updates come. */
const AGAIN_MS = 10_000;

/** Lines that a chart shows; those with the most values come first. */
export const LINES_MAX = 16;

const HEIGHT = 380;

/** A chart as `pserver plot --json` prints it, as far as it is shown. */
interface ChartEntry {
  readonly series: readonly {
    readonly name: string;
    readonly points: readonly { readonly x: number; readonly mean: number }[];
  }[];
  readonly notFiniteCount: number;
  readonly damage: readonly string[];
}

/** Names a chart: what it shows, and along what. */
interface ChartQuery {
  /** A name in notes, or `norm`. */
  readonly value: string;
  readonly by: "time" | "step";
  readonly isLog: boolean;
}

/** Asks for a chart; returns what it shows, and what is to be said about it. @throws as `ask`. */
export async function askChart(
  job: string,
  { value, by, isLog }: ChartQuery,
  signal: AbortSignal,
): Promise<{ readonly content: ChartContent; readonly remarks: string }> {
  const entry = await ask<ChartEntry>(jobPath(job, "chart", { value, by }), signal);
  const series = [...entry.series].sort((a, b) => b.points.length - a.points.length);
  const lines = series.slice(0, LINES_MAX).map(
    ({ name, points }): Line => ({
      name,
      x: points.map(({ x }) => x),
      y: points.map(({ mean }) => mean),
    }),
  );
  const label = `${value} by ${by} of ${lines.map(({ name }) => name).join(", ")}`;
  return { content: { lines, by, isLog, label }, remarks: remarksOn(entry, lines.length, value) };
}

function remarksOn(
  { series, notFiniteCount, damage }: ChartEntry,
  shown: number,
  value: string,
): string {
  const parts: string[] = [];
  if (series.length === 0) {
    parts.push(
      `Nothing has been noted as ${value} yet; a trainer does that by note({ ${value}: … }).`,
    );
  }
  if (series.length > shown)
    parts.push(`${shown} of ${countText(series.length, "line")} are shown.`);
  if (notFiniteCount > 0) parts.push(`${countText(notFiniteCount, "value")} not finite.`);
  return [...parts, ...damage].join(" ");
}

/** Shows losses, other notes and norms over the whole life of a job. */
export function charts(): View {
  const chart = new LineChart(HEIGHT);
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
  const told = statusLine();
  const element = make(
    "section",
    {},
    head(
      "Notes and norms",
      make(
        "p",
        { class: "soft" },
        "What trainers have noted, and norm: the L2 norm of each gradient",
      ),
    ),
    make(
      "form",
      { class: "controls", onsubmit: submit },
      make("label", {}, "Show", value, values),
      make("label", {}, "by", by),
      make("label", {}, log, "Logarithmic"),
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
    const axis = by.value === "step" ? "step" : "time";
    const query = { value: value.value.trim() || "loss", by: axis, isLog: log.checked } as const;
    try {
      const { content, remarks } = await askChart(job, query, signal);
      chart.show(content);
      fill(told, remarks);
    } catch (error) {
      if (!signal.aborted) fill(told, `✕ ${errorText(error)}`);
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
