/** Compiles and runs the fuzz target replies.c. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { cFiles, FAKES, librarySources, REPLACED } from "../toolchain.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");
const SOURCES = join(ROOT, "src/client/c");
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** Inputs worth keeping: those that together reach all that was reached, and those that found a defect. */
export const CORPUS = join(import.meta.dirname, "corpus");

const SANITIZERS = ["-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"];

const LIMITS = ["-max_len=4096", "-timeout=10", "-rss_limit_mb=1536"];

/** What a host claims to be large is refused like any memory that the system does not have. */
const MEMORY = "allocator_may_return_null=1:max_allocation_size_mb=64";

/** Compiles the target with the library's sources, the lease's thread left out, to a path. */
export async function compileFuzzer(target: string): Promise<void> {
  const sources = (await librarySources())
    .filter((name) => !REPLACED.has(name))
    .map((name) => join(SOURCES, name));
  const own = await Promise.all([import.meta.dirname, FAKES].map(cFiles));
  const inputs = [...sources, ...own.flat()];
  const headers = [SOURCES, join(ROOT, "include"), import.meta.dirname, FAKES];
  const included = headers.flatMap((at) => ["-I", at]);
  const language = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
  const threads = ["create", "join", "detach"].map(
    (what) => `-Dpthread_${what}=fake_thread_${what}`,
  );
  await run("clang", [
    ...[...language, "-O1", "-g", "-fno-omit-frame-pointer", ...SANITIZERS, ...threads],
    ...[...included, ...inputs, "-lm", "-pthread", "-o", target],
  ]);
}

/** Runs the target; what it wrote, which is its statistics. @throws what it found. */
export async function runFuzzer(
  target: string,
  directory: string,
  args: readonly string[],
): Promise<string> {
  const options = { maxBuffer: OUTPUT_BYTES_MAX, env: { ...process.env, ASAN_OPTIONS: MEMORY } };
  const { stderr } = await run(
    target,
    [...LIMITS, `-artifact_prefix=${directory}/`, ...args],
    options,
  );
  return stderr;
}
