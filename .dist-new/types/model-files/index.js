/** Models on disk: saving and opening them in four formats. Depends on src/protocol and src/system alone. */
export { formatOf, MODEL_ENDINGS, relativeError, unknownFormat, unknownName, } from "./model-path.js";
export { openModel } from "./open-model.js";
export { underKnownNames } from "./safetensors.js";
export { mergeSparse, saveModel, shardsByName, } from "./save-model.js";
export { removeLeftTemporaries } from "./temporary-files.js";
export { dataBytes } from "./tensor-headers.js";
//# sourceMappingURL=index.js.map