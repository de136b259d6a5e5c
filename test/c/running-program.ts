/** Runs compiled programs: to their end, or with lines that are waited for and said. */
import { execFile, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

/** Runs a program; @throws what it wrote to standard error unless it succeeds. */
export async function runProgram(path: string, args: readonly string[] = []): Promise<string> {
  const { stdout } = await run(path, args, { maxBuffer: OUTPUT_BYTES_MAX });
  return stdout;
}

/** A program under way, whose lines can be waited for. */
export class RunningProgram {
  readonly #lines: string[] = [];
  readonly #child;
  readonly #ended: Promise<number | null>;
  #wake: (() => void)[] = [];
  #errors = "";
  #hasEnded = false;

  constructor(
    path: string,
    args: readonly string[],
    variables: Readonly<Record<string, string>> = {},
  ) {
    const env = { ...process.env, ...variables };
    this.#child = spawn(path, args, { env, stdio: ["pipe", "pipe", "pipe"] });
    createInterface({ input: this.#child.stdout }).on("line", (line) => {
      this.#lines.push(line);
      this.#notify();
    });
    // It may end before it has read all.
    this.#child.stdin.on("error", () => undefined);
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#errors += chunk.toString();
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once("close", (code) => {
        this.#hasEnded = true;
        this.#notify();
        resolve(code);
      });
    });
  }

  /** Waits until so many lines begin with a text. */
  async lines(start: string, count: number): Promise<void> {
    while (this.#lines.filter((line) => line.startsWith(start)).length < count) {
      if (this.#hasEnded) throw new Error(`it ended after ${this.#lines.at(-1)}\n${this.#errors}`);
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }

  /** The newest line that begins with a text; "" if there is none. */
  text(start: string): string {
    return this.#lines.findLast((line) => line.startsWith(start)) ?? "";
  }

  /** The line with this number, from 0 on; waits for it. */
  async line(number: number): Promise<string> {
    await this.lines("", number + 1);
    return this.#lines[number] ?? "";
  }

  /** Writes a line to its standard input. */
  say(line: string): void {
    this.#child.stdin.write(`${line}\n`);
  }

  /** Writes a line to its standard input, and gives the line that it answers. */
  async ask(line: string): Promise<string> {
    const before = this.#lines.length;
    this.say(line);
    return await this.line(before);
  }

  /** Ends its standard input. */
  finish(): void {
    this.#child.stdin.end();
  }

  /** Waits for its end; @throws what it wrote to standard error unless it succeeded. */
  async end(): Promise<void> {
    const code = await this.#ended;
    if (code !== 0) throw new Error(`it ended with ${code}\n${this.#errors}`);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #notify(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
