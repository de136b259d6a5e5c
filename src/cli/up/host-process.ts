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
  /** Gets the host's messages, line by line. */
  readonly onMessage: (text: string) => void;
}

/** A host in a child process. */
export interface HostProcess extends StartedHost {
  readonly pid: number;
}

/** How long a host that is to stop may say nothing: one that saves shards says so every few seconds. */
const STOP_TIMEOUT_MS = 20_000;

/**
 * Starts a host in a child process; wait for its `ready`. It has a process group of its own, so that
 * Ctrl-C reaches only this process, which stops its hosts before the broker. If this process dies, the
 * host sees its channel close and stops itself. Its `stop` kills a host that says nothing for 20 s.
 */
export function startHostProcess(options: HostProcessOptions): HostProcess {
  const [program, ...first] = options.command;
  const child = spawn(program, [...first, "host", ...options.args, "--json"], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    detached: true,
    env: options.environment,
  }) as ChildProcessByStdio<null, Readable, Readable>;
  let told: PserverError | undefined;
  let isStopping = false;
  let hasEnded = false;
  let stopTimer: NodeJS.Timeout | undefined;
  createInterface({ input: child.stderr }).on("line", (line) => {
    stopTimer?.refresh();
    const error = parseError(line);
    if (error === undefined) options.onMessage(parseWarning(line) ?? line);
    else told = error;
  });
  const stopped = new Promise<PserverError | undefined>((resolve) => {
    child.once("error", (cause) => {
      hasEnded = true;
      resolve(new PserverError("IO", `cannot run ${program}: ${cause.message}`, {}, { cause }));
    });
    child.once("close", (code, signal) => {
      hasEnded = true;
      resolve(isStopping ? undefined : (told ?? died(code, signal)));
    });
  });
  const ready = untilReady(child, stopped);
  // A caller that stops a host while it starts may not wait for `ready`.
  ready.catch(() => {});
  const stop = async (): Promise<void> => {
    isStopping = true;
    if (hasEnded) return;
    child.kill("SIGTERM");
    stopTimer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await stopped;
    clearTimeout(stopTimer);
  };
  return { pid: child.pid ?? 0, ready, stopped, stop };
}

/** The id that the host prints when it serves. */
async function untilReady(
  child: ChildProcessByStdio<null, Readable, Readable>,
  stopped: Promise<PserverError | undefined>,
): Promise<string> {
  const lines = createInterface({ input: child.stdout });
  const id = new Promise<string>((resolve) => {
    lines.on("line", (line) => {
      const value = parseJsonObject(line);
      if (value?.["ready"] === true) resolve(String(value["id"]));
    });
  });
  const ended = stopped.then((error): never => {
    throw error ?? new PserverError("ABORTED", "the host was stopped while it started");
  });
  return await Promise.race([id, ended]);
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
