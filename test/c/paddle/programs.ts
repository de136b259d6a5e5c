/** Programs that use the Paddle libraries: compiled as their users compile, with pkg-config alone. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { HANG_MS } from "../../support/limits.ts";
import { BuiltLibrary, sanitizedBy } from "../toolchain.ts";

const run = promisify(execFile);
const PROGRAMS = join(import.meta.dirname, "programs");
const WARNINGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/** The sanitizers that programs are compiled with, unless SANITIZE names others. */
const SANITIZERS = process.env["SANITIZE"] ?? "address,undefined";

/** The libraries of all revisions, and test programs of them. */
export class PaddlePrograms {
  readonly #library: BuiltLibrary;
  /** By name; what is under way as well. */
  readonly #paths = new Map<string, Promise<string>>();

  private constructor(library: BuiltLibrary) {
    this.#library = library;
  }

  /** Builds the libraries, with these sanitizers. Remove the programs in `afterAll`. */
  static async build(sanitizers = SANITIZERS): Promise<PaddlePrograms> {
    return new PaddlePrograms(await BuiltLibrary.build(sanitizedBy(sanitizers)));
  }

  /** Compiles a program once, whose name begins with its revision, such as `v1-scenario`; its path. */
  async program(name: string): Promise<string> {
    const path = this.#paths.get(name) ?? this.#compile(name);
    this.#paths.set(name, path);
    return await path;
  }

  async remove(): Promise<void> {
    await this.#library.remove();
  }

  async #compile(name: string): Promise<string> {
    const packages = join(this.#library.directory, "lib/pkgconfig");
    const { stdout } = await run(
      "pkg-config",
      ["--cflags", "--libs", `paddle-pserver-client-${name[1]}`],
      { env: { ...process.env, PKG_CONFIG_PATH: packages } },
    );
    const target = join(this.#library.programs, name);
    const source = join(PROGRAMS, `${name}.c`);
    const flags = stdout.trim().split(/\s+/);
    await run("gcc", [
      ...WARNINGS,
      ...this.#library.flags,
      source,
      ...flags,
      "-pthread",
      "-o",
      target,
    ]);
    return target;
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
  const { stdout, stderr } = await run(path, args, {
    env: { ...process.env, ...variables },
    timeout: HANG_MS,
    killSignal: "SIGKILL",
  });
  return { output: stdout, errors: stderr };
}
