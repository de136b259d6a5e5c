import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { packageRoot } from "../src/broker/broker-config.ts";

const run = promisify(execFile);

const ROOT = packageRoot();
/** Sources and headers of the programs. */
export const C_SOURCES: string = join(ROOT, "bench/c");
const OUTPUT = join(ROOT, "build/bench-c");
const FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-pthread"];
/** Sources with which every program is linked. */
const PARTS = [
  "agent.c",
  "counter.c",
  "nats-status.c",
  "payloads.c",
  "step-data.c",
  "stream-reader.c",
  "stream-sender.c",
];
const PROGRAMS = [
  "core-sender",
  "core-receiver",
  "journal-sender",
  "journal-receiver",
  "raw-trainer",
  "raw-server",
  "trainer",
  "step-trainer",
] as const;
/** Programs that use the library, and are linked with further sources. */
const TRAINERS: readonly CProgram[] = ["trainer", "step-trainer"];
const TRAINING = "training.c";

/** A program of `bench/c`. */
export type CProgram = (typeof PROGRAMS)[number];

/** Returns the path where {@link buildCPrograms} puts a program. */
export function cProgramPath(program: CProgram): string {
  return join(OUTPUT, program);
}

/** Returns the path where {@link buildCPrograms} puts the library. */
export function cLibraryPath(): string {
  return join(OUTPUT, "lib/libpserver.so");
}

/** Returns what this machine lacks for building the C programs; undefined if nothing. */
export async function missingForC(): Promise<string | undefined> {
  const needs: [string, string, string[]][] = [
    ["a C compiler (cc)", "cc", ["--version"]],
    ["make", "make", ["--version"]],
    ["libnats (pkg-config libnats)", "pkg-config", ["--exists", "libnats"]],
    ["msgpack-c", "sh", ["-c", "pkg-config --exists msgpack-c || pkg-config --exists msgpack"]],
  ];
  for (const [what, command, args] of needs) {
    const found = await run(command, args).then(
      () => true,
      () => false,
    );
    if (!found) return what;
  }
  return undefined;
}

/** Compiles the C library, which is built apart from that of `make build`, and the programs. */
export async function buildCPrograms(): Promise<void> {
  await mkdir(OUTPUT, { recursive: true });
  const source = join(ROOT, "src/client/c");
  await run("make", ["-s", "-j2", "-C", source, `BUILD=${OUTPUT}`, cLibraryPath()]);
  const { stdout } = await run("pkg-config", ["--cflags", "--libs", "libnats"]);
  const parts = PARTS.map((part) => join(C_SOURCES, part));
  const ours = [
    [join(C_SOURCES, TRAINING), "-I", join(ROOT, "include"), "-L", join(OUTPUT, "lib")],
    ["-lpserver", `-Wl,-rpath,${join(OUTPUT, "lib")}`],
  ].flat();
  for (const program of PROGRAMS) {
    const inputs = [join(C_SOURCES, `${program}.c`), ...parts];
    const libraries = [...(TRAINERS.includes(program) ? ours : []), ...stdout.trim().split(/\s+/)];
    await run("cc", [...FLAGS, ...inputs, ...libraries, "-o", cProgramPath(program)]);
  }
}

/**
 * Compiles sources of `bench/c` that are linked with a program in another language.
 * @returns the paths of the objects.
 */
export async function buildCObjects(names: readonly string[]): Promise<string[]> {
  await mkdir(OUTPUT, { recursive: true });
  const sources = names.map((name) => join(C_SOURCES, `${name}.c`));
  await run("cc", [...FLAGS, "-c", ...sources], { cwd: OUTPUT });
  return names.map((name) => join(OUTPUT, `${name}.o`));
}
