/** Compiles the C library and programs that use it, with the compilers of the machine. */
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
const SOURCES = join(ROOT, "src/client/c");
const PROGRAMS = join(import.meta.dirname, "programs");
const WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

/** Finds bad memory accesses, leaks and undefined behaviour while a program runs. */
export const SANITIZED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-omit-frame-pointer"];

/** A library that was built in a directory of its own. */
export class BuiltLibrary {
  readonly directory: string;
  readonly #flags: readonly string[];
  readonly #compiler: string;

  private constructor(directory: string, compiler: string, flags: readonly string[]) {
    this.directory = directory;
    this.#compiler = compiler;
    this.#flags = flags;
  }

  /** Builds it; warnings are errors. Remove it in `afterAll`. */
  static async build(flags: readonly string[], compiler = "gcc"): Promise<BuiltLibrary> {
    const directory = await mkdtemp(join(tmpdir(), "pserver-c-"));
    const library = new BuiltLibrary(directory, compiler, flags);
    try {
      const settings = [
        `BUILD=${directory}`,
        `CC=${compiler}`,
        `CFLAGS=${flags.join(" ")} -Werror`,
      ];
      await run("make", ["-s", "-j2", "-C", SOURCES, ...settings]);
      return library;
    } catch (error) {
      await library.remove();
      throw error;
    }
  }

  /** Compiles a program of test/c/programs against the shared library; its path. */
  async program(name: string): Promise<string> {
    const directory = join(this.directory, "lib");
    const flags = ["-L", directory, "-lpserver", `-Wl,-rpath,${directory}`];
    return await this.#link(name, [], flags);
  }

  /** Compiles one that uses the library's inner parts; headers are looked for in `include`, too. */
  async innerProgram(name: string, include: string): Promise<string> {
    const objects = join(this.directory, "objects");
    const names = (await readdir(objects)).filter((file) => file.endsWith(".o"));
    const inputs = names.map((file) => join(objects, file));
    const headers = ["-I", SOURCES, "-I", include];
    return await this.#link(name, [...inputs, ...headers], await innerLibraries());
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }

  async #link(
    name: string,
    inputs: readonly string[],
    libraries: readonly string[],
  ): Promise<string> {
    const target = join(this.directory, name);
    const language = ["-std=c11", "-D_GNU_SOURCE", ...WARNINGS, "-Wno-overlength-strings"];
    const headers = ["-I", join(ROOT, "include"), "-I", PROGRAMS];
    const source = join(PROGRAMS, `${name}.c`);
    const end = [...libraries, "-lm", "-pthread", "-o", target];
    await run(this.#compiler, [...language, ...this.#flags, ...headers, source, ...inputs, ...end]);
    return target;
  }
}

/** The C compiler of LLVM, which Debian may have under a versioned name only. */
export async function findClang(): Promise<string> {
  const { stdout } = await run("sh", ["-c", "command -v clang || ls /usr/bin/clang-[0-9]*"]);
  return stdout.trim().split("\n")[0] ?? "clang";
}

/** What the library is linked with: msgpack-c has another name in Debian. */
async function innerLibraries(): Promise<string[]> {
  const command = "pkg-config --libs libnats msgpack-c || pkg-config --libs libnats msgpack";
  const { stdout } = await run("sh", ["-c", command]);
  return stdout.trim().split(/\s+/);
}

/** Runs a program; @throws what it wrote to standard error unless it succeeds. */
export async function runProgram(path: string, args: readonly string[] = []): Promise<string> {
  const { stdout } = await run(path, args, { maxBuffer: OUTPUT_BYTES_MAX });
  return stdout;
}

/** A program under way, whose lines can be waited for. */
export class RunningProgram {
  readonly #lines: string[] = [];
  readonly #child;
  readonly #ended: Promise<number | null>;
  #wake: (() => void)[] = [];
  #errors = "";
  #hasEnded = false;

  constructor(
    path: string,
    args: readonly string[],
    variables: Readonly<Record<string, string>> = {},
  ) {
    const env = { ...process.env, ...variables };
    this.#child = spawn(path, args, { env, stdio: ["pipe", "pipe", "pipe"] });
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.#lines.push(line);
      this.#notify();
    });
    // It may end before it has read all.
    this.#child.stdin.on("error", () => undefined);
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#errors += chunk.toString();
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once("close", (code) => {
        this.#hasEnded = true;
        this.#notify();
        resolve(code);
      });
    });
  }

  /** Waits until so many lines begin with a text. */
  async lines(start: string, count: number): Promise<void> {
    while (this.#lines.filter((line) => line.startsWith(start)).length < count) {
      if (this.#hasEnded) throw new Error(`it ended after ${this.#lines.at(-1)}\n${this.#errors}`);
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  /** The newest line that begins with a text; "" if there is none. */
  text(start: string): string {
    return this.#lines.findLast((line) => line.startsWith(start)) ?? "";
  }

  /** The line with this number, from 0 on; waits for it. */
  async line(number: number): Promise<string> {
    await this.lines("", number + 1);
    return this.#lines[number] ?? "";
  }

  /** Writes a line to its standard input. */
  say(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Writes a line to its standard input, and gives the line that it answers. */
  async ask(line: string): Promise<string> {
    const before = this.#lines.length;
    this.say(line);
    return await this.line(before);
  }

  /** Ends its standard input. */
  finish(): void {
    this.#child.stdin.end();
  }

  /** Waits for its end; @throws what it wrote to standard error unless it succeeded. */
  async end(): Promise<void> {
    const code = await this.#ended;
    if (code !== 0) throw new Error(`it ended with ${code}\n${this.#errors}`);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
