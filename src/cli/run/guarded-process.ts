import { type ChildProcessByStdio, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Readable, Writable } from "node:stream";
import { PserverError } from "../../protocol/errors.ts";
import { errnoCode } from "../../system/file-errors.ts";
import { shellWord } from "../../system/shell-word.ts";
import type { Variables } from "./launch.ts";
import type { TrainerOutput } from "./trainer-output.ts";

/** Time in seconds between SIGTERM and SIGKILL for a trainer whose launcher has ended. */
const GRACE_SECONDS = 5;

/**
 * The shell program that runs one trainer and ends it with its launcher. The launcher writes to its
 * standard input: first one line of shell that sets the command and its variables, then names of signals
 * for the whole process group. When the input ends, because the launcher or the connection has ended, the
 * group gets SIGTERM and, after a grace period, SIGKILL. The exit code is the trainer's, as in shells.
 *
 * It holds no newline, single quote, backslash or exclamation mark, so that any login shell takes it in
 * single quotes.
 */
export const GUARD = [
  "exec 3<&0 0</dev/null",
  "gone=",
  "trap : INT TERM HUP",
  'trap "gone=1" USR1',
  "nl=$(echo; echo x)",
  // Removes the x, which kept the shell from cutting off the newline.
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
  "nl=${nl%x}",
  "IFS= read -r start <&3 || exit 125",
  'eval "$start" || exit 125',
  '( trap "" INT TERM HUP USR1; while IFS= read -r name; do kill -s "$name" 0; done;' +
    ` kill -s USR1 $$; kill -s TERM 0; sleep ${GRACE_SECONDS}; kill -s KILL 0 ) <&3 3<&- >/dev/null 2>&1 &` +
    " watcher=$!",
  '"$@" 3<&-',
  "code=$?",
  'kill -s KILL "$watcher"',
  // Ends processes that the trainer has left running.
  '[ -z "$gone" ] || kill -s KILL 0',
  'trap "" TERM',
  "kill -s TERM 0",
  'exit "$code"',
].join("; ");

/** Command and variables of a trainer. */
export interface GuardedStart {
  readonly command: readonly string[];
  /** Variables to add to what the guard has, or to remove from it. */
  readonly variables: Variables;
  /** Variables to add where the guard has none of the name. */
  readonly defaults?: Variables;
  /** Where to run, if not where the guard does. */
  readonly directory?: string;
}

/** Writes the first line for {@link GUARD}, with its newline. */
export function startLine({ command, variables, defaults = {}, directory }: GuardedStart): string {
  const initial = Object.entries(defaults).flatMap(([name, value]) =>
    value === undefined ? [] : [`export ${name}="\${${name}-${value}}"`],
  );
  const changes = Object.entries(variables).map(([name, value]) =>
    value === undefined ? `unset ${name}` : `export ${name}=${inLine(value)}`,
  );
  const enter = directory === undefined ? [] : [`cd -- ${inLine(directory)}`];
  const words = command.map(inLine).join(" ");
  return `${[...enter, ...initial, ...changes, `set -- ${words}`].join(" && ")}\n`;
}

/** Writes a shell word in which `$nl` stands for each newline. */
function inLine(word: string): string {
  return word.split("\n").map(shellWord).join('"$nl"');
}

/** Shells add this to the number of a signal that ended a program. */
const SIGNAL_BASE = 128;

/** The exit code of a program that SIGKILL has ended. */
const KILLED = SIGNAL_BASE + constants.signals.SIGKILL;

/** Describes an exit code for people, with the signal that it stands for. */
export function inWords(exitCode: number): string {
  const code = `with exit code ${exitCode}`;
  if (exitCode === KILLED)
    return `${code} (SIGKILL, which the kernel sends when memory has run out)`;
  const signals = Object.entries(constants.signals);
  const signal = signals.find(([, number]) => SIGNAL_BASE + number === exitCode)?.[0];
  return signal === undefined ? code : `${code} (${signal})`;
}

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
 * Longest wait for output after the process group has ended: a process that left the group may hold the streams
 * open. A slow reader of this process's output may take any time.
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
