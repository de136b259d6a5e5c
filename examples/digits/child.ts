import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A JSON line from a child process, as an object. */
export type Message = Readonly<Record<string, unknown>>;

/** How to start a child process. */
export interface ChildOptions {
  /** The name of the process in messages. */
  readonly name: string;
  /** The program's file, run in the same way as that of this process. */
  readonly script: string;
  readonly arguments: readonly string[];
  /** Gets each line of its standard output that is a JSON object. */
  readonly onMessage: (message: Message) => void;
  /** Called if it ends and nobody has stopped or killed it. */
  readonly onFailure: (error: Error) => void;
}

const STOP_TIMEOUT_MS = 10_000;
const LOG_LINES_MAX = 20;

/**
 * A child process that reports what it does as JSON lines and ends when told to. It has a process
 * group of its own, so that Ctrl-C reaches only this process, and a channel that closes when this
 * process ends, which it watches.
 */
export class Child {
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #log: string[] = [];
  #running = true;
  #expectedToEnd = false;

  /** Starts it at once. */
  constructor(options: ChildOptions) {
    this.name = options.name;
    this.#process = spawn(
      process.execPath,
      [...process.execArgv, options.script, ...options.arguments],
      { stdio: ["ignore", "pipe", "pipe", "ipc"], detached: true },
    );
    this.#readLines(options.onMessage);
    this.#ended = this.#watch(options.onFailure);
  }

  /** Whether it has not ended yet. */
  get running(): boolean {
    return this.#running;
  }

  /** Ends it with SIGKILL, like a crash, and waits until it has ended and its output is read. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#ended;
  }

  /** Asks it to end, kills it after 10 s, and waits as {@link kill} does. */
  async stop(): Promise<void> {
    this.signal("SIGTERM");
    const insist = setTimeout(() => this.#process.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await this.#ended;
    clearTimeout(insist);
  }

  /** Sends a signal to end it, without waiting. */
  signal(signal: "SIGTERM" | "SIGKILL"): void {
    this.#expectedToEnd = true;
    if (this.#running) this.#process.kill(signal);
  }

  async #watch(onFailure: (error: Error) => void): Promise<void> {
    try {
      const [code, signal] = await once(this.#process, "close");
      if (this.#expectedToEnd) return;
      const log = this.#log.map((line) => `\n  ${line}`).join("");
      onFailure(new Error(`${this.name} ended: ${signal ?? `exit code ${code}`}${log}`));
    } catch (cause) {
      onFailure(new Error(`${this.name} cannot be started`, { cause }));
    } finally {
      this.#running = false;
    }
  }

  #readLines(onMessage: ChildOptions["onMessage"]): void {
    const { stdout, stderr } = this.#process;
    const keep = (line: string): void => {
      this.#log.push(line);
      if (this.#log.length > LOG_LINES_MAX) this.#log.shift();
    };
    if (stderr !== null) createInterface({ input: stderr }).on("line", keep);
    if (stdout === null) return;
    createInterface({ input: stdout }).on("line", (line) => {
      const message = parseMessage(line);
      if (message === undefined) keep(line);
      else onMessage(message);
    });
  }
}

function parseMessage(line: string): Message | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    // Only looks like JSON: text for the log.
    return undefined;
  }
}
