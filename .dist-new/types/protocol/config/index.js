// How a parameter is updated and how the trainers of a job keep step: types, defaults and checks.
export { OPTIMIZERS, STEP_ROWS_MAX, } from "./optimizer.js";
export { PADDLE_BYTES_MAX } from "./paddle/paddle.js";
export * from "./parameter-config.js";
export * from "./synchronization.js";
//# sourceMappingURL=index.js.map