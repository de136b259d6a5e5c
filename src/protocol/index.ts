// The public part of the protocol, exported as `pserver/protocol`: messages, names and rules that clients
// and hosts share. Modules that are not listed are internal; other folders import those by their paths.
// Nothing in this folder does I/O.

export * from "./checksum/checksum.ts";
export * from "./codec.ts";
export * from "./config/index.ts";
export * from "./dtypes.ts";
export * from "./encoding/encoding.ts";
export * from "./encoding/half-floats.ts";
export * from "./errors.ts";
export * from "./fields.ts";
export * from "./fragments.ts";
export * from "./jetstream-errors.ts";
export * from "./layout.ts";
export * from "./limits.ts";
export * from "./messages/batch-reads.ts";
export * from "./messages/batch-records.ts";
export * from "./messages/columns.ts";
export * from "./messages/contributions.ts";
export * from "./messages/host-records.ts";
export * from "./messages/lifecycle-messages.ts";
export * from "./messages/outcomes.ts";
export * from "./messages/parts.ts";
export * from "./messages/position.ts";
export * from "./messages/reads.ts";
export * from "./messages/records.ts";
export * from "./messages/shard-knowledge.ts";
export * from "./names.ts";
export * from "./subjects.ts";
export * from "./tensor.ts";
