// The public part of the protocol, exported as `pserver/protocol`: messages, names and rules that clients
// and hosts share. Modules that are not listed are internal; other folders import those by their paths.
// Nothing in this folder does I/O.
export * from "./checksum/checksum.js";
export * from "./codec.js";
export * from "./config/index.js";
export * from "./dtypes.js";
export * from "./encoding/encoding.js";
export * from "./errors.js";
export * from "./fields.js";
export * from "./jetstream-errors.js";
export * from "./layout.js";
export * from "./limits.js";
export * from "./messages/batch-reads.js";
export * from "./messages/batch-records.js";
export * from "./messages/columns.js";
export * from "./messages/host-records.js";
export * from "./messages/lifecycle-messages.js";
export * from "./messages/outcomes.js";
export * from "./messages/parts.js";
export * from "./messages/position.js";
export * from "./messages/reads.js";
export * from "./messages/records.js";
export * from "./messages/shard-knowledge.js";
export * from "./names.js";
export * from "./subjects.js";
export * from "./tensor.js";
//# sourceMappingURL=index.js.map