// The public part of the protocol, exported as `pserver/protocol`: messages, names and rules that clients
// and hosts share. Modules that are not listed are internal; other folders import those by their paths.
// Nothing in this folder does I/O.

export * from "./batch-reads.ts";
export * from "./batch-records.ts";
export * from "./busy.ts";
export * from "./checksum/crc.ts";
export * from "./codec.ts";
export * from "./config/index.ts";
export * from "./dtypes.ts";
export * from "./encoding/elements.ts";
export * from "./encoding/encodings.ts";
export * from "./errors.ts";
export * from "./fallback.ts";
export * from "./fields.ts";
export * from "./host-records.ts";
export * from "./jetstream-errors.ts";
export * from "./job-streams.ts";
export * from "./layout.ts";
export * from "./lifecycle-messages.ts";
export * from "./limits.ts";
export * from "./names.ts";
export * from "./notes.ts";
export * from "./outcomes.ts";
export * from "./parameters-per-request.ts";
export * from "./parse-batch.ts";
export * from "./parts.ts";
export * from "./position.ts";
export * from "./pulls.ts";
export * from "./reactions.ts";
export * from "./read-pieces.ts";
export * from "./records.ts";
export * from "./remembered-trainers.ts";
export * from "./status-pages.ts";
export * from "./steps.ts";
export * from "./subjects.ts";
export * from "./tensor.ts";
export * from "./verbs.ts";
export * from "./versions.ts";
