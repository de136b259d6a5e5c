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
 * What outlives its process group may hold the streams open: nobody waits longer for its words. A slow reader of
 * ours may take any time.
 */
const OUTPUT_TIMEOUT_MS = 5_000;

/** A trainer and all of its process group; it ends with this process, however that ends. */
export class GuardedProcess {
  /**
   * Settles with the exit code when the process has ended, its group is gone and its output is printed;
   * 128 and the signal's number if one ended it. Rejects with IO if it cannot be run.
   */
  readonly ended: Promise<number>;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #hasEnded = false;

  constructor(options: GuardedProcessOptions) {
    const [program, ...args] = options.program;
    const { rank, output, environment } = options;
    // A group of its own: Ctrl-C reaches only us, and signals reach all that the trainer starts.
    this.#child = spawn(program, args, {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
      env: environment,
    });
    const printed = Promise.allSettled([
      output.follow(rank, "stdout", this.#child.stdout),
      output.follow(rank, "stderr", this.#child.stderr),
    ]);
    // A guard that is gone reads no more; its exit tells.
    this.#child.stdin.on("error", () => {});
    this.#child.stdin.write(options.startLine);
    this.ended = this.#untilEnded(options, printed);
    this.ended.catch(() => {});
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
      // Only a guard that was ended itself has no code, and that by SIGKILL.
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
    // Nobody is left in the group.
    if (errnoCode(error) !== "ESRCH") throw error;
  }
}
