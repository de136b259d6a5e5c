import type { UpdateEvent } from "../../actors/updates/update-event.ts";

/** Points that a series keeps at most; from then on neighbours are joined. */
const POINTS_MAX = 4096;

/** Marks that are kept; later ones are not drawn. */
const MARKS_MAX = 64;

/** Some values that stand next to each other. */
export interface SeriesPoint {
  /** Of the first of them: milliseconds since 1970, or a step. */
  readonly x: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  readonly count: number;
}

/** The values of one trainer and, of norms, one parameter. */
export interface Series {
  readonly name: string;
  readonly points: readonly SeriesPoint[];
}

/** A note that has a name. */
export interface Mark {
  readonly x: number;
  readonly name: string;
}

/** The ends of an axis. */
export interface Extent {
  readonly min: number;
  readonly max: number;
}

/** What stands on the axes of a chart. */
export interface ChartAxes {
  /** What the values are: `norm`, or the name of a note's entry. */
  readonly title: string;
  readonly by: "time" | "step";
  /** Whether equal differences or equal ratios of values have equal distances. */
  readonly scale: "linear" | "log";
}

/** What is drawn. */
export interface Chart extends ChartAxes {
  /** In the order of their names. */
  readonly series: readonly Series[];
  readonly marks: readonly Mark[];
  /** Ends of the axes, over all finite values, and of `x` over the marks, too; both are 0 without any. */
  readonly x: Extent;
  readonly y: Extent;
  /** Values of 0 or less, which have no place on a `log` scale. */
  readonly leftOut: number;
}

/** What a chart shows, in one line. */
export function chartHeading({ title, by, scale }: ChartAxes): string {
  return `${title} by ${by === "time" ? "time (UTC)" : "step"}${scale === "log" ? ", logarithmic" : ""}`;
}

/** Collects the values of a chart from updates in their order, in bounded memory. */
export class ChartCollector {
  readonly #axes: ChartAxes;
  readonly #points: Map<string, SeriesPoint[]> = new Map();
  /** How many values a point of a series has. */
  readonly #strides: Map<string, number> = new Map();
  readonly #marks: Mark[] = [];
  #leftOut = 0;

  constructor(axes: ChartAxes) {
    this.#axes = axes;
  }

  /** Takes what an update adds to the chart; most add nothing. */
  add(event: UpdateEvent): void {
    const x = this.#x(event);
    if (x === undefined || event.outcome.kind !== "applied") return;
    const mark = event.note?.["mark"];
    if (mark !== undefined && this.#marks.length < MARKS_MAX) {
      this.#marks.push({ x, name: String(mark) });
    }
    const value = this.#value(event);
    if (value === undefined || !Number.isFinite(value)) return;
    if (this.#axes.scale === "log" && value <= 0) this.#leftOut++;
    else this.#addValue(this.#nameOf(event), x, value);
  }

  /** Norms of different parameters are no series. */
  #nameOf({ trainer = "host", block }: UpdateEvent): string {
    return block === undefined ? trainer : `${trainer} ${block.parameter}`;
  }

  /** What has been collected. */
  chart(): Chart {
    const series = [...this.#points]
      .map(([name, points]) => ({ name, points }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const all = series.flatMap(({ points }) => points);
    return {
      ...{ ...this.#axes, series, marks: this.#marks, leftOut: this.#leftOut },
      x: extent<{ readonly x: number }>([...all, ...this.#marks], ({ x }) => [x, x]),
      y: extent(all, ({ min, max }) => [min, max]),
    };
  }

  #x({ timeMs, note, step }: UpdateEvent): number | undefined {
    if (this.#axes.by === "time") return timeMs;
    const noted = note?.["step"];
    return typeof noted === "number" ? noted : step;
  }

  #value({ note, block }: UpdateEvent): number | undefined {
    if (this.#axes.title === "norm") return block?.statistics?.norm;
    const value = note?.[this.#axes.title];
    return typeof value === "number" ? value : undefined;
  }

  #addValue(name: string, x: number, value: number): void {
    const points = this.#points.get(name) ?? [];
    if (points.length === 0) this.#points.set(name, points);
    const stride = this.#strides.get(name) ?? 1;
    const last = points.at(-1);
    const single = { x, min: value, max: value, mean: value, count: 1 };
    if (last !== undefined && last.count < stride) points[points.length - 1] = joined(last, single);
    else points.push(single);
    if (points.length < POINTS_MAX) return;
    this.#strides.set(name, 2 * stride);
    const halved: SeriesPoint[] = [];
    for (let i = 0; i < points.length; i += 2) {
      const [one, other] = [points[i] as SeriesPoint, points[i + 1]];
      halved.push(other === undefined ? one : joined(one, other));
    }
    this.#points.set(name, halved);
  }
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
