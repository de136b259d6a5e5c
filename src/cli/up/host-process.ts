import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { parseJsonObject } from "../../broker/json-object.ts";
import { errorFromWire, PserverError } from "../../protocol/errors.ts";
import type { StartedHost } from "./kept-host.ts";

/** How to run a host in a process of its own. */
export interface HostProcessOptions {
  /** The program and its first arguments, up to the name of the sub-command. */
  readonly command: readonly [program: string, ...args: string[]];
  /** Arguments of `pserver host`; `--json` is added. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Gets what the host has to say, line by line. */
  readonly onMessage: (text: string) => void;
}

const STOP_TIMEOUT_MS = 20_000;

/**
 * A host in a child process: a failure domain of its own. It has a process group of its own too,
 * so that Ctrl-C reaches only us and hosts are stopped before the broker; when we are gone it
 * sees its channel close and stops itself.
 */
export class HostProcess implements StartedHost {
  readonly pid: number;
  /** The host's id, once it serves; rejects with what it could not start for. */
  readonly ready: Promise<string>;
  /** Settles when the process has ended: with the reason unless it was stopped. */
  readonly stopped: Promise<PserverError | undefined>;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  #error: PserverError | undefined;
  #stopping = false;
  #ended = false;

  /** Starts the process; wait for `ready`. */
  constructor(options: HostProcessOptions) {
    const [program, ...first] = options.command;
    this.#child = spawn(program, [...first, "host", ...options.args, "--json"], {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true,
      env: options.environment,
    }) as ChildProcessByStdio<null, Readable, Readable>;
    this.pid = this.#child.pid ?? 0;
    createInterface({ input: this.#child.stderr }).on("line", (line) => {
      const error = parseError(line);
      if (error === undefined) options.onMessage(parseWarning(line) ?? line);
      else this.#error = error;
    });
    this.stopped = new Promise((resolve) => {
      this.#child.once("error", (cause) => {
        this.#ended = true;
        resolve(new PserverError("IO", `cannot run ${program}: ${cause.message}`, {}, { cause }));
      });
      this.#child.once("close", (code, signal) => {
        this.#ended = true;
        resolve(this.#stopping ? undefined : (this.#error ?? died(code, signal)));
      });
    });
    this.ready = this.#untilReady();
    // Who stops a host that starts need not look at `ready` any more.
    this.ready.catch(() => {});
  }

  /** Stops the host in order, or with SIGKILL when that takes over 20 s. */
  async stop(): Promise<void> {
    this.#stopping = true;
    if (this.#ended) return;
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await this.stopped;
    clearTimeout(timer);
  }

  async #untilReady(): Promise<string> {
    const lines = createInterface({ input: this.#child.stdout });
    const id = new Promise<string>((resolve) => {
      lines.on("line", (line) => {
        const value = parseJsonObject(line);
        if (value?.["ready"] === true) resolve(String(value["id"]));
      });
    });
    const ended = this.stopped.then((error): never => {
      throw error ?? new PserverError("ABORTED", "the host was stopped while it started");
    });
    return await Promise.race([id, ended]);
  }
}

function died(code: number | null, signal: NodeJS.Signals | null): PserverError {
  const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
  return new PserverError("CLOSED", `the host process ended ${how}`, { code, signal });
}

function parseError(line: string): PserverError | undefined {
  const error = parseJsonObject(line)?.["error"];
  if (typeof error !== "object" || error === null) return undefined;
  const { code, message } = error as Record<string, unknown>;
  return errorFromWire({ code: String(code), message: String(message) });
}

function parseWarning(line: string): string | undefined {
  const warning = parseJsonObject(line)?.["warning"];
  return typeof warning === "string" ? warning : undefined;
}
