import { type ChildProcessByStdio, spawn } from "node:child_process";
import { statfs } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { ReportingHost } from "../../actors/host/host.ts";
import { parseJsonObject } from "../../broker/broker-config.ts";
import type { Broker, BrokerExit } from "../../broker/index.ts";
import { DistantHost } from "../../http/distant-host.ts";
import { ensureError, errorFromWire, PserverError } from "../../protocol/errors.ts";
import { io } from "../../system/file-errors.ts";
import type { StarterMessage } from "../context.ts";
import { type Pause, RESTARTS_MAX, type Run, supervise } from "../supervise.ts";

/** Free bytes needed for a restart: several of the largest records, and what a broker writes itself. */
const RESTART_FREE_BYTES = 32 * 1024 * 1024;

/** Dependencies of {@link BrokerKeeper}. */
export interface BrokerKeeperOptions {
  /** For messages. */
  readonly name: string;
  /** Starts the broker: the first time with no port, then on the port that it had. */
  readonly start: (port: number | undefined, onStoreStuck: () => void) => Promise<Broker>;
  readonly onMessage: (text: string) => void;
  readonly pause?: Pause;
}

/**
 * Keeps a broker running. It is started again, on the same port and store, if it ends by itself, and if a
 * full disk has left it unable to write and space is free again.
 */
export class BrokerKeeper {
  /** Settles with the reason once the broker has ended and cannot be started again. */
  readonly failed: Promise<PserverError>;
  readonly #options: BrokerKeeperOptions;
  readonly #stopping = new AbortController();
  #broker: Broker;
  #starting: Promise<unknown> = Promise.resolve();
  #isRenewing = false;

  private constructor(broker: Broker, options: BrokerKeeperOptions) {
    this.#broker = broker;
    this.#options = options;
    this.failed = new Promise((resolve) => {
      void this.#keep().then((reason) => {
        if (reason !== undefined) resolve(reason);
      });
    });
  }

  /** @throws as `options.start` does: the first start is not repeated. */
  static async start(options: BrokerKeeperOptions): Promise<BrokerKeeper> {
    let keeper: BrokerKeeper | undefined;
    const broker = await options.start(undefined, () => {
      if (keeper !== undefined) void keeper.#renew();
    });
    keeper = new BrokerKeeper(broker, options);
    return keeper;
  }

  /** The broker that runs, or that ran last. */
  get broker(): Broker {
    return this.#broker;
  }

  /** Stops the broker in order; it is not started again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#starting.catch(() => {});
    await this.#broker.stop();
  }

  /** Returns why the broker cannot be started again; undefined if it was stopped. */
  async #keep(): Promise<PserverError | undefined> {
    const { name, start, onMessage, pause } = this.#options;
    const ended = await supervise<BrokerExit>(
      { ended: this.#broker.exited },
      {
        start: async () => {
          const starting = start(this.#broker.port, () => void this.#renew());
          this.#starting = starting;
          this.#broker = await starting;
          onMessage(`${name} is back at ${this.#broker.url}`);
          return { ended: this.#broker.exited };
        },
        describe: ({ code, signal }) =>
          `${name} ended ${signal === null ? `with exit code ${code}` : `by ${signal}`}`,
        restartsMax: RESTARTS_MAX,
        signal: this.#stopping.signal,
        onMessage,
        pause,
      },
    );
    if (ended === undefined) return undefined;
    const { reason, cause } = ended;
    const message = `${reason}; it was started again ${RESTARTS_MAX} times`;
    return new PserverError(cause?.code ?? "NO_BROKER", message, {}, { cause });
  }

  /** Stops a broker that cannot write its store any more, so that it is started again. */
  async #renew(): Promise<void> {
    if (this.#isRenewing || this.#stopping.signal.aborted) return;
    this.#isRenewing = true;
    const { storeDir } = this.#broker;
    try {
      const { bavail, bsize } = await io("look at the disk of", storeDir, statfs(storeDir));
      // Without free space it would soon fail again; it reports that with the next record.
      if (bavail * bsize < RESTART_FREE_BYTES) return;
      const told = `${this.#options.name} cannot write since its disk was full; space is free again: restarting it`;
      this.#options.onMessage(told);
      await this.#broker.stop();
    } catch (error) {
      this.#options.onMessage(ensureError(error).message);
    } finally {
      this.#isRenewing = false;
    }
  }
}

/** A host that has been started, here or in a process of its own. */
export interface StartedHost extends RunningHost {
  /** Settles with its id once it serves; rejects with the error that kept it from starting. */
  readonly ready: Promise<string>;
}

/** Dependencies of {@link KeptHost}. */
export interface KeptHostOptions {
  /** For messages. */
  readonly name: string;
  readonly start: () => StartedHost;
  readonly onMessage: (text: string) => void;
  /** Called with the id of a host that has served and ended by itself. */
  readonly onDied?: (id: string) => void;
  readonly pause?: Pause;
}

/** Keeps a host running: if it ends by itself it is started again, up to five times in a row. */
export class KeptHost implements RunningHost {
  /** Settles with the id of the host once it serves. A first start that fails is not repeated. */
  readonly ready: Promise<string>;
  /** Settles when the host has ended for good, with the reason unless it was stopped. */
  readonly stopped: Promise<PserverError | undefined>;
  readonly #options: KeptHostOptions;
  readonly #stopping = new AbortController();
  #running: StartedHost | undefined;

  private constructor(options: KeptHostOptions) {
    this.#options = options;
    const host = options.start();
    this.ready = host.ready;
    this.stopped = this.#keep(this.#follow(host));
  }

  /** Starts a host and keeps it running. */
  static start(options: KeptHostOptions): KeptHost {
    return new KeptHost(options);
  }

  /** Stops the host in order; it is not started again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running?.stop();
  }

  #follow(host: StartedHost): Run<PserverError | undefined> {
    this.#running = host;
    const ended = host.stopped.finally(() => {
      this.#running = undefined;
      if (this.#stopping.signal.aborted) return;
      // One that never served has no id, and holds nothing.
      host.ready.then(this.#options.onDied, () => undefined);
    });
    return { ended };
  }

  async #keep(first: Run<PserverError | undefined>): Promise<PserverError | undefined> {
    const { name, start, onMessage, pause } = this.#options;
    try {
      await this.ready;
    } catch {
      // The caller gets the reason from `ready`, too.
      return await first.ended;
    }
    const ended = await supervise(first, {
      start: async () => {
        const host = start();
        const run = this.#follow(host);
        onMessage(`${name} is back as ${await host.ready}`);
        return run;
      },
      describe: (reason) => `${name} has ended${inWords(reason)}`,
      describeFailedStart: (error) => `${name} did not start${inWords(error)}`,
      restartsMax: RESTARTS_MAX,
      signal: this.#stopping.signal,
      onMessage,
      pause,
    });
    return ended?.end;
  }
}

function inWords(reason: PserverError | undefined): string {
  return reason === undefined ? "" : `: ${reason.code}: ${reason.message}`;
}

/** How to run a host in a process of its own. */
export interface HostProcessOptions {
  /** The program and its first arguments, up to the name of the sub-command. */
  readonly command: readonly [program: string, ...args: string[]];
  /** Arguments of `pserver host`; `--json` is added. */
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Gets the host's messages, line by line. */
  readonly onMessage: (text: string) => void;
  /** Called once the host reports how it is. */
  readonly onReporting: (host: ReportingHost) => void;
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
  let reportedError: PserverError | undefined;
  let isStopping = false;
  let hasEnded = false;
  let stopTimer: NodeJS.Timeout | undefined;
  createInterface({ input: child.stderr }).on("line", (line) => {
    stopTimer?.refresh();
    const error = parseError(line);
    if (error === undefined) options.onMessage(parseWarning(line) ?? line);
    else reportedError = error;
  });
  let distant: DistantHost | undefined;
  child.on("message", (message: StarterMessage) => {
    if (!("report" in message)) return;
    const { report } = message;
    if (distant !== undefined) return distant.heard(report);
    distant = new DistantHost(report);
    options.onReporting(distant);
  });
  const stopped = new Promise<PserverError | undefined>((resolve) => {
    child.once("error", (cause) => {
      hasEnded = true;
      resolve(new PserverError("IO", `cannot run ${program}: ${cause.message}`, {}, { cause }));
    });
    child.once("close", (code, signal) => {
      hasEnded = true;
      resolve(isStopping ? undefined : (reportedError ?? died(code, signal)));
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

/** Waits until the host serves; returns the id that it prints then. */
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

/** A host that runs in this process or in its own. */
export interface RunningHost {
  /** Settles when it has ended, with the reason unless it was stopped. */
  readonly stopped: Promise<PserverError | undefined>;
  stop(): Promise<void>;
}

/** The hosts that this command has started. */
export class RunningHosts {
  /** Settles when no host is left, with the reason of the last one. */
  readonly allGone: Promise<PserverError>;
  readonly #hosts = new Set<RunningHost>();
  readonly #onGone: (name: string, reason: PserverError | undefined) => void;
  #noneLeft: (reason: PserverError) => void = () => {};

  /** Watches no host yet. `onGone` is called for each host that ends by itself while others still run. */
  constructor(onGone: (name: string, reason: PserverError | undefined) => void) {
    this.#onGone = onGone;
    this.allGone = new Promise((resolve) => {
      this.#noneLeft = resolve;
    });
  }

  /** Watches a host. `name` is for messages. */
  add(name: string, host: RunningHost): void {
    this.#hosts.add(host);
    void host.stopped.then((reason) => {
      if (!this.#hosts.delete(host)) return;
      if (this.#hosts.size > 0) this.#onGone(name, reason);
      else this.#noneLeft(reason ?? new PserverError("NO_HOST", `${name} has ended`));
    });
  }

  /** Stops every host and waits for all; returns the errors. */
  async stop(): Promise<PserverError[]> {
    const hosts = [...this.#hosts];
    this.#hosts.clear();
    const results = await Promise.allSettled(hosts.map((host) => host.stop()));
    return results.flatMap((result) =>
      result.status === "rejected" ? [ensureError(result.reason)] : [],
    );
  }
}
