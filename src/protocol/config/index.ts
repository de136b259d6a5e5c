// How a parameter is updated and how the trainers of a job keep step: types, defaults and checks.

export {
  CONTRIBUTION_WEIGHTS,
  type ContributionWeights,
  DILOCO_PRESETS,
  type DilocoInput,
  type DilocoPreset,
  type DilocoSettings,
  GRACE_STEPS_MAX,
  isRobust,
  LATE_DIVISORS,
  LATE_RULES,
  LATE_VERSIONS_MAX,
  MERGES,
  type Merge,
  ROUND_MS_MAX,
  type RobustMerge,
} from "./diloco.ts";
export * from "./guard.ts";
export {
  type LearningRate,
  type LearningRateInput,
  OPTIMIZERS,
  type Optimizer,
  type OptimizerInput,
  STEP_ROWS_MAX,
} from "./optimizer.ts";
export { PADDLE_BYTES_MAX, type PaddleConfigs } from "./paddle/paddle.ts";
export * from "./parameter-config.ts";
export * from "./synchronization.ts";
