import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { PserverError } from "../protocol/errors.ts";

/** How a broker ended: with an exit code, or by a signal. */
export interface BrokerExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

const STOP_TIMEOUT_MS = 15_000;

/** Lines of the log kept for the message of a failed start. */
const LINES_KEPT = 8;

/** Runs a program that the kernel signals when its parent ends; part of util-linux. */
const SETPRIV = ["/usr/bin/setpriv", "/bin/setpriv"].find((path) => existsSync(path));

/** Brokers to be stopped when this process exits. */
const running = new Set<BrokerProcess>();
let exitHooked = false;

/** One running nats-server process and the end of its log. */
export class BrokerProcess {
  readonly pid: number;
  readonly exited: Promise<BrokerExit>;
  readonly #child: ChildProcessByStdio<null, null, Readable>;
  readonly #lines: string[] = [];
  #hasExited = false;

  private constructor(
    child: ChildProcessByStdio<null, null, Readable>,
    exited: Promise<BrokerExit>,
  ) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    this.exited = exited;
  }

  /**
   * Starts the program in a process group of its own, so that Ctrl-C reaches only this process, and the
   * broker can be stopped after everything that depends on it.
   * @throws NO_BROKER if the program cannot be run.
   */
  static async spawn(
    program: string,
    args: readonly string[],
    afterExit: () => Promise<void>,
    onLog: (line: string) => void,
  ): Promise<BrokerProcess> {
    const command =
      SETPRIV === undefined
        ? [program, ...args]
        : [SETPRIV, "--pdeathsig", "TERM", program, ...args];
    const [file = program, ...rest] = command;
    const child = spawn(file, rest, { stdio: ["ignore", "ignore", "pipe"], detached: true });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (cause) => {
        const message = `cannot run ${program}: ${cause.message}`;
        reject(new PserverError("NO_BROKER", message, { program }, { cause }));
      });
    });
    hookExit();
    // Cleaning up may fail: the next start removes a file that is left.
    const exited = exitOf(child).finally(() => afterExit().catch(() => undefined));
    const broker = new BrokerProcess(child, exited);
    broker.#follow(onLog);
    return broker;
  }

  /** Notes the process's log and its end. */
  #follow(onLog: (line: string) => void): void {
    createInterface({ input: this.#child.stderr }).on("line", (line) => {
      this.#lines.push(line);
      if (this.#lines.length > LINES_KEPT) this.#lines.shift();
      onLog(line);
    });
    running.add(this);
    this.#child.once("close", () => {
      this.#hasExited = true;
      running.delete(this);
    });
  }

  get hasExited(): boolean {
    return this.#hasExited;
  }

  /** The last lines of the log, oldest first. */
  lastLines(): readonly string[] {
    return [...this.#lines];
  }

  /** Sends SIGTERM, and after 15 s SIGKILL; settles when the process has ended. */
  async stop(): Promise<void> {
    this.signal("SIGTERM");
    const timer = setTimeout(() => this.signal("SIGKILL"), STOP_TIMEOUT_MS);
    await this.exited;
    clearTimeout(timer);
  }

  /** Sends SIGKILL; settles when the process has ended. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.exited;
  }

  /** Sends a signal unless the process has ended. */
  signal(signal: NodeJS.Signals): void {
    if (!this.#hasExited) this.#child.kill(signal);
  }
}

function exitOf(child: ChildProcessByStdio<null, null, Readable>): Promise<BrokerExit> {
  return new Promise((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
}

function hookExit(): void {
  if (exitHooked) return;
  exitHooked = true;
  process.once("exit", () => {
    for (const broker of running) broker.signal("SIGTERM");
  });
}
