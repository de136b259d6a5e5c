/** Models on disk: saving and opening them in five formats. Depends on src/protocol alone. */

export { type MergedTensor, mergeSparse, shardsByName } from "./merge-sparse.ts";
export type { Metadata } from "./metadata.ts";
export { formatOf, type ModelFormat, unknownFormat } from "./model-format.ts";
export { relativeError, resolveModelPath } from "./model-path.ts";
export { type OpenModel, openModel } from "./open-model.ts";
export { type SavedModel, type SaveModelOptions, saveModel } from "./save-model.ts";
export { dataBytes, type TensorHeader, type TensorSource } from "./tensor.ts";
