// Proves that every public header can be included alone, twice, and first, in C and in C++, with gcc
// and with clang, without a warning.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
const INCLUDE = join(import.meta.dirname, "../../include");
const WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"];
const LANGUAGES = [
  ["-x", "c", "-std=c11", "-Wstrict-prototypes"],
  ["-x", "c++", "-std=c++11"],
  ["-x", "c++", "-std=c++20"],
];

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-headers-"));
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** Relative to include/. */
const headers = (await readdir(INCLUDE, { recursive: true })).filter((name) => name.endsWith(".h"));

test("all headers are seen", () => {
  expect(headers).toContain("pserver.h");
  for (const revision of [1, 2, 3]) {
    expect(headers).toContain(`paddle/v${revision}/paddle_pserver_client.h`);
  }
});

test.each(headers)("%s stands alone", async (header) => {
  const source = join(directory, `${header.replaceAll("/", "-")}.c`);
  const line = `#include "${join(INCLUDE, header)}"\n`;
  await writeFile(source, `${line}${line}int something;\n`);
  for (const compiler of ["gcc", "clang"]) {
    for (const language of LANGUAGES) {
      const { stderr } = await run(compiler, [...language, ...WARNINGS, source]);
      expect(stderr).toBe("");
    }
  }
});

test.each([
  ["before", ["paddle/v3/libpaddle_pserver_cclient.h", "pserver.h"]],
  ["after", ["pserver.h", "paddle/v3/libpaddle_pserver_cclient.h"]],
])("the header that was shipped goes %s the core library's", async (order, both) => {
  const source = join(directory, `${order}.c`);
  const lines = both.map((header) => `#include "${join(INCLUDE, header)}"\n`);
  await writeFile(source, `${lines.join("")}int something[PSERVER_OK + 1];\n`);
  for (const language of LANGUAGES) {
    const { stderr } = await run("gcc", [...language, ...WARNINGS, source]);
    expect(stderr).toBe("");
  }
});
