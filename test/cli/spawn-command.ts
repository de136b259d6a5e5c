import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { onTestFinished } from "vitest";
import { packageRoot } from "../../src/broker/broker-config.ts";

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

/**
 * Starts `pserver`; it ends with the test at the latest. Nothing of the environment but what is
 * given says where a broker is.
 */
export function start(args: readonly string[], options: CommandOptions = {}): Running {
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      !/^(?:NATS_|PSERVER_URL|PSERVER_JOB|SLURM_|SBATCH_|XDG_|HOME$|NO_COLOR|FORCE_COLOR|COLUMNS$)/.test(
        name,
      ),
  );
  const environment = { ...Object.fromEntries(inherited), ...options.environment };
  const child = spawn(process.execPath, [options.main ?? MAIN, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: environment,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
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

/** Runs `pserver` to its end. */
export function run(args: readonly string[], options?: CommandOptions): Promise<Finished> {
  return start(args, options).finished;
}
