// Writes include/pserver_errors.h, the status codes of the C library; src/client/c/errors/error-reactions.h,
// what the client does about each; and src/client/c/wire/jetstream-errors.h, what the broker's refusals of
// records mean. Run it after every change of the tables in src/protocol/errors.ts, reactions.ts and
// jetstream-errors.ts: `make build && node scripts/write-c-errors.mjs`. Plain JavaScript, because Node 20 does not strip
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

/** "await-init" is PS_REACTION_AWAIT_INIT. */
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

/** The table of an enum: the codes with another word than `fail`. */
function renderReactions(name, codes, wordOf) {
  const prefix = name.toUpperCase();
  const rows = Object.keys(codes)
    .filter((code) => wordOf(code) !== "fail")
    .map((code) => `  X(PSERVER_ERR_${code}, ${constantOf(prefix, wordOf(code))})`);
  return `/** The codes that ${prefix}_FAIL is not for. */
#define ${prefix}_TABLE(X) \\\n${rows.join(" \\\n")}`;
}

/** The words of the two columns with their meanings, and which of them a code has. */
export function renderReactionHeader(
  codes,
  { REACTIONS, REJECTION_REACTIONS, reactionTo, reactionToRejection },
) {
  return `/* Written by scripts/write-c-errors.mjs from src/protocol/errors.ts and reactions.ts: edit those. */
#ifndef ERRORS_ERROR_REACTIONS_H
#define ERRORS_ERROR_REACTIONS_H

${renderEnum("ps_reaction", "What a client does about an error in the answer to a request or a question.", REACTIONS)}

${renderReactions("ps_reaction", codes, reactionTo)}

${renderEnum("ps_rejection", "What a client does about an error that is the outcome of a record.", REJECTION_REACTIONS)}

${renderReactions("ps_rejection", codes, reactionToRejection)}

#endif
`;
}

/** `numbers`: those of JetStream's errors in the table; `codeOf`: what one means for a record. */
export function renderRefusalHeader(numbers, codeOf) {
  const rows = numbers
    .toSorted((a, b) => a - b)
    .map((number) => `  X(${number}, PSERVER_ERR_${codeOf(number)}) \\`);
  return `/* Written by scripts/write-c-errors.mjs from src/protocol/jetstream-errors.ts: edit that. */
#ifndef WIRE_JETSTREAM_ERRORS_H
#define WIRE_JETSTREAM_ERRORS_H

/** What JetStream's error numbers mean for a record that it did not store. */
#define PSERVER_REFUSAL_TABLE(X) \\
${rows.join("\n").replace(/ \\$/, "")}

#endif
`;
}

if (import.meta.filename === process.argv[1]) {
  const root = join(import.meta.dirname, "..");
  const protocol = await import(join(root, "dist/protocol.js"));
  const { ERROR_CODES, REFUSAL_CODES, storeRefusalCode } = protocol;
  const target = join(root, "include/pserver_errors.h");
  await writeFile(target, renderErrorHeader(ERROR_CODES));
  console.log(`wrote ${Object.keys(ERROR_CODES).length} codes into ${target}`);
  const reactions = join(root, "src/client/c/errors/error-reactions.h");
  await writeFile(reactions, renderReactionHeader(ERROR_CODES, protocol));
  console.log(`wrote the reactions to them into ${reactions}`);
  const refusals = join(root, "src/client/c/wire/jetstream-errors.h");
  const numbers = Object.keys(REFUSAL_CODES).map(Number);
  const codeOf = (errorCode) => storeRefusalCode({ status: 0, errorCode, description: "" });
  await writeFile(refusals, renderRefusalHeader(numbers, codeOf));
  console.log(`wrote ${numbers.length} refusals into ${refusals}`);
}
