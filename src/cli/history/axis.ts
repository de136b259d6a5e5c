import { clockText, dateText, shortNumber } from "./event-text.ts";
import type { Chart } from "./series.ts";

const DAY_MS = 86_400_000;

/** Round numbers between two ends, about `count` of them, ends included where they are round. */
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

/** The text of a place on the horizontal axis. */
export function xText({ by, x }: Chart, at: number): string {
  if (by === "step") return shortNumber(at);
  const span = x.max - x.min;
  if (span >= 2 * DAY_MS) return dateText(at);
  const clock = clockText(at);
  return span < 10_000 ? clock : clock.slice(0, 8);
}

/** Both ends of an axis, apart even if all values are the same. */
export function widened({ min, max }: { min: number; max: number }): { min: number; max: number } {
  if (max > min) return { min, max };
  const margin = Math.abs(min) > 0 ? Math.abs(min) * 0.1 : 1;
  return { min: min - margin, max: max + margin };
}
