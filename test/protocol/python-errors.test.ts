// Proves that the exceptions of the Python package are those of the table of codes.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderCodeModule, renderErrorModule } from "../../scripts/write-python-errors.mjs";
import { ERROR_CODES } from "../../src/protocol/errors.ts";

const PACKAGE = join(import.meta.dirname, "../../src/client/python/pserver");

test.each([
  ["errors.py", renderErrorModule(ERROR_CODES)],
  ["_native/codes.py", renderCodeModule(ERROR_CODES)],
])("%s is up to date: node scripts/write-python-errors.mjs", async (file, expected) => {
  expect(await readFile(join(PACKAGE, file), "utf8")).toBe(expected);
});
