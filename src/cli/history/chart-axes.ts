import type { Chart, Extent } from "../../history/reports/chart.ts";
import { clockText, dateText } from "../../history/reports/update-entry.ts";
import { compactNumber } from "./numbers.ts";

/** Returns what a chart shows, in one line. */
export function chartHeading({ title, by, scale, notFiniteCount }: Chart): string {
  const scaled = scale === "log" ? ", logarithmic" : "";
  const crosses = notFiniteCount > 0 ? `; ${NOT_FINITE} not finite: ${notFiniteCount}` : "";
  return `${title} by ${AXIS_TITLES[by]}${scaled}${crosses}`;
}

const AXIS_TITLES = { time: "time (UTC)", elapsed: "time elapsed", step: "step" } as const;

/** How charts draw a value that is not finite, at their upper edge. */
export const NOT_FINITE = "×";

const [SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS] = [1000, 60_000, 3_600_000, 86_400_000];

/** How many units an axis of elapsed time has at least before the next larger unit is used. */
const UNITS_MIN = 5;

/** Returns round numbers between two ends, about `count` of them, ends included where they are round. */
export function niceTicks(min: number, max: number, count: number): number[] {
  if (!(max > min)) return [min];
  const raw = (max - min) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((each) => each * power >= raw) ?? 10) * power;
  const ticks: number[] = [];
  for (let i = Math.ceil(min / step); i * step <= max + step * 1e-9; i++) {
    // Rounds away what multiplication leaves, such as 0.30000000000000004.
    ticks.push(Number((i * step).toPrecision(12)));
  }
  return ticks;
}

/** Returns round places on a horizontal axis, about `count`; undefined on one of times of day. */
export function roundXTicks(
  { by }: Chart,
  { min, max }: Extent,
  count: number,
): number[] | undefined {
  if (by === "time") return undefined;
  const unit = by === "step" ? 1 : elapsedUnit(max - min).ms;
  return niceTicks(min / unit, max / unit, count).map((tick) => tick * unit);
}

function elapsedUnit(spanMs: number): { readonly ms: number; readonly name: string } {
  if (spanMs >= UNITS_MIN * HOUR_MS) return { ms: HOUR_MS, name: "h" };
  if (spanMs >= UNITS_MIN * MINUTE_MS) return { ms: MINUTE_MS, name: "min" };
  return { ms: SECOND_MS, name: "s" };
}

/** Writes a place on the horizontal axis. */
export function xText({ by, x }: Chart, at: number): string {
  if (by === "step") return compactNumber(at);
  if (by === "elapsed") {
    const unit = elapsedUnit(x.max - x.min);
    return `${compactNumber(at / unit.ms)} ${unit.name}`;
  }
  const span = x.max - x.min;
  if (span >= 2 * DAY_MS) return dateText(at);
  const clock = clockText(at);
  return span < 10_000 ? clock : clock.slice(0, 8);
}

/** A vertical axis. */
export interface YAxis {
  /** Returns the place of a value: 0 at the lower end of the axis, 1 at the upper one. */
  fraction(value: number): number;
  /** Returns the value at a place. */
  value(share: number): number;
  /** Returns about `count` values to write on the axis. */
  ticks(count: number): number[];
}

/** Makes the vertical axis of a chart. */
export function yAxis({ scale, y }: Chart): YAxis {
  if (scale === "log") return logAxis(y);
  const { min, max } = widened(y);
  return {
    fraction: (value) => (value - min) / (max - min),
    value: (share) => min + share * (max - min),
    ticks: (count) => niceTicks(min, max, count),
  };
}

/** Makes an axis on which equal ratios of values, which are all above 0, have equal distances. */
function logAxis(y: Extent): YAxis {
  const { min, max } = widened({ min: Math.log10(y.min), max: Math.log10(y.max) });
  return {
    fraction: (value) => (Math.log10(value) - min) / (max - min),
    value: (share) => 10 ** (min + share * (max - min)),
    ticks: (count) => logTicks(min, max, count),
  };
}

/**
 * Returns powers of ten between two exponents, or, where there are too few, round values as `niceTicks` does.
 */
function logTicks(min: number, max: number, count: number): number[] {
  const every = Math.max(1, Math.ceil((max - min) / count));
  const ticks: number[] = [];
  for (let power = Math.ceil(min / every) * every; power <= max; power += every) {
    ticks.push(Number(`1e${power}`));
  }
  return ticks.length > 1 ? ticks : niceTicks(10 ** min, 10 ** max, count);
}

/** Returns the ends of an axis, apart even if all values are the same. */
export function widened({ min, max }: Extent): Extent {
  if (max > min) return { min, max };
  const margin = Math.abs(min) > 0 ? Math.abs(min) * 0.1 : 1;
  return { min: min - margin, max: max + margin };
}
