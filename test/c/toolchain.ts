/** Compiles the C library and programs that use it, with the compilers of the machine. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
const SOURCES = join(ROOT, "src/client/c");
const PROGRAMS = join(import.meta.dirname, "programs");
const SCRIPTED = join(import.meta.dirname, "scripted");
const UPDATES = join(import.meta.dirname, "updates");
const KNOWN_LEAKS = join(import.meta.dirname, "known-leaks.c");

/** A connection, a clock and threads that exist only in the process of a test. */
export const FAKES: string = join(import.meta.dirname, "fakes");

/** Sources of the library that they stand for. */
export const REPLACED: ReadonlySet<string> = new Set([
  "wire/clock.c",
  "wire/link.c",
  "wire/settings.c",
]);

const WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/** A directory for each compiler and its flags. */
const BUILDS = join(ROOT, "build/tests");

/** Where `make build` compiles to. */
const SHIPPED = join(ROOT, "build");

/** Flags for a library and programs that end with an error when one of these sanitizers finds one. */
export function sanitizedBy(sanitizers: string): string[] {
  // By default the sanitizer of undefined behaviour only prints what it finds.
  const fatal = "-fno-sanitize-recover=all";
  return ["-O1", "-g", `-fsanitize=${sanitizers}`, fatal, "-fno-omit-frame-pointer"];
}

/** Finds bad memory accesses, leaks and undefined behaviour while a program runs. */
export const SANITIZED = sanitizedBy("address,undefined");

/** Whether programs built with these flags end with an error if they have leaked memory. */
function findsLeaks(flags: readonly string[]): boolean {
  return flags.some((flag) => flag.startsWith("-fsanitize=") && flag.includes("address"));
}

/** A library that all test files share which build it alike, and the programs of one of them. */
export class BuiltLibrary {
  /** Holds lib/ and objects/. Shared: nothing may be written to it. */
  readonly directory: string;
  /** Flags of the compiler that the library was built with. */
  readonly flags: readonly string[];
  /** Where programs are compiled to. */
  readonly programs: string;
  readonly #compiler: string;

  private constructor(
    directory: string,
    programs: string,
    compiler: string,
    flags: readonly string[],
  ) {
    this.directory = directory;
    this.programs = programs;
    this.#compiler = compiler;
    this.flags = flags;
  }

  /** Brings it up to date; warnings are errors. Remove its programs in `afterAll`. */
  static async build(flags: readonly string[], compiler = "gcc"): Promise<BuiltLibrary> {
    const name = [basename(compiler), ...flags].join("").replaceAll(/[^a-zA-Z0-9]+/g, "-");
    const directory = join(BUILDS, name);
    await makeLibrary(directory, [`CC=${compiler}`, `CFLAGS=${flags.join(" ")} -Werror`]);
    return new BuiltLibrary(directory, await programsDirectory(), compiler, flags);
  }

  /** The library of `make build`, as its users have it. Remove the programs in `afterAll`. */
  static async asShipped(): Promise<BuiltLibrary> {
    await makeLibrary(SHIPPED, []);
    return new BuiltLibrary(SHIPPED, await programsDirectory(), "gcc", ["-O2", "-g"]);
  }

  /** Compiles a program of test/c/programs against the shared library; its path. */
  async program(name: string): Promise<string> {
    const directory = join(this.directory, "lib");
    const flags = ["-L", directory, "-lpserver", `-Wl,-rpath,${directory}`];
    return await this.#link(name, [join(PROGRAMS, `${name}.c`)], flags);
  }

  /** Compiles one that uses the library's inner parts; headers are looked for in `include`, too. */
  async innerProgram(name: string, include: string): Promise<string> {
    const inputs = [...(await this.#objects()), "-I", SOURCES, "-I", include];
    return await this.#link(name, [join(PROGRAMS, `${name}.c`), ...inputs], await innerLibraries());
  }

  /** Compiles the scenarios of test/c/scripted. */
  async scriptedProgram(include: string): Promise<string> {
    return await this.#fakedProgram("scripted", [...(await cFiles(SCRIPTED)), "-I", include]);
  }

  /** Compiles the program of test/c/updates, which makes calls that it is told. */
  async updatesProgram(): Promise<string> {
    const own = [...(await cFiles(UPDATES)), join(SCRIPTED, "scripted.c")];
    return await this.#fakedProgram("updates", own);
  }

  /** Compiles a program in which connection, clock and threads are those of test/c/fakes. */
  async #fakedProgram(name: string, inputs: readonly string[]): Promise<string> {
    const objects = [...(await cFiles(FAKES)), ...(await this.#objects(REPLACED))];
    const headers = [SOURCES, SCRIPTED, FAKES].flatMap((path) => ["-I", path]);
    const threads = ["pthread_create", "pthread_join", "pthread_detach"].flatMap((name) => [
      `-Wl,--wrap=${name}`,
      `-Wl,--defsym=__wrap_${name}=${name.replace("pthread", "fake_thread")}`,
    ]);
    const libraries = [...(await innerLibraries()), ...threads];
    return await this.#link(name, [...inputs, ...objects, ...headers], libraries);
  }

  /** The library's objects, by the names of the sources: those of some that are gone may still be there. */
  async #objects(without: ReadonlySet<string> = new Set()): Promise<string[]> {
    return (await librarySources())
      .filter((name) => !without.has(name))
      .map((name) => join(this.directory, "objects", `${name.slice(0, -1)}o`));
  }

  /** Removes the programs; the library is kept for others. */
  async remove(): Promise<void> {
    await rm(this.programs, { recursive: true, force: true });
  }

  async #link(
    name: string,
    inputs: readonly string[],
    libraries: readonly string[],
  ): Promise<string> {
    const target = join(this.programs, name);
    const language = ["-std=c11", "-D_GNU_SOURCE", ...WARNINGS, "-Wno-overlength-strings"];
    const headers = ["-I", join(ROOT, "include"), "-I", PROGRAMS];
    const end = [...libraries, "-lm", "-pthread", "-o", target];
    const sources = [...inputs, ...(findsLeaks(this.flags) ? [KNOWN_LEAKS] : [])];
    await run(this.#compiler, [...language, ...this.flags, ...headers, ...sources, ...end]);
    return target;
  }
}

/** Has make bring a library up to date. Test files run at the same time: one builds, the others wait. */
async function makeLibrary(directory: string, settings: readonly string[]): Promise<void> {
  await mkdir(BUILDS, { recursive: true });
  const lock = join(BUILDS, `${basename(directory)}.lock`);
  await run("flock", [lock, "make", "-s", "-j2", "-C", SOURCES, `BUILD=${directory}`, ...settings]);
}

function programsDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), "pserver-c-"));
}

/** Sources of the library, relative to src/client/c, without PaddlePaddle's libraries. */
export async function librarySources(): Promise<string[]> {
  const names = await readdir(SOURCES, { recursive: true });
  return names.filter((name) => name.endsWith(".c") && !name.startsWith("paddle/")).sort();
}

/** Paths of the C sources in a directory. */
export async function cFiles(directory: string): Promise<string[]> {
  const names = await readdir(directory);
  return names.filter((name) => name.endsWith(".c")).map((name) => join(directory, name));
}

/** What the library is linked with: msgpack-c has another name in Debian. */
async function innerLibraries(): Promise<string[]> {
  const command = "pkg-config --libs libnats msgpack-c || pkg-config --libs libnats msgpack";
  const { stdout } = await run("sh", ["-c", command]);
  return stdout.trim().split(/\s+/);
}
