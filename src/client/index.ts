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
export type { NoteEntries, NoteValue } from "../protocol/notes.ts";
export type { Position } from "../protocol/position.ts";
export { type Tensor, type TensorLike, zeros } from "../protocol/tensor.ts";
export { AsyncDifference, type Averaged, elasticAverage, type FloatData } from "./averaging.ts";
export type {
  BeginOptions,
  GradOptions,
  PullOptions,
  PushOptions,
  ReadOptions,
  UpdateOptions,
} from "./calls/call-options.ts";
export type { SavedModel, SaveOptions } from "./calls/saved-model.ts";
export type { Client } from "./client.ts";
export type { IndexList } from "./parts/part-index.ts";
export type { NamedTensor } from "./pull/pulled-tensor.ts";
export type { Gradient, GradientRecord, RowGradient } from "./push/gradients.ts";
export type { TensorRecord } from "./push/tensor-record.ts";
export type { Ack } from "./push/updates.ts";
export type { ShardFallback } from "./shell/fallbacks.ts";
export type { GradResult } from "./shell/steps.ts";
export type { CallOptions } from "./timing/deadline.ts";
export type { BrokerSettings, Environment } from "./wire/broker-settings.ts";
export { type ConnectOptions, connect } from "./wire/connect.ts";
export {
  type ConnectionOverrides,
  DEFAULT_URL,
  resolveSettings,
} from "./wire/settings.ts";
