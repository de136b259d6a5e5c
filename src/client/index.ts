// The client for TypeScript and JavaScript: `connect` and what its calls take and return.

export type {
  ContributionWeights,
  DilocoSettings,
  LearningRate,
  LearningRateInput,
  Merge,
  Optimizer,
  OptimizerInput,
  PaddleConfigs,
  ParameterConfig,
  ParameterConfigInput,
  ParameterSettings,
  Synchronization,
  SynchronizationInput,
} from "../protocol/config/index.ts";
export type { Dtype, Encoding, HalfDtype, TensorData } from "../protocol/dtypes.ts";
export {
  type NumericData,
  toHalfFloats,
  toNumbers,
} from "../protocol/encoding/half-floats.ts";
export {
  ERROR_CODES,
  type ErrorCode,
  type ErrorDetails,
  PserverError,
} from "../protocol/errors.ts";
export {
  balancedFragments,
  EMBEDDINGS_FRAGMENT,
  type FragmentTensor,
} from "../protocol/fragments.ts";
export type { Layout } from "../protocol/layout.ts";
export type {
  ContributionAccount,
  ContributionFate,
  ContributionForm,
  Tally,
} from "../protocol/messages/contributions.ts";
export type {
  Declaration,
  LifecycleState,
  ParameterInfo,
  ShardPositions,
  StatusReply,
} from "../protocol/messages/lifecycle-messages.ts";
export type { Position } from "../protocol/messages/position.ts";
export type { NoteEntries, NoteValue } from "../protocol/messages/records.ts";
export { type Tensor, type TensorLike, zeros } from "../protocol/tensor.ts";
export { AsyncDifference, type Averaged, elasticAverage, type FloatData } from "./averaging.ts";
export type {
  Ack,
  BeginOptions,
  CallOptions,
  GradOptions,
  NamedTensor,
  PullOptions,
  PushOptions,
  ReadOptions,
  UpdateOptions,
} from "./calls/calls.ts";
export type { Client, InitOptions, SavedModel, SaveOptions } from "./client.ts";
export type { ClientStats } from "./client-stats.ts";
export { type ConnectOptions, connect } from "./connect.ts";
export type { ShardFallback } from "./io/fallbacks.ts";
export type { GradResult } from "./io/steps.ts";
export type { IndexList } from "./part-plan.ts";
export type { Gradient, GradientRecord, RowGradient, TensorRecord } from "./push/block-updates.ts";
export type {
  ContributionResult,
  ContributionWork,
  FragmentMode,
  FragmentVersions,
  PulledFragment,
  Sampling,
} from "./push/fragments.ts";
export type { OptimizerState } from "./push/optimizer-state.ts";
export {
  type BrokerSettings,
  type ConnectionOverrides,
  DEFAULT_URL,
  type Environment,
  resolveSettings,
} from "./wire/broker-settings.ts";
