// Writes src/client/python/pserver/errors.py, an exception for each code of the protocol. Run it after every
// change of src/protocol/errors.ts: `make build && node scripts/write-python-errors.mjs`. Plain JavaScript,
// because Node 20 does not strip types; write-python-errors.d.mts types it for the test.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The built-in exceptions that a Python program would catch where these codes occur. */
const BUILT_IN = {
  BAD_NAME: "ValueError",
  BAD_DTYPE: "TypeError",
  BAD_SHAPE: "ValueError",
  BAD_LENGTH: "ValueError",
  BAD_VALUE: "ValueError",
  BAD_CONFIG: "ValueError",
  NON_FINITE: "ValueError",
  NO_LEARNING_RATE: "ValueError",
  UNSUPPORTED: "TypeError",
  EMPTY: "ValueError",
  TOO_LARGE: "ValueError",
  UNKNOWN_PARAMETER: "KeyError",
  BAD_INDEX: "IndexError",
  TIMEOUT: "TimeoutError",
  NO_OWNER: "ConnectionError",
  NO_HOST: "ConnectionError",
  NO_BROKER: "ConnectionError",
  NO_ETCD: "ConnectionError",
  JETSTREAM_UNAVAILABLE: "ConnectionError",
  NO_TLS: "ConnectionError",
  DENIED: "PermissionError",
  BAD_PATH: "ValueError",
  IO: "OSError",
  DISK_FULL: "OSError",
};

/** Returns the name of a code's class: NOT_INITIALIZED is NotInitialized. */
function className(code) {
  return code
    .split("_")
    .map((word) => word[0] + word.slice(1).toLowerCase())
    .join("");
}

/** Maximum columns of a line, as black has it. */
const COLUMNS = 100;

function renderClass([code, { number, retryable, meaning }]) {
  const bases = BUILT_IN[code] === undefined ? "Error" : `Error, ${BUILT_IN[code]}`;
  const inner = `${bases}, code="${code}", number=${number}${retryable ? ", retryable=True" : ""}`;
  const line = `class ${className(code)}(${inner}):`;
  const header = line.length <= COLUMNS ? line : `class ${className(code)}(\n    ${inner}\n):`;
  return `${header}
    """${code}: ${meaning}."""
`;
}

function byNumber(codes) {
  return Object.entries(codes).sort(([, a], [, b]) => a.number - b.number);
}

export function renderErrorModule(codes) {
  const unknown = Object.keys(BUILT_IN).filter((code) => codes[code] === undefined);
  if (unknown.length > 0) throw new Error(`no such codes: ${unknown.join(", ")}`);
  const entries = byNumber(codes);
  return `# Written by scripts/write-python-errors.mjs from src/protocol/errors.ts: edit that.
"""An exception for each code of the protocol, also of the built-in class that fits."""

from __future__ import annotations

from ._error import Error

__all__ = [
${entries.map(([code]) => `    "${className(code)}",`).join("\n")}
]

${entries.map((entry) => `\n${renderClass(entry)}`).join("\n")}`;
}

if (import.meta.filename === process.argv[1]) {
  const root = join(import.meta.dirname, "..");
  const { ERROR_CODES } = await import(join(root, "dist/protocol.js"));
  const target = join(root, "src/client/python/pserver/errors.py");
  await writeFile(target, renderErrorModule(ERROR_CODES));
  console.log(`wrote ${Object.keys(ERROR_CODES).length} exceptions into ${target}`);
}
