import type { LearningRate } from "../../../../src/protocol/config/index.ts";

/** The learning rate of update n = 1, 2, 3, …, warm-up included, as section "Configuration" says. */
export function referenceRate(schedule: LearningRate, n: number): number {
  const { warmup } = schedule;
  const rate = scheduledRate(schedule, n);
  if (warmup === undefined || n >= warmup.steps) return rate;
  return rate * (warmup.from + ((1 - warmup.from) * n) / warmup.steps);
}

function scheduledRate(schedule: LearningRate, n: number): number {
  switch (schedule.schedule) {
    case "constant":
      return schedule.rate;
    case "linear":
      return Math.max(schedule.rate - schedule.a * n, schedule.b);
    case "polynomial":
      return schedule.rate * (1 + schedule.a * n) ** -schedule.b;
    case "exponential":
      return schedule.rate * schedule.a ** (n / schedule.b);
    case "discrete-exponential":
      return schedule.rate * schedule.a ** Math.floor(n / schedule.b);
    case "cosine": {
      const { rate, min, steps } = schedule;
      return min + ((rate - min) * (1 + Math.cos((Math.PI * Math.min(n, steps)) / steps))) / 2;
    }
    case "step": {
      let current = Number.NaN;
      for (const [from, rate] of schedule.table) if (from <= n) current = rate;
      return current;
    }
  }
}
