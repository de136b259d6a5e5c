// Proves the parts of the C library that need no broker: they agree with the vectors that every
// implementation shares, and int8 and e3m0 with a reference in float64; addresses of brokers are read as
// documented, with no part of a password in a message, under address and undefined behaviour sanitizers; the
// library compiles without warnings, and every library exports what its headers declare and nothing else; its
// table of codes is up to date.
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { renderErrorHeader, renderProtocolHeader } from "../../scripts/write-c-errors.mjs";
import { renderVectors } from "../../scripts/write-c-vectors.mjs";
import * as protocol from "../../src/protocol/index.ts";
import { runProgram } from "./running-program.ts";
import { BuiltLibrary, librarySources, SANITIZED } from "./toolchain.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");

let library: BuiltLibrary;

beforeAll(async () => {
  library = await BuiltLibrary.build(SANITIZED);
});

afterAll(async () => {
  await library?.remove();
});

test("agrees with the shared vectors", async () => {
  const include = await mkdtemp(join(tmpdir(), "pserver-vectors-"));
  try {
    await writeFile(join(include, "vectors.h"), renderVectors(join(ROOT, "test/vectors")));
    await runProgram(await library.innerProgram("vectors", include));
  } finally {
    await rm(include, { recursive: true, force: true });
  }
});

test("encodes and decodes groups as a reference in float64 does", async () => {
  await runProgram(await library.innerProgram("groups", ROOT));
});

test("reads broker addresses, and repeats nothing of a password", async () => {
  await runProgram(await library.innerProgram("addresses", ROOT));
});

/** The functions that headers below include/ declare, whose names begin with a prefix. */
async function declared(prefix: string, ...headers: string[]): Promise<string[]> {
  const texts = await Promise.all(
    headers.map((header) => readFile(join(ROOT, "include", header), "utf8")),
  );
  const code = texts.join("\n").replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
  const names = [...code.matchAll(/\b(\w+)\(/g)].map((match) => match[1] ?? "");
  return [...new Set(names.filter((name) => name.startsWith(prefix)))].sort();
}

/** The names that a library defines for others, the linker's own left out. */
async function defined(path: string): Promise<string[]> {
  const kind = path.endsWith(".a") ? "-g" : "-D";
  const { stdout } = await run("nm", [kind, "--defined-only", path]);
  return [...stdout.matchAll(/^[0-9a-f]+ \w (\S+)$/gm)].map((match) => match[1] ?? "").sort();
}

test("exports what its headers declare, and nothing else", async () => {
  const lib = join(library.directory, "lib");
  const names = await declared("pserver_", "pserver.h");
  expect(names).toContain("pserver_connect");
  for (const file of ["libpserver.so", "libpserver.a"]) {
    expect(await defined(join(lib, file))).toEqual(names);
  }
});

test.each([1, 2, 3])("exports revision %i of the Paddle client, and nothing else", async (n) => {
  const lib = join(library.directory, "lib");
  const directory = `paddle/v${n}`;
  const headers = await readdir(join(ROOT, "include", directory));
  const names = await declared("paddle_", ...headers.map((header) => `${directory}/${header}`));
  expect(names).toContain("paddle_save_model");
  for (const file of [
    `libpaddle_pserver_client.so.${n}`,
    `paddle-pserver-client-${n}/libpaddle_pserver_client.a`,
  ]) {
    expect(await defined(join(lib, file))).toEqual(names);
  }
});

test("every global name of an object belongs to the API or begins with ps_", async () => {
  const objects = join(library.directory, "objects");
  const sources = await librarySources();
  const files = sources.map((name) => join(objects, `${name.slice(0, -1)}o`));
  const { stdout } = await run("nm", ["--defined-only", "--extern-only", ...files]);
  const names = [...stdout.matchAll(/^\w+ [A-Z] (\w+)$/gm)].map((match) => match[1] ?? "");
  expect(names.length).toBeGreaterThan(100);
  expect(names.filter((name) => !/^(ps|pserver)_|^__/.test(name))).toEqual([]);
});

test("every shared library is looked at", async () => {
  const files = await readdir(join(library.directory, "lib"));
  const names = new Set(
    files.filter((file) => file.includes(".so")).map((file) => file.split(".so")[0]),
  );
  expect([...names].sort()).toEqual(["libpaddle_pserver_client", "libpserver"]);
});

test("compiles without warnings with clang", async () => {
  const other = await BuiltLibrary.build(["-O0"], "clang");
  await other.remove();
});

test("has the codes of the protocol, the reactions to them, what the broker's refusals mean, and the limits", async () => {
  const header = await readFile(join(ROOT, "include/pserver_errors.h"), "utf8");
  expect(header).toBe(renderErrorHeader(protocol.ERROR_CODES));
  const written = await readFile(join(ROOT, "src/client/c/errors/protocol.h"), "utf8");
  expect(written).toBe(renderProtocolHeader(protocol));
});
