import type { Spread } from "../statistics.ts";
import type { InitializationTime } from "./our-steps.ts";
import type { StepTime } from "./step-times.ts";

/** Makes the table of training steps. */
export function stepRows(found: readonly StepTime[]): string[][] {
  return [
    ["a step of", "on", "ms", "to raw", "CPU ms", "CPU s per GB", "peak MB"],
    ...found.map(({ step, maker, ms, toRaw, cpuMs, cpuSecondsPerGb, peakMb }) => [
      step,
      maker,
      range(ms),
      toRaw === undefined ? "" : range(toRaw),
      byRole(cpuMs, 1),
      cpuSecondsPerGb.toFixed(1),
      byRole(peakMb, 0),
    ]),
  ];
}

/** Makes the table of how long initializations took. */
export function initializationRows(found: readonly InitializationTime[]): string[][] {
  return [
    ["initialization of", "on", "parameters", "ms"],
    ...found.map(({ step, maker, parameters, ms }) => [
      step,
      maker,
      String(parameters),
      ms.toFixed(0),
    ]),
  ];
}

function range({ median, min, max }: Spread): string {
  return `${median.toFixed(1)} (${min.toFixed(1)}–${max.toFixed(1)})`;
}

function byRole(values: Readonly<Record<string, number>>, digits: number): string {
  return Object.entries(values)
    .map(([role, value]) => `${role} ${value.toFixed(digits)}`)
    .join(", ");
}
