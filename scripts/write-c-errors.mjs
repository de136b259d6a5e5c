// Writes what the C library has of the protocol: include/pserver_errors.h, its status codes, and
// src/client/c/errors/protocol.h, what the client does about each, what the broker's refusals of records mean,
// and limits. Run it after every change of these in src/protocol: `make build && node
// scripts/write-c-errors.mjs`. Plain JavaScript, because Node 20 does not strip types; write-c-errors.d.mts
// types it for the test.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";

export function renderErrorHeader(codes) {
  const entries = Object.entries(codes).sort(([, a], [, b]) => a.number - b.number);
  const constants = entries.map(
    ([code, { number, meaning }]) => `  /** ${meaning} */\n  PSERVER_ERR_${code} = ${number},`,
  );
  const rows = entries.map(
    ([code, { retryable }]) => `  X(PSERVER_ERR_${code}, "${code}", ${retryable ? 1 : 0}) \\`,
  );
  return `/* Written by scripts/write-c-errors.mjs from src/protocol/errors.ts: edit that. */
#ifndef PSERVER_ERRORS_H
#define PSERVER_ERRORS_H

/* PaddlePaddle's shipped header had this as a macro, of the same value. */
#ifdef PSERVER_OK
#undef PSERVER_OK
#endif

/** What came of a call. The numbers are the protocol's; none is ever used for another meaning. */
typedef enum pserver_status {
  /** the call did what it says */
  PSERVER_OK = 0,
${constants.join("\n")}
} pserver_status;

/** Every code: its constant, its name in messages, and whether the same call can succeed later. */
#define PSERVER_ERROR_TABLE(X) \\
${rows.join("\n").replace(/ \\$/, "")}

#endif
`;
}

/** Returns the name of a constant: "await-init" is PS_REACTION_AWAIT_INIT. */
export function constantOf(prefix, word) {
  return `${prefix}_${word.toUpperCase().replaceAll("-", "_")}`;
}

function renderEnum(name, about, words) {
  const prefix = name.toUpperCase();
  const constants = Object.entries(words).map(
    ([word, meaning]) => `  /** ${meaning} */\n  ${constantOf(prefix, word)},`,
  );
  return `/** ${about} */\nenum ${name} {\n${constants.join("\n")}\n};`;
}

/** Writes the table of an enum: the codes with another word than `fail`. */
function renderReactions(name, codes, wordOf) {
  const prefix = name.toUpperCase();
  const rows = Object.keys(codes)
    .filter((code) => wordOf(code) !== "fail")
    .map((code) => `  X(PSERVER_ERR_${code}, ${constantOf(prefix, wordOf(code))})`);
  return `/** The codes that ${prefix}_FAIL is not for. */
#define ${prefix}_TABLE(X) \\\n${rows.join(" \\\n")}`;
}

/** The limits that the C library needs, which have the same names there after `PS_`. */
const LIMITS = [
  "PROTOCOL_VERSION",
  "NAME_BYTES_MAX",
  "ID_BYTES_MAX",
  "HEADER_BYTES_MAX",
  "SHARDS_MAX",
  "WINDOW_RECORDS",
  "PARAMETERS_PER_REQUEST_MAX",
  "BATCH_ENTRIES_MAX",
  "BATCH_RUNS_MAX",
  "BATCH_HEAD_BYTES_MAX",
  "BATCH_BYTES",
  "BATCH_ENTRY_BYTES_MAX",
  "NOTE_BYTES_MAX",
  "NOTE_ENTRIES_MAX",
  "NOTE_NAME_BYTES_MAX",
  "NOTE_SHARD",
  "RETRY_AFTER_MS_MAX",
  "CONTRIBUTION_COUNT_MAX",
  "UNSETTLED_BYTES_MAX",
  "UNSETTLED_BLOCK_BYTES",
];

/** Writes the header from `protocol`, the exports of src/protocol. */
export function renderProtocolHeader(protocol) {
  const { ERROR_CODES, REACTIONS, REJECTION_REACTIONS, REFUSAL_CODES } = protocol;
  const limits = LIMITS.map((name) => `#define PS_${name} ${protocol[name]}`);
  const refusals = Object.keys(REFUSAL_CODES)
    .map(Number)
    .toSorted((a, b) => a - b)
    .map((errorCode) => {
      const code = protocol.storeRefusalCode({ status: 0, errorCode, description: "" });
      return `  X(${errorCode}, PSERVER_ERR_${code})`;
    });
  return `/* Written by scripts/write-c-errors.mjs from src/protocol: edit that. */
#ifndef ERRORS_PROTOCOL_H
#define ERRORS_PROTOCOL_H

/* Limits, whose meanings and reasons are in src/protocol. */
${limits.join("\n")}

${renderEnum("ps_reaction", "What a client does about an error in the answer to a request or a question.", REACTIONS)}

${renderReactions("ps_reaction", ERROR_CODES, protocol.reactionTo)}

${renderEnum("ps_rejection", "What a client does about an error that is the outcome of a record.", REJECTION_REACTIONS)}

${renderReactions("ps_rejection", ERROR_CODES, protocol.reactionToRejection)}

/** What JetStream's error numbers mean for a record that it did not store. */
#define PS_REFUSAL_TABLE(X) \\
${refusals.join(" \\\n")}

#endif
`;
}

if (import.meta.filename === process.argv[1]) {
  const root = join(import.meta.dirname, "..");
  const protocol = await import(join(root, "dist/protocol.js"));
  const files = {
    "include/pserver_errors.h": renderErrorHeader(protocol.ERROR_CODES),
    "src/client/c/errors/protocol.h": renderProtocolHeader(protocol),
  };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(root, name), text);
    console.log(`wrote ${name}`);
  }
}
