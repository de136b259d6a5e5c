import type { Spread } from "../statistics.ts";
import type { InitializationTime } from "./our-steps.ts";
import type { StepTime } from "./step-times.ts";

/** The table of training steps. */
export function stepRows(found: readonly StepTime[]): string[][] {
  return [
    ["a step of", "on", "ms", "CPU ms", "CPU s per GB"],
    ...found.map(({ step, maker, ms, cpuMs, cpuSecondsPerGb }) => [
      step,
      maker,
      range(ms),
      Object.entries(cpuMs)
        .map(([role, each]) => `${role} ${each.toFixed(1)}`)
        .join(", "),
      cpuSecondsPerGb.toFixed(1),
    ]),
  ];
}

/** The table of how long initializations took. */
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
