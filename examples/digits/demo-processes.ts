import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { Child, type Message } from "./child.ts";

/** Ending of programs' files: they run as `.ts` or compiled to `.js`. */
const ENDING = extname(import.meta.filename);

/**
 * Returns the file of a program of this checkout, given relative to this directory without its
 * ending.
 */
export function programFile(program: string): string {
  return resolve(import.meta.dirname, `${program}${ENDING}`);
}

/** The processes and the directory of one run, all removed when it ends, however it ends. */
export class DemoProcesses {
  /** Directory for all files of the run. */
  readonly directory: string = mkdtempSync(join(tmpdir(), "digits-"));
  /** Rejects when a process ends that should not, or when the run is interrupted or too long. */
  readonly failed: Promise<never>;
  /** Makes the run fail; only the first failure counts. */
  readonly fail: (error: Error) => void;
  readonly #children: Child[] = [];
  #ended = false;

  constructor(timeoutMs: number) {
    let fail: (error: Error) => void = () => {};
    this.failed = new Promise((_, reject) => {
      fail = reject;
    });
    this.fail = fail;
    // Handled here, because nobody may be waiting for it.
    this.failed.catch(() => {});
    const tooLong = new Error(`it did not finish in ${timeoutMs / 1000} s`);
    setTimeout(() => this.fail(tooLong), timeoutMs).unref();
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.once(signal, () => {
        this.fail(new Error(`interrupted by ${signal}`));
        // The second signal waits for nobody.
        process.once(signal, () => process.exit(1));
      });
    }
    process.once("exit", () => this.#abandon());
  }

  /** Starts a program, named as for {@link programFile}. @throws Error once the run has ended. */
  start(
    name: string,
    program: string,
    args: readonly string[],
    onMessage: (message: Message) => void,
  ): Child {
    if (this.#ended) throw new Error(`${name} is not started: the run has ended`);
    const child = new Child({
      name,
      script: programFile(program),
      arguments: args,
      onMessage,
      onFailure: this.fail,
    });
    this.#children.push(child);
    return child;
  }

  /**
   * Starts a program as {@link start} does; settles with the message in which the program says that
   * it is `ready`.
   */
  async startReady(
    name: string,
    program: string,
    args: readonly string[],
  ): Promise<{ child: Child; ready: Message }> {
    return await new Promise((onReady, onFailure) => {
      const child = this.start(name, program, args, (message) => {
        if (message["ready"] === true) onReady({ child, ready: message });
      });
      this.failed.catch(onFailure);
    });
  }

  /**
   * Ends the processes and removes the directory. The first process, whose broker the others need, is
   * stopped in order after the others were killed.
   */
  async end(): Promise<void> {
    this.#ended = true;
    const [first, ...others] = this.#children;
    await Promise.all(others.map((child) => child.kill()));
    await first?.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  #abandon(): void {
    const [first, ...others] = this.#children;
    for (const child of others) child.signal("SIGKILL");
    first?.signal("SIGTERM");
    rmSync(this.directory, { recursive: true, force: true });
  }
}
