// Proves that the trainer core in C decides as the one in TypeScript does: it gives the commands of the
// shared scripts, and each plays scripts of random events that the other has recorded, line by line. C runs
// under address and undefined behaviour sanitizers, compiled without threads, connections or any library,
// and at times without memory.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OutboxMachine, OutboxPlayer } from "../../client/core/outbox-script.ts";
import {
  type Machine,
  type Player,
  type Recorder,
  record,
  replay,
} from "../../client/core/script.ts";
import { SessionMachine, SessionPlayer } from "../../client/core/session-script.ts";
import { StepsMachine, StepsPlayer } from "../../client/core/steps-script.ts";
import { Random } from "../../simulation/random.ts";
import { cFiles, SANITIZED } from "../toolchain.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../../..");
const SOURCES = join(ROOT, "src/client/c");
const VECTORS = join(ROOT, "test/vectors/core");

const SCRIPTS = 500;
const EVENTS = 200;
/** The shared scripts have the seeds before it. */
const FIRST_SEED = 1_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

type Make = (settings: string, recorder: Recorder) => Machine;

const makeOutbox: Make = (settings, recorder) => new OutboxMachine(settings, recorder);
const makeSession: Make = (settings, recorder) => new SessionMachine(settings, recorder);
const makeSteps: Make = (settings, recorder) => new StepsMachine(settings, recorder);

let directory: string;
let program: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "pserver-core-"));
  program = join(directory, "core");
  const folders = ["core", "steps", "errors", "formats"].map((name) => cFiles(join(SOURCES, name)));
  const core = (await Promise.all(folders)).flat();
  const own = await cFiles(import.meta.dirname);
  const headers = [SOURCES, join(ROOT, "include"), import.meta.dirname].flatMap((at) => ["-I", at]);
  const language = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
  const inputs = [...core, ...own];
  const memory = ["malloc", "calloc", "realloc"].map((name) => `-Wl,--wrap=${name}`);
  await run("gcc", [
    ...language,
    ...SANITIZED,
    ...headers,
    ...inputs,
    ...memory,
    "-lm",
    "-o",
    program,
  ]);
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** Plays the scripts of a file in C. @throws the first command that differs, and what a sanitizer finds. */
async function playInC(path: string): Promise<void> {
  const { stdout } = await run("sh", ["-c", `exec "$0" play < "$1"`, program, path]);
  expect(Number(stdout)).toBe((await readFile(path, "utf8")).split("\n").length - 1);
}

test.each(["outbox", "session", "steps"])("C plays the shared scripts of the %s", async (name) => {
  await playInC(join(VECTORS, `${name}.txt`));
});

test.each<[string, (random: Random) => Player, Make]>([
  ["outbox", (random) => new OutboxPlayer(random), makeOutbox],
  ["session", (random) => new SessionPlayer(random), makeSession],
  ["steps", (random) => new StepsPlayer(random), makeSteps],
])("C plays scripts of the %s that TypeScript has recorded", async (name, play, make) => {
  const scripts = Array.from({ length: SCRIPTS }, (_, index) =>
    record(play(new Random(FIRST_SEED + index)), make, EVENTS),
  );
  const path = join(directory, `${name}.txt`);
  await writeFile(path, `${scripts.join("\n\n")}\n`);
  await playInC(path);
});

test("TypeScript plays scripts of the outbox that C has recorded", async () => {
  const args = ["random", "1", String(SCRIPTS), String(EVENTS)];
  const { stdout } = await run(program, args, { maxBuffer: OUTPUT_BYTES_MAX });
  const scripts = stdout.trimEnd().split("\n\n");
  expect(scripts).toHaveLength(SCRIPTS);
  for (const script of scripts) expect(replay(script, makeOutbox)).toBe(script);
});

test("a command of C that differs is found", async () => {
  const script = record(new OutboxPlayer(new Random(1)), makeOutbox, EVENTS);
  const path = join(directory, "altered.txt");
  await writeFile(path, `${script.replace(/^< publish (.*) \d$/m, "< publish $1 7")}\n`);
  await expect(playInC(path)).rejects.toThrow("expected < publish");
});
