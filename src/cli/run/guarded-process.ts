import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { PserverError } from "../../protocol/errors.ts";
import { errnoCode } from "../../system/file-errors.ts";
import { KILLED } from "./exit-code.ts";
import type { TrainerOutput } from "./trainer-output.ts";

/** A trainer to run under a guard. */
export interface GuardedProcessOptions {
  /** What runs the guard: `sh -c GUARD`, here or behind ssh. */
  readonly program: readonly [program: string, ...args: string[]];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The guard's first line: the command and its variables. */
  readonly startLine: string;
  readonly rank: number;
  readonly output: TrainerOutput;
}

/**
 * Longest wait for output after the process group has ended: a process that left the group may hold the
 * streams open. A slow reader of this process's output may take any time.
 */
const OUTPUT_TIMEOUT_MS = 5_000;

/** A trainer and its process group, which ends when this process does, however that ends. */
export class GuardedProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #ended: Promise<number> = Promise.resolve(0);
  #hasEnded = false;

  private constructor(child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.#child = child;
  }

  /** Starts a trainer under its guard. */
  static start(options: GuardedProcessOptions): GuardedProcess {
    const [program, ...args] = options.program;
    const { rank, output, environment } = options;
    // A process group of its own: Ctrl-C reaches only this process, and signals reach all that the
    // trainer starts.
    const child = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      env: environment,
    });
    const printed = Promise.allSettled([
      output.follow(rank, "stdout", child.stdout),
      output.follow(rank, "stderr", child.stderr),
    ]);
    // A guard that has died reads no more; its exit is reported instead.
    child.stdin.on("error", () => {});
    child.stdin.write(options.startLine);
    const guarded = new GuardedProcess(child);
    guarded.#ended = guarded.#untilEnded(options, printed);
    guarded.#ended.catch(() => {});
    return guarded;
  }

  /**
   * Settles with the exit code when the process has ended, its group is gone and its output is printed;
   * with 128 and the signal's number if a signal ended it. Rejects with IO if it cannot be run.
   */
  get ended(): Promise<number> {
    return this.#ended;
  }

  /** Sends a signal to the whole group, here or on the machine where it runs. */
  signal(name: "INT" | "TERM" | "KILL"): void {
    if (!this.#hasEnded) this.#child.stdin.write(`${name}\n`);
  }

  /** Ends the group, or the connection to it, with SIGKILL. */
  kill(): void {
    this.#child.stdin.destroy();
    killGroup(this.#child.pid);
  }

  async #untilEnded(
    { program: [program], output }: GuardedProcessOptions,
    printed: Promise<unknown>,
  ): Promise<number> {
    const code = await new Promise<number>((resolve, reject) => {
      this.#child.once("error", (cause) => {
        const message = `cannot run ${program}: ${cause.message}`;
        reject(new PserverError("IO", message, { program }, { cause }));
      });
      // Only a guard that SIGKILL ended has no exit code.
      this.#child.once("exit", (exitCode) => resolve(exitCode ?? KILLED));
    }).finally(() => {
      this.#hasEnded = true;
      this.#child.stdin.destroy();
      killGroup(this.#child.pid);
    });
    const timer = setInterval(() => {
      if (output.isHeldUp) return;
      this.#child.stdout.destroy();
      this.#child.stderr.destroy();
    }, OUTPUT_TIMEOUT_MS);
    await printed;
    clearInterval(timer);
    return code;
  }
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // ESRCH: the group is gone.
    if (errnoCode(error) !== "ESRCH") throw error;
  }
}
