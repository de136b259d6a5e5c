// Proves, under address and undefined behaviour sanitizers, that the C reader of etcd's replies reads
// what etcd writes, and nothing beyond a reply that is cut at any place or changed in any byte.
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { SANITIZED } from "../toolchain.ts";

const run = promisify(execFile);
const SOURCES = join(import.meta.dirname, "../../../src/client/c/paddle/v3");
const WARNINGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

test("reads whole replies, and no further than broken ones", async () => {
  const directory = await mkdtemp(join(tmpdir(), "pserver-etcd-reply-"));
  try {
    const program = join(directory, "etcd-reply");
    const sources = [
      join(import.meta.dirname, "programs/etcd-reply.c"),
      join(SOURCES, "etcd-reply.c"),
    ];
    await run("gcc", [...WARNINGS, ...SANITIZED, "-I", SOURCES, ...sources, "-o", program]);
    expect((await run(program)).stderr).toBe("");
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}, 60_000);
