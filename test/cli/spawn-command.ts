import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PassThrough, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { HANG_MS } from "../support/limits.ts";
import { testProgram } from "../support/test-program.ts";

/** The compiled command; `make e2e` compiles it first. */
export const MAIN = process.env["PSERVER_CLI"] ?? join(packageRoot(), "dist", "pserver.js");

/** How to run a command. */
export interface CommandOptions {
  readonly cwd?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Another installation's program. */
  readonly main?: string;
}

/** How a command ended, and all that it printed. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs. */
export interface Running {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly finished: Promise<Finished>;
  /** Settles with the first line on stdout; rejects with stderr if the command ends before. */
  readonly firstLine: Promise<string>;
  /** All that it has printed on stdout so far. */
  output(): string;
  /** All that it has printed on stderr so far. */
  errors(): string;
}

/** Commands that wait for a broker or for hosts as long as `--timeout` says. */
const WAITING = new Set([
  ...["backup", "bisect", "blame", "diff", "doctor", "find", "fork", "get", "jobs", "ledger"],
  ...["load", "log", "ls", "plot", "record", "remove", "replay", "rewind", "save", "set", "show"],
  ...["status", "verify", "what-if"],
]);

/** How long the broker may take to accept a connection. */
const PATIENT_CONNECT = { NATS_TIMEOUT: `${HANG_MS}ms` };

/**
 * Returns the arguments with a long `--timeout` where the command takes one and none is given: on a busy machine the
 * answer may come later than a person would wait.
 */
function patient(args: readonly string[]): string[] {
  const [command = "", ...others] = args;
  const isGiven = others.some((arg) => ["--timeout", "--help", "-h"].includes(arg));
  if (isGiven || !WAITING.has(command)) return [...args];
  return [command, "--timeout", `${HANG_MS}ms`, ...others];
}

/** The environment of the tests, without what says where a broker is or how to print. */
function neutralEnvironment(): Record<string, string | undefined> {
  const telling =
    /^(?:NATS_|PSERVER_URL|PSERVER_JOB|SLURM_|SBATCH_|XDG_(?!STATE)|HOME$|NO_COLOR|FORCE_COLOR|COLUMNS$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !telling.test(name)));
}

/** Starts `pserver` as {@link launch} does; it ends with the test at the latest. */
export function start(args: readonly string[], options: CommandOptions = {}): Running {
  const running = launch(args, options);
  onTestFinished(() => {
    running.child.kill("SIGKILL");
  });
  return running;
}

/**
 * Starts `pserver`, which the caller ends. Nothing of the environment but what is given says where a broker is.
 */
export function launch(args: readonly string[], options: CommandOptions = {}): Running {
  const environment = { ...neutralEnvironment(), ...PATIENT_CONNECT, ...options.environment };
  const child = spawn(process.execPath, [options.main ?? MAIN, ...patient(args)], {
    stdio: ["ignore", "pipe", "pipe"],
    env: environment,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const finished = once(child, "close").then(([code]): Finished => ({ code, stdout, stderr }));
  const firstLine = Promise.race([
    once(createInterface({ input: child.stdout }), "line").then(([line]) => String(line)),
    finished.then((end): never => {
      throw new Error(`pserver ${args.join(" ")} ended with ${end.code}: ${end.stderr}`);
    }),
  ]);
  firstLine.catch(() => {});
  return { child, finished, firstLine, output: () => stdout, errors: () => stderr };
}

/** Runs `pserver` as a process of its own to its end. */
export function runProcess(args: readonly string[], options?: CommandOptions): Promise<Finished> {
  return start(args, options).finished;
}

/**
 * Runs `pserver`, as compiled, to its end in the process of the test, and in its directory: to start one takes
 * a fifth of a second of processor time.
 */
export async function run(
  args: readonly string[],
  { environment }: Pick<CommandOptions, "environment"> = {},
): Promise<Finished> {
  const { runCli }: typeof import("../e2e/programs/run-cli.ts") = await import(
    testProgram("run-cli")
  );
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  stdin.end();
  // Whoever prints much waits for its reader.
  const printed = Promise.all([text(stdout), text(stderr)]);
  const before = process.env;
  process.env = { ...neutralEnvironment(), ...PATIENT_CONNECT, ...environment };
  const { signal } = new AbortController();
  const ending = runCli(patient(args), { stdin, stdout, stderr, environment: process.env, signal });
  // Commander has read the variables that stand for flags.
  process.env = before;
  const code = await ending;
  stdout.end();
  stderr.end();
  const [output, errors] = await printed;
  return { code, stdout: output, stderr: errors };
}
