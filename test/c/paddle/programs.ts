/** Programs that use the Paddle libraries: compiled as their users compile, with pkg-config alone. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { BuiltLibrary } from "../toolchain.ts";

const run = promisify(execFile);
const PROGRAMS = join(import.meta.dirname, "programs");
const WARNINGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/** The sanitizers that programs are compiled with, unless SANITIZE names others. */
const SANITIZERS = process.env["SANITIZE"] ?? "address,undefined";

function flagsOf(names: string): string[] {
  return ["-O1", "-g", "-fno-omit-frame-pointer", `-fsanitize=${names}`];
}

/** The libraries and test programs of all revisions, in a directory of their own. */
export class PaddlePrograms {
  readonly #library: BuiltLibrary;
  readonly #sanitizers: readonly string[];

  private constructor(library: BuiltLibrary, sanitizers: readonly string[]) {
    this.#library = library;
    this.#sanitizers = sanitizers;
  }

  /** Builds the libraries, with these sanitizers. Remove them in `afterAll`. */
  static async build(sanitizers = SANITIZERS): Promise<PaddlePrograms> {
    const flags = flagsOf(sanitizers);
    return new PaddlePrograms(await BuiltLibrary.build(flags), flags);
  }

  /** Compiles a program, whose name begins with its revision, such as `v1-scenario`; its path. */
  async program(name: string): Promise<string> {
    const { stdout } = await run(
      "pkg-config",
      ["--cflags", "--libs", `paddle-pserver-client-${name[1]}`],
      { env: { ...process.env, PKG_CONFIG_PATH: this.pkgConfigPath } },
    );
    const target = join(this.#library.directory, name);
    const source = join(PROGRAMS, `${name}.c`);
    const flags = stdout.trim().split(/\s+/);
    await run("gcc", [
      ...WARNINGS,
      ...this.#sanitizers,
      source,
      ...flags,
      "-pthread",
      "-o",
      target,
    ]);
    return target;
  }

  /** Where pkg-config finds the libraries that were built. */
  get pkgConfigPath(): string {
    return join(this.#library.directory, "lib/pkgconfig");
  }

  async remove(): Promise<void> {
    await this.#library.remove();
  }
}

/** What a program wrote. */
export interface ProgramOutput {
  readonly output: string;
  readonly errors: string;
}

/** Runs a program to its end with variables of its own; @throws what it wrote unless it succeeds. */
export async function runWith(
  path: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<ProgramOutput> {
  const { stdout, stderr } = await run(path, args, { env: { ...process.env, ...variables } });
  return { output: stdout, errors: stderr };
}
