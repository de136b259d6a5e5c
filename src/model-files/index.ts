/** Models on disk: saving and opening them in five formats. Depends on src/protocol alone. */

export {
  formatOf,
  relativeError,
  resolveModelPath,
  unknownFormat,
} from "./model-path.ts";
export { type OpenModel, openModel } from "./open-model.ts";
export {
  type MergedTensor,
  mergeSparse,
  type SavedModel,
  type SaveModelOptions,
  saveModel,
  shardsByName,
} from "./save-model.ts";

export { dataBytes, type TensorHeader, type TensorSource } from "./tensor.ts";
