// How a parameter is updated and how the trainers of a job keep step: types, defaults and checks.
export * from "./call-values.ts";
export { type LearningRate, type LearningRateInput, STEP_ROWS_MAX } from "./learning-rate.ts";
export { OPTIMIZERS, type Optimizer, type OptimizerInput } from "./optimizer.ts";
export { PADDLE_BYTES_MAX, type PaddleConfigs } from "./paddle/from-paddle.ts";
export * from "./parameter-config.ts";
export * from "./recent-configs.ts";
export * from "./synchronization.ts";
export { CONFIG_DEPTH_MAX, CONFIG_TEXT_MAX, CONFIG_TOKENS_MAX } from "./text.ts";
export * from "./to-config.ts";
