/** Models on disk: saving and opening them in four formats. Depends on src/protocol alone. */
export { formatOf, MODEL_ENDINGS, relativeError, unknownFormat, unknownName, } from "./model-path.js";
export { openModel } from "./open-model.js";
export { mergeSparse, saveModel, shardsByName, } from "./save-model.js";
export { dataBytes } from "./tensor-headers.js";
//# sourceMappingURL=index.js.map