export { type LearningRate, type LearningRateInput, OPTIMIZERS, type Optimizer, type OptimizerInput, STEP_ROWS_MAX, } from "./optimizer.ts";
export { PADDLE_BYTES_MAX, type PaddleConfigs } from "./paddle/paddle.ts";
export * from "./parameter-config.ts";
export * from "./synchronization.ts";
//# sourceMappingURL=index.d.ts.map