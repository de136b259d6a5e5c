// Proves that the headers of the three revisions declare what was published: the published
// declarations, kept as fixtures, compile beside ours in one file, in C and in C++, with gcc and
// with clang; and that each changed word of them does not, so that the first proves something.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  functionName,
  parseSeedHeader,
  readSeedHeader,
  renderComparison,
  type SeedHeader,
} from "./seed-header.ts";

const run = promisify(execFile);
const HEADERS = join(import.meta.dirname, "../../../include/paddle");
const WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only"];
// Published functions without arguments have empty parentheses, of which newer compilers warn.
const C = ["-x", "c", "-std=c11", ...WARNINGS, "-Wno-strict-prototypes"];
const CPP = ["-x", "c++", "-std=c++11", ...WARNINGS];

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-headers-"));
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** What the compiler says of ours and `seed` in one file; "" if it accepts them. */
async function compile(revision: number, seed: SeedHeader, compiler: string[]): Promise<string> {
  const header = join(HEADERS, `v${revision}`, "paddle_pserver_client.h");
  const path = join(directory, `revision-${revision}-${files++}.c`);
  await writeFile(path, renderComparison(header, seed));
  const [program = "", ...flags] = compiler;
  return await run(program, [...flags, path]).then(
    () => "",
    (error: { stderr: string }) => error.stderr,
  );
}

let files = 0;

/** The seed with one of its declarations changed, for every one that `change` changes. */
function mutants(seed: SeedHeader, change: (declaration: string) => string): SeedHeader[] {
  const lists = ["macros", "plainTypes", "bracedTypes", "functions"] as const;
  return lists.flatMap((list) =>
    seed[list].flatMap((declaration, i) => {
      const changed = change(declaration);
      return changed === declaration
        ? []
        : [{ ...seed, [list]: seed[list].map((kept, k) => (k === i ? changed : kept)) }];
    }),
  );
}

describe.each([1, 2, 3])("revision %i", (revision) => {
  test("is declared as published", async () => {
    const seed = await readSeedHeader(revision);
    expect(seed.functions.length).toBeGreaterThan(8);
    expect(seed.functions.map(functionName)).toContain("paddle_save_model");
    for (const compiler of [
      ["gcc", ...C],
      ["g++", ...CPP],
      ["clang", ...C],
      ["clang", ...CPP],
    ]) {
      expect(await compile(revision, seed, compiler)).toBe("");
    }
  });

  test("is distinguished from any other declaration", async () => {
    const seed = await readSeedHeader(revision);
    const changes = [
      (line: string) => line.replace(/^int (?=paddle_)/, "long "),
      (line: string) => line.replace(/^void (?=paddle_)/, "int "),
      (line: string) => line.replace(/\bconst /, ""),
      (line: string) => line.replace(/(\w)\);$/, "$1, int more);"),
      (line: string) => line.replace(/int (?=\w+[,)])/, "long "),
      (line: string) => line.replace("double", "float"),
      (line: string) => line.replace(/paddle_(?=\w+\()/, "paddle_more_"),
      (line: string) => line.replace(/\bint content_len/, "unsigned content_len"),
      (line: string) => line.replace("char* name;", "const char* name;"),
      (line: string) => line.replace(/(?:unsigned char|void)\* content;/, "char* content;"),
      (line: string) => line.replace(/(element_type;)([^;]*;)/, "$1 int more;$2"),
      (line: string) => line.replace(/(INT64\D*) 2/, "$1 7"),
      (line: string) => line.replace("typedef int", "typedef long"),
    ];
    const wrong = changes.flatMap((change) => mutants(seed, change));
    expect(wrong.length).toBeGreaterThan(30);
    const accepted: string[] = [];
    for (const mutant of wrong) {
      const complaints = await compile(revision, mutant, ["gcc", ...C]);
      if (complaints === "") accepted.push(JSON.stringify(mutant));
    }
    expect(accepted).toEqual([]);
  });
});

test("the header that was shipped sends gradients as pointers", async () => {
  const path = join(directory, "shipped.c");
  await writeFile(
    path,
    `#include <pserver.h>
#include <libpaddle_pserver_cclient.h>
int send(paddle_pserver_client client, paddle_gradient **grads);
int send(paddle_pserver_client client, paddle_gradient **grads) {
  return paddle_send_grads(client, grads, 2) == PSERVER_OK ? 0 : PSERVER_ERROR;
}
`,
  );
  const include = ["-I", join(HEADERS, "v3"), "-I", join(HEADERS, "..")];
  await run("gcc", [...C, ...include, path]);
  await run("g++", [...CPP, ...include, path]);
});

test("takes declarations apart", () => {
  expect(
    parseSeedHeader("#define A 1\ntypedef struct { int x; } s;\ntypedef int t;\nint f(s, t);\n"),
  ).toEqual({
    macros: ["#define A 1"],
    plainTypes: ["typedef int t;"],
    bracedTypes: ["typedef struct { int x; } s;"],
    functions: ["int f(s, t);"],
  });
});
