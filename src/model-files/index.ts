/** Models on disk: saving and opening them in four formats. Depends on src/protocol and src/system alone. */

export {
  formatOf,
  MODEL_ENDINGS,
  relativeError,
  unknownFormat,
  unknownName,
} from "./model-path.ts";
export { type OpenModel, openModel } from "./open-model.ts";
export type { SavedOptimizers, SavedState } from "./safetensors/optimizer-state.ts";
export { underKnownNames } from "./safetensors/safetensors.ts";
export {
  type MergedTensor,
  mergeSparse,
  saveModel,
  shardsByName,
} from "./save-model.ts";
export { removeLeftTemporaries } from "./temporary-files.ts";
export {
  dataBytes,
  type RestorableState,
  type TensorHeader,
  type TensorSource,
} from "./tensor-headers.ts";
