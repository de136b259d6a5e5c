// The client for TypeScript and JavaScript: `connect` and what its calls take and return.

export type {
  LearningRate,
  LearningRateInput,
  Optimizer,
  OptimizerInput,
  PaddleConfigs,
  ParameterConfig,
  ParameterConfigInput,
  ParameterSettings,
  Synchronization,
  SynchronizationInput,
} from "../protocol/config/index.ts";
export type { Dtype, TensorData } from "../protocol/dtypes.ts";
export type { Encoding } from "../protocol/encoding/encodings.ts";
export {
  ERROR_CODES,
  type ErrorCode,
  type ErrorDetails,
  PserverError,
} from "../protocol/errors.ts";
export type { Layout } from "../protocol/layout.ts";
export type {
  Declaration,
  LifecycleState,
  ParameterInfo,
  ShardPositions,
  StatusReply,
} from "../protocol/lifecycle-messages.ts";
export type { Position } from "../protocol/outcomes.ts";
export { type Tensor, type TensorLike, zeros } from "../protocol/tensor.ts";
export { AsyncDifference, type Averaged, elasticAverage, type FloatData } from "./averaging.ts";
export type {
  BeginOptions,
  GradOptions,
  PullOptions,
  PushOptions,
  ReadOptions,
  UpdateOptions,
} from "./call-options.ts";
export type { Client } from "./client.ts";
export { type ConnectOptions, connect } from "./connect.ts";
export type { CallOptions } from "./deadline.ts";
export type { ShardFallback } from "./fallbacks.ts";
export type { Gradient, GradientRecord, RowGradient } from "./gradients.ts";
export type { IndexList } from "./part-index.ts";
export type { NamedTensor } from "./puller.ts";
export type { SavedModel, SaveOptions } from "./saved-model.ts";
export {
  type BrokerSettings,
  type ConnectionOverrides,
  DEFAULT_URL,
  type Environment,
  type NamedConnectionOverrides,
  resolveConnection,
  resolveSettings,
} from "./settings.ts";
export type { GradResult } from "./steps.ts";
export type { Ack, TensorRecord } from "./updates.ts";
