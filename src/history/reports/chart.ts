import type { UpdateEvent } from "../../actors/journal/describe-record.ts";

/** Number of points of a series above which neighbours are joined, unless a chart says another. */
export const POINTS_MAX = 4096;

/** Number of labels that a chart keeps: those of the first named notes. */
const LABELS_MAX = 64;

/** Number of values that are not finite of which a chart keeps the places. */
const NOT_FINITE_MAX = 4096;

/** How notes name values that are not finite, which are no numbers in JSON. */
const NOT_FINITE_WORD = /^[+-]?(?:nan|inf(?:inity)?)$/i;

/** Consecutive values of a series, as one point. */
export interface SeriesPoint {
  /** Place of the first value: milliseconds since 1970 or since the job's first value, or a step. */
  readonly x: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly count: number;
}

/** The values of one trainer, or of one job if several are compared, and, of norms, of one parameter. */
export interface Series {
  readonly name: string;
  readonly points: readonly SeriesPoint[];
}

/** The name of a note, drawn at the place of the note. */
export interface Label {
  readonly x: number;
  readonly name: string;
}

/** A value that is NaN or an infinity, which has a place on the horizontal axis only. */
export interface NotFinite {
  readonly x: number;
  /** Name of the series that it belongs to. */
  readonly name: string;
}

/** The ends of an axis. */
export interface Extent {
  readonly min: number;
  readonly max: number;
}

/** Titles and kinds of a chart's axes. */
export interface ChartAxes {
  /** Name of the values: `norm`, or the name of a note's entry. */
  readonly title: string;
  /** What the horizontal axis shows; `elapsed` is the time since the first value or mark of the job. */
  readonly by: "time" | "elapsed" | "step";
  /** Whether equal differences or equal ratios of values have equal distances. */
  readonly scale: "linear" | "log";
}

/** The contents of a chart. */
export interface Chart extends ChartAxes {
  /** In the order of their names. */
  readonly series: readonly Series[];
  readonly labels: readonly Label[];
  /** The first values that are not finite, and how many there are in all. */
  readonly notFinite: readonly NotFinite[];
  readonly notFiniteCount: number;
  /** Ends of the axes: of `y` over all finite values, of `x` over all that is drawn; both are 0 without any. */
  readonly x: Extent;
  readonly y: Extent;
  /** Number of values of 0 or less, which have no place on a `log` scale. */
  readonly leftOut: number;
}

/** Returns a chart as `--json` prints it. */
export function chartEntry({ labels, x, y, leftOut, ...chart }: Chart): object {
  return { ...chart, marks: labels, leftOut, x, y };
}

/** Collects the values of a chart from updates in their order, in bounded memory. */
export class ChartCollector {
  readonly #axes: ChartAxes;
  readonly #pointsMax: number;
  /** Time of the first value or mark of each job; of one job alone, under the empty name. */
  readonly #starts: Map<string, number> = new Map();
  readonly #points: Map<string, SeriesPoint[]> = new Map();
  /** Number of values in a point of a series. */
  readonly #strides: Map<string, number> = new Map();
  readonly #labels: Label[] = [];
  readonly #notFinite: NotFinite[] = [];
  #notFiniteCount = 0;
  #leftOut = 0;

  /** Neighbours are joined so that no series has more than `pointsMax` points, which is 2 or more. */
  constructor(axes: ChartAxes, pointsMax = POINTS_MAX) {
    this.#axes = axes;
    this.#pointsMax = pointsMax;
  }

  /**
   * Adds the value and the label of an update; most have none. `job` is the update's where several jobs are compared: its
   * trainers are one series then.
   */
  add(event: UpdateEvent, job?: string): void {
    if (event.outcome.kind !== "applied") return;
    const mark = event.note?.["mark"];
    const value = this.#value(event);
    if (mark === undefined && value === undefined) return;
    const x = this.#x(event, job ?? "");
    if (x === undefined) return;
    if (mark !== undefined && this.#labels.length < LABELS_MAX) {
      this.#labels.push({ x, name: job === undefined ? String(mark) : `${job}: ${mark}` });
    }
    if (value === undefined) return;
    const name = nameOf(event, job);
    if (!Number.isFinite(value)) this.#addNotFinite(name, x);
    else if (this.#axes.scale === "log" && value <= 0) this.#leftOut++;
    else this.#addValue(name, x, value);
  }

  /** Returns the chart of the updates added so far. */
  chart(): Chart {
    // A trainer of which no value is finite has a line without points, so that the legend names it.
    const names = new Set([...this.#points.keys(), ...this.#notFinite.map(({ name }) => name)]);
    const series = [...names]
      .map((name) => ({ name, points: this.#points.get(name) ?? [] }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const all = series.flatMap(({ points }) => points);
    return {
      ...{ ...this.#axes, series, labels: this.#labels, leftOut: this.#leftOut },
      ...{ notFinite: this.#notFinite, notFiniteCount: this.#notFiniteCount },
      x: extent<{ readonly x: number }>([...all, ...this.#labels, ...this.#notFinite], ({ x }) => [
        x,
        x,
      ]),
      y: extent(all, ({ min, max }) => [min, max]),
    };
  }

  #x({ timeMs, note, step }: UpdateEvent, job: string): number | undefined {
    if (this.#axes.by === "time") return timeMs;
    if (this.#axes.by === "elapsed") {
      const start = this.#starts.get(job) ?? timeMs;
      this.#starts.set(job, start);
      return timeMs - start;
    }
    const noted = note?.["step"];
    return typeof noted === "number" ? noted : step;
  }

  #value({ note, block }: UpdateEvent): number | undefined {
    if (this.#axes.title === "norm") {
      // The norm is that of the finite elements.
      return (block?.statistics?.nonFinite ?? 0) > 0 ? Number.NaN : block?.statistics?.norm;
    }
    const value = note?.[this.#axes.title];
    if (typeof value === "string" && NOT_FINITE_WORD.test(value)) return Number.NaN;
    return typeof value === "number" ? value : undefined;
  }

  #addNotFinite(name: string, x: number): void {
    this.#notFiniteCount++;
    if (this.#notFinite.length < NOT_FINITE_MAX) this.#notFinite.push({ x, name });
  }

  #addValue(name: string, x: number, value: number): void {
    const points = this.#points.get(name) ?? [];
    if (points.length === 0) this.#points.set(name, points);
    const stride = this.#strides.get(name) ?? 1;
    const last = points.at(-1);
    const single = { x, min: value, max: value, mean: value, count: 1 };
    if (last !== undefined && last.count < stride) points[points.length - 1] = joined(last, single);
    else points.push(single);
    if (points.length <= this.#pointsMax) return;
    this.#strides.set(name, 2 * stride);
    const halved: SeriesPoint[] = [];
    for (let i = 0; i < points.length; i += 2) {
      const [one, other] = [points[i] as SeriesPoint, points[i + 1]];
      halved.push(other === undefined ? one : joined(one, other));
    }
    this.#points.set(name, halved);
  }
}

/** Names the series of an update. Norms of different parameters are different series. */
function nameOf({ trainer = "host", block }: UpdateEvent, job: string | undefined): string {
  const whose = job ?? trainer;
  return block === undefined ? whose : `${whose} ${block.parameter}`;
}

function joined(a: SeriesPoint, b: SeriesPoint): SeriesPoint {
  const count = a.count + b.count;
  return {
    x: a.x,
    min: Math.min(a.min, b.min),
    max: Math.max(a.max, b.max),
    mean: a.mean + ((b.mean - a.mean) * b.count) / count,
    count,
  };
}

function extent<Point>(
  points: readonly Point[],
  endsOf: (point: Point) => readonly [number, number],
): Extent {
  if (points.length === 0) return { min: 0, max: 0 };
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const point of points) {
    const [low, high] = endsOf(point);
    min = Math.min(min, low);
    max = Math.max(max, high);
  }
  return { min, max };
}
