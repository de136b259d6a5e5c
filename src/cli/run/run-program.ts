import { spawn } from "node:child_process";

/** The result of a program. */
export interface ProgramAnswer {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How to run a short program. */
export interface RunProgramOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly directory?: string;
  readonly timeoutMs: number;
}

/** The most output of a program that is kept. */
const OUTPUT_BYTES_MAX = 1024 * 1024;

const NOT_RUN = 127;
const ENDED = 137;

/** Runs a program, and kills it after `timeoutMs`; if it cannot be run, the code is 127. */
export function runProgram(
  [program, ...args]: readonly [program: string, ...args: string[]],
  { environment, directory, timeoutMs }: RunProgramOptions,
): Promise<ProgramAnswer> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      // A process group of its own: what a terminal sends to its jobs reaches only this process, which may ignore it.
      detached: true,
      env: environment,
      timeout: timeoutMs,
      killSignal: "SIGKILL",
      ...(directory === undefined ? {} : { cwd: directory }),
    });
    const texts = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        texts[name] = (texts[name] + text).slice(0, OUTPUT_BYTES_MAX);
      });
    }
    child.once("error", (error) => resolve({ code: NOT_RUN, stdout: "", stderr: error.message }));
    child.once("close", (code) => resolve({ code: code ?? ENDED, ...texts }));
  });
}
