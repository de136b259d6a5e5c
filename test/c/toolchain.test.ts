// Proves that a program of a test ends with an error when a sanitizer finds something in it, so that tests
// which only look at how a program ends notice: small programs are compiled with the same flags as the C
// library, and one without a fault ends well.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SANITIZED } from "./toolchain.ts";

const run = promisify(execFile);

/** `count` is 1, which no compiler can know. */
const FAULTS = {
  none: "return count - 1;",
  "signed overflow": "volatile int sum = 2147483647; sum += count; return 0;",
  "a shift by as many bits as the type has": "volatile int bits = 1 << (31 + count); return 0;",
  "an index outside an array": "volatile int of[1] = {0}; of[0] = of[count]; return 0;",
  "a pointer to nothing": "int *volatile pointer = 0; return *pointer;",
  "memory that was freed": "int *made = malloc(4); free(made); return *made;",
  "memory that is never freed": "int *volatile made = malloc(4); made = 0; return 0;",
} as const;

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-toolchain-"));
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** Compiles and runs a program; its exit code, and what it printed about a fault. */
async function runFault(compiler: string, body: string): Promise<[unknown, string]> {
  const source = join(directory, "fault.c");
  const program = join(directory, "fault");
  const text = `#include <stdlib.h>\nint main(int count, char **names) { (void)names; ${body} }\n`;
  await writeFile(source, text);
  await run(compiler, [...SANITIZED, "-w", source, "-o", program]);
  try {
    const { stderr } = await run(program);
    return [0, stderr];
  } catch (error) {
    const { code, stderr } = error as { code: unknown; stderr: string };
    return [code, stderr];
  }
}

test.each(["gcc", "clang"])("a program of %s with a fault ends with an error", async (compiler) => {
  for (const [what, body] of Object.entries(FAULTS)) {
    const [code, found] = await runFault(compiler, body);
    if (what === "none") expect([code, found]).toEqual([0, ""]);
    else expect(code, `${what}: ${found}`).toBeGreaterThan(0);
  }
});
