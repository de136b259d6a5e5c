// Writes include/pserver_errors.h, the status codes of the C library, and
// src/client/c/jetstream-errors.h, what the broker's refusals of records mean. Run it after every
// change of the tables in src/protocol/errors.ts and jetstream-errors.ts:
// `make build && node scripts/write-c-errors.mjs`. Plain JavaScript, because Node 20 does not strip
// types; write-c-errors.d.mts types it for the test.

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

/** `numbers`: those of JetStream's errors in the table; `codeOf`: what one means for a record. */
export function renderRefusalHeader(numbers, codeOf) {
  const rows = numbers
    .toSorted((a, b) => a - b)
    .map((number) => `  X(${number}, PSERVER_ERR_${codeOf(number)}) \\`);
  return `/* Written by scripts/write-c-errors.mjs from src/protocol/jetstream-errors.ts: edit that. */
#ifndef JETSTREAM_ERRORS_H
#define JETSTREAM_ERRORS_H

/** What JetStream's error numbers mean for a record that it did not store. */
#define PSERVER_REFUSAL_TABLE(X) \\
${rows.join("\n").replace(/ \\$/, "")}

#endif
`;
}

if (import.meta.filename === process.argv[1]) {
  const root = join(import.meta.dirname, "..");
  const { ERROR_CODES, REFUSAL_CODES, storeRefusalCode } = await import(
    join(root, "dist/protocol/index.js")
  );
  const target = join(root, "include/pserver_errors.h");
  await writeFile(target, renderErrorHeader(ERROR_CODES));
  console.log(`wrote ${Object.keys(ERROR_CODES).length} codes into ${target}`);
  const refusals = join(root, "src/client/c/jetstream-errors.h");
  const numbers = Object.keys(REFUSAL_CODES).map(Number);
  const codeOf = (errorCode) => storeRefusalCode({ status: 0, errorCode, description: "" });
  await writeFile(refusals, renderRefusalHeader(numbers, codeOf));
  console.log(`wrote ${numbers.length} refusals into ${refusals}`);
}
