// The client for TypeScript and JavaScript: `connect` and what its calls take and return.
export { ERROR_CODES, PserverError, } from "../protocol/errors.js";
export { zeros } from "../protocol/tensor.js";
export { AsyncDifference, elasticAverage } from "./averaging.js";
export { connect } from "./connect.js";
export { DEFAULT_URL, resolveSettings, } from "./wire/broker-settings.js";
//# sourceMappingURL=index.js.map