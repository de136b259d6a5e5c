/** Models on disk: saving and opening them in five formats. Depends on src/protocol alone. */

// Model files: read and write safetensors, npz and tar, and merge sparse shards.
export type { MergedTensor } from "./merge-sparse.ts";
export { mergeSparse, shardsByName } from "./merge-sparse.ts";
export type { Metadata } from "./metadata.ts";
export type { ModelFormat } from "./model-format.ts";
export { formatOf, unknownFormat } from "./model-format.ts";
export { relativeError, resolveModelPath } from "./model-path.ts";
export type { OpenModel } from "./open-model.ts";
export { openModel } from "./open-model.ts";
export type { SavedModel, SaveModelOptions } from "./save-model.ts";
export { saveModel } from "./save-model.ts";
export type { TensorHeader, TensorSource } from "./tensor.ts";
export { dataBytes } from "./tensor.ts";
