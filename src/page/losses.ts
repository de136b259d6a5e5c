import { errorText } from "./api.ts";
import { askChart, LINES_MAX } from "./charts.ts";
import { fill, head, make, statusLine } from "./dom.ts";
import type { JobView, UpdateEntry } from "./job.ts";
import { type Line, LineChart } from "./line-chart.ts";
import type { View } from "./view.ts";

const HEIGHT = 240;

/** Shows the losses that trainers have noted, by time: those of before are asked for once, later ones are added. */
export function lossChart(): View {
  const chart = new LineChart(HEIGHT);
  const told = statusLine("The losses are read …");
  const element = make("section", {}, head("Loss"), chart.element, told);
  const losses = new Losses();
  chart.element.hidden = true;
  let job: string | undefined;

  async function load(name: string): Promise<void> {
    try {
      const query = { value: "loss", by: "time", isLog: false } as const;
      const { content, remarks } = await askChart(name, query, AbortSignal.timeout(ASK_MS));
      losses.begin(content.lines);
      fill(told, remarks);
    } catch (error) {
      fill(told, `✕ ${errorText(error)}`);
    }
    show();
  }

  function show(): void {
    const { lines } = losses;
    chart.element.hidden = lines.length === 0;
    if (lines.length === 0) return;
    const label = `loss by time of ${lines.map(({ name }) => name).join(", ")}`;
    chart.show({ lines, by: "time", isLog: false, label });
  }

  return {
    element,
    update: ({ name, updates }: JobView) => {
      if (name !== job) {
        job = name;
        void load(name);
      } else if (losses.hasBegun && losses.add(updates)) {
        fill(told);
        show();
      }
    },
  };
}

/** How long the losses of before may take to come. */
const ASK_MS = 15_000;

/** Losses of a line at most; of a longer one, every second one is kept. */
const POINTS_MAX = 4_000;

/** Losses of a trainer, by times in milliseconds since 1970. */
interface LossLine {
  readonly x: number[];
  readonly y: (number | null)[];
}

/** The losses of each trainer by time. */
class Losses {
  #lines: Map<string, LossLine> = new Map();
  #lastMs = 0;
  #hasBegun = false;

  /** Whether it has the losses of before. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Takes the losses of before. */
  begin(lines: readonly Line[]): void {
    this.#hasBegun = true;
    this.#lines = new Map(lines.map(({ name, x, y }) => [name, { x: [...x], y: [...y] }]));
    for (const { x } of lines) this.#lastMs = Math.max(this.#lastMs, x.at(-1) ?? 0);
  }

  /** Takes what is new among the newest updates; returns whether there is a loss among it. */
  add(updates: readonly UpdateEntry[]): boolean {
    let isNew = false;
    let lastMs = this.#lastMs;
    for (const { time, trainer, note } of updates) {
      const timeMs = Date.parse(time);
      const loss = note?.["loss"];
      if (timeMs <= this.#lastMs || trainer === undefined || typeof loss !== "number") continue;
      const before = this.#lines.get(trainer) ?? { x: [], y: [] };
      const line = before.x.length < POINTS_MAX ? before : thinned(before);
      this.#lines.set(trainer, line);
      line.x.push(timeMs);
      line.y.push(loss);
      lastMs = Math.max(lastMs, timeMs);
      isNew = true;
    }
    this.#lastMs = lastMs;
    return isNew;
  }

  /** The lines, those with the most values first. */
  get lines(): Line[] {
    const all = [...this.#lines].map(([name, { x, y }]): Line => ({ name, x, y }));
    return all.sort((a, b) => b.x.length - a.x.length).slice(0, LINES_MAX);
  }
}

/** Returns every second value of a line. */
function thinned({ x, y }: LossLine): LossLine {
  const isKept = (_: unknown, i: number): boolean => i % 2 === 0;
  return { x: x.filter(isKept), y: y.filter(isKept) };
}
