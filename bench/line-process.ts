import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

const CALL_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 10_000;

interface Waiting {
  readonly resolve: (values: string[]) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A program in another language that reads one command per line and answers each with a line: `ok` and
 * values, or `error` and why. It ends when its input does.
 */
export class LineProcess {
  readonly pid: number;
  readonly #program: string;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  #waiting: Waiting | undefined;

  private constructor(program: string, child: ChildProcess, answers: NodeJS.ReadableStream) {
    this.#program = program;
    this.#child = child;
    this.pid = child.pid ?? 0;
    createInterface({ input: answers }).on("line", (line) => this.#settle(line));
    // The end of the program is reported below.
    child.stdin?.on("error", () => {});
    this.#exited = new Promise((resolve) => {
      const end = (how: string): void => {
        this.#waiting?.reject(new Error(`${program} ${how}`));
        this.#waiting = undefined;
        resolve();
      };
      child.once("error", (error) => end(`failed: ${error.message}`));
      child.once("exit", (code, signal) => end(`ended: ${signal ?? code}`));
    });
  }

  /** Starts the program of this path; `env` adds to the environment of this process. */
  static start(path: string, args: readonly string[] = [], env?: NodeJS.ProcessEnv): LineProcess {
    const child = spawn(path, args, {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, ...env },
    });
    return new LineProcess(path, child, child.stdout);
  }

  /** Runs a command, one at a time; none of its arguments may hold a blank. @throws its error. */
  async call(command: string, ...args: readonly (string | number)[]): Promise<string[]> {
    const line = [command, ...args].join(" ");
    if (this.#waiting !== undefined) throw new Error(`${this.#program}: busy before ${line}`);
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<string[]>((resolve, reject) => {
        const late = `${this.#program} ${line}: no answer in ${CALL_TIMEOUT_MS} ms`;
        timer = setTimeout(() => reject(new Error(late)), CALL_TIMEOUT_MS);
        this.#waiting = { resolve, reject };
        this.#child.stdin?.write(`${line}\n`);
      });
    } finally {
      clearTimeout(timer);
      this.#waiting = undefined;
    }
  }

  /** Runs a command that answers with numbers. */
  async numbers(command: string, ...args: readonly (string | number)[]): Promise<number[]> {
    return (await this.call(command, ...args)).map(Number);
  }

  /** Ends the process: its input ends, then it is killed. */
  async stop(): Promise<void> {
    this.#child.stdin?.end();
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(timer);
  }

  #settle(line: string): void {
    const [kind, ...values] = line.trim().split(" ");
    if (kind === "ok") this.#waiting?.resolve(values);
    else this.#waiting?.reject(new Error(`${this.#program}: ${line}`));
  }
}
