import type { StoredBlock } from "./block.ts";
import { refused } from "./check-record.ts";
import type { StepTable } from "./steps.ts";

/**
 * Passes if the step that a gradient names is one that its block takes from this trainer. Gradients
 * that are applied at once in every job, those of integers, may name one or not in `sync`.
 * @throws BAD_VALUE, NOT_MEMBER, LATE or EARLY
 */
export function checkStep(
  steps: StepTable,
  { label, plan, contributors }: StoredBlock,
  trainer: string,
  step: number | undefined,
): void {
  if (steps.synchronization.mode === "sync" && plan.accumulator === undefined) return;
  steps.checkGradient(trainer, step);
  if (!contributors.has(trainer)) return;
  throw refused(
    "LATE",
    `${label}: expected one gradient of each trainer in step ${step}; ` + "received another one",
  );
}
