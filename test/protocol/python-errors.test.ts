// Proves that the exceptions of the Python package are those of the table of codes.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { renderErrorModule } from "../../scripts/write-python-errors.mjs";
import { ERROR_CODES } from "../../src/protocol/errors.ts";

const ERRORS = join(import.meta.dirname, "../../src/client/python/pserver/errors.py");

test("errors.py is up to date: node scripts/write-python-errors.mjs", async () => {
  expect(await readFile(ERRORS, "utf8")).toBe(renderErrorModule(ERROR_CODES));
});
