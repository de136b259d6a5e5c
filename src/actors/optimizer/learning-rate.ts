import type { LearningRate } from "../../protocol/config/index.ts";
import type { Kernels } from "../kernel/kernels.ts";

/**
 * The learning rate of update `count`, which is 1 for the first; the formulas are at
 * {@link LearningRate}. The same bits on every machine: powers and cosines come from the kernels.
 */
export function learningRateAt(kernels: Kernels, schedule: LearningRate, count: number): number {
  const rate = scheduledRate(kernels, schedule, count);
  const { warmup } = schedule;
  if (warmup === undefined || count >= warmup.steps) return rate;
  return rate * (warmup.from + ((1 - warmup.from) * count) / warmup.steps);
}

/** Whether {@link learningRateAt} is the same for every update. */
export function isConstantRate({ schedule, warmup }: LearningRate): boolean {
  return schedule === "constant" && warmup === undefined;
}

function scheduledRate(kernels: Kernels, schedule: LearningRate, count: number): number {
  switch (schedule.schedule) {
    case "constant":
      return schedule.rate;
    case "linear":
      return Math.max(schedule.rate - schedule.a * count, schedule.b);
    case "polynomial":
      return schedule.rate * kernels.powF64(1 + schedule.a * count, -schedule.b);
    case "exponential":
      return schedule.rate * kernels.powF64(schedule.a, count / schedule.b);
    case "discrete-exponential":
      return schedule.rate * kernels.powF64(schedule.a, Math.floor(count / schedule.b));
    case "cosine": {
      const { rate, min, steps } = schedule;
      const wave = kernels.cosF64((Math.PI * Math.min(count, steps)) / steps);
      return min + ((rate - min) * (1 + wave)) / 2;
    }
    case "step": {
      // The first row begins at 0, so that a row is always found.
      const row = schedule.table.findLast(([from]) => from <= count);
      return row?.[1] ?? Number.NaN;
    }
  }
}
