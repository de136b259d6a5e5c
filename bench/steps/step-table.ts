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

/**
 * Makes a table for each step, in the order in which they were measured: who made it, the time of
 * a step, its ratio to that of raw steps in the same round, and the CPU time of all processes.
 */
export function comparisonTables(found: readonly StepTime[]): string[][][] {
  const steps = [...new Set(found.map(({ step }) => step))];
  return steps.map((name) => [
    [name, "ms a step", "to raw", "CPU ms a step"],
    ...found
      .filter(({ step }) => step === name)
      .map(({ maker, ms, toRaw, cpuMsOfAll }) => [
        maker,
        range(ms),
        toRaw === undefined ? "" : range(toRaw, 2),
        cpuMsOfAll.toFixed(1),
      ]),
  ]);
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

function range({ median, min, max }: Spread, digits = 1): string {
  return `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;
}

function byRole(values: Readonly<Record<string, number>>, digits: number): string {
  return Object.entries(values)
    .map(([role, value]) => `${role} ${value.toFixed(digits)}`)
    .join(", ");
}
