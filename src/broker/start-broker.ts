import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PserverError } from "../protocol/errors.ts";
import { errnoCode, fileError } from "../system/file-errors.ts";
import { type BrokerSettings, limitIsOurs, writeBrokerConfig } from "./broker-config.ts";
import { readBrokerInfo } from "./broker-info.ts";
import { type BrokerExit, BrokerProcess } from "./broker-process.ts";
import { checkDurable } from "./broker-version.ts";
import { failedStart } from "./failed-start.ts";
import { type FoundBroker, findBroker } from "./find-broker.ts";
import { storeLimitBytes } from "./store-limit.ts";
import { lockStore, type StoreLock } from "./store-lock.ts";
import { StuckStore } from "./stuck-store.ts";

/** How to start a broker. */
export interface BrokerOptions extends BrokerSettings {
  /** 0, the default, takes a free port. */
  readonly port?: number;
  /** Address to listen on; `127.0.0.1` by default. */
  readonly host?: string;
  /** The program; the one that {@link findBroker} finds by default. */
  readonly program?: FoundBroker;
  /** How long reading the store back and opening the port may take; 60 s by default. */
  readonly startTimeoutMs?: number;
  /** Gets each line of the broker's log, as it comes. */
  readonly onLog?: (line: string) => void;
  /** A full disk has left the store so that it cannot be written until a new start; told for each record. */
  readonly onStoreStuck?: () => void;
  /** Ends a start that is under way; later it does nothing. */
  readonly signal?: AbortSignal;
}

/** A broker that this process started and that accepts clients. */
export interface Broker {
  /** Such as `nats://127.0.0.1:4222`. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly storeDir: string;
  /** Such as `2.12.15`. */
  readonly version: string;
  /** Settles when the process has ended and its store is free again; never rejects. */
  readonly exited: Promise<BrokerExit>;
  /** Ends the broker in order, or with SIGKILL when that takes over 15 s, and waits for it. */
  stop(): Promise<void>;
  /** Ends the broker with SIGKILL, as a crash would, and waits for it. */
  kill(): Promise<void>;
}

const LOOPBACK = "127.0.0.1";
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 10;
const GREETING_TIMEOUT_MS = 10_000;

/**
 * Starts a broker with JetStream on a store directory that nobody else uses, and settles when it
 * accepts clients. To start it again on the same data give the same `storeDir` and `port`.
 *
 * The broker ends with the process that started it: on exit it is sent SIGTERM, and where
 * `setpriv` is installed (every Debian) the kernel does that even after SIGKILL. Where it is not,
 * a broker left behind keeps the store locked, and the next start names its pid. (Started from a
 * worker thread it ends with that thread.)
 * @throws NO_BROKER if there is no program, or it ended or was not ready in time; the message
 *   ends with what its log says of that.
 * @throws ADDRESS_IN_USE if another process listens on the port.
 * @throws BROKER_TOO_OLD, STORE_IN_USE, BAD_PATH, BAD_VALUE, NO_JETSTREAM, IO, DISK_FULL;
 *   ABORTED by `signal`.
 */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const storeDir = resolve(options.storeDir);
  const program = options.program ?? (await findBroker(process.env, options.signal));
  if (options.durable === true) checkDurable(program.version);
  throwIfAborted(options);
  const lock = await lockStore(storeDir);
  let running: BrokerProcess | undefined;
  try {
    const files = await writeFiles(storeDir, options);
    throwIfAborted(options);
    running = await BrokerProcess.spawn(
      program.path,
      files.flags,
      () => afterExit(lock, files),
      logReader(options),
    );
    await lock.addHolder(running.pid);
    return await untilReady(running, files, storeDir, options);
  } catch (error) {
    if (running === undefined) await lock.release();
    else await running.kill();
    throw error;
  }
}

function throwIfAborted({ signal, storeDir }: BrokerOptions): void {
  if (signal?.aborted !== true) return;
  throw new PserverError("ABORTED", "the start of the broker was aborted", { storeDir });
}

/** Gets the lines of the broker's log. */
function logReader({ onLog, onStoreStuck }: BrokerOptions): (line: string) => void {
  const store = new StuckStore();
  return (line) => {
    onLog?.(line);
    if (store.isToldBy(line)) onStoreStuck?.();
  };
}

/** What is written before each start. */
interface StartFiles {
  /** The broker names its port in a file here: asking it is free of races, choosing is not. */
  readonly portsDir: string;
  readonly flags: readonly string[];
}

async function writeFiles(storeDir: string, options: BrokerOptions): Promise<StartFiles> {
  const fileBytesMax = limitIsOurs(options) ? await storeLimitBytes(storeDir) : undefined;
  const config = writeBrokerConfig(options, fileBytesMax);
  const configPath = join(storeDir, "broker.conf");
  const portsDir = join(storeDir, "ports");
  try {
    // It may hold a token: nobody else may read it, nor one of before that everybody could.
    await rm(configPath, { force: true });
    await writeFile(configPath, config.text, { mode: 0o600 });
    await rm(portsDir, { recursive: true, force: true });
    await mkdir(portsDir);
  } catch (cause) {
    throw fileError("write to the store directory", storeDir, cause);
  }
  // The broker takes any free port for -1, and its default port for 0.
  const port = options.port === undefined || options.port === 0 ? -1 : options.port;
  const address = ["-a", options.host ?? LOOPBACK, "-p", String(port)];
  const flags = ["-c", configPath, ...address, ...config.flags, "--ports_file_dir", portsDir];
  return { portsDir, flags };
}

async function afterExit(lock: StoreLock, files: StartFiles): Promise<void> {
  await rm(files.portsDir, { recursive: true, force: true });
  await lock.release();
}

async function untilReady(
  running: BrokerProcess,
  files: StartFiles,
  storeDir: string,
  options: BrokerOptions,
): Promise<Broker> {
  const timeoutMs = options.startTimeoutMs ?? START_TIMEOUT_MS;
  const deadline = performance.now() + timeoutMs;
  const failed = (what: string): Promise<PserverError> => failedStart(what, running.lastLines());
  let port = await readPort(files.portsDir);
  while (port === undefined) {
    throwIfAborted(options);
    if (running.hasExited) throw await failed("ended before it was ready");
    if (performance.now() > deadline) throw await failed(`was not ready in ${timeoutMs} ms`);
    await delay(POLL_MS);
    port = await readPort(files.portsDir);
  }
  const host = options.host ?? LOOPBACK;
  const info = await readBrokerInfo(dialled(host), port, GREETING_TIMEOUT_MS, options.signal);
  if (!info.jetstream) {
    const message = `expected a configuration that enables JetStream; received ${options.configFile}`;
    throw new PserverError("NO_JETSTREAM", message, { configFile: options.configFile });
  }
  return {
    url: `nats://${bracketed(dialled(host))}:${port}`,
    port,
    pid: running.pid,
    storeDir,
    version: info.version,
    exited: running.exited,
    stop: () => running.stop(),
    kill: () => running.kill(),
  };
}

/** The client port, once the broker has written its ports file whole. */
async function readPort(portsDir: string): Promise<number | undefined> {
  try {
    for (const name of await readdir(portsDir)) {
      const port = /"nats":\["[a-z]+:\/\/[^"]*:(\d+)"/.exec(
        await readFile(join(portsDir, name), "utf8"),
      )?.[1];
      if (port !== undefined) return Number(port);
    }
  } catch (cause) {
    // A broker that fails removes the directory while it is read; its exit is seen next.
    if (errnoCode(cause) !== "ENOENT") throw fileError("read", portsDir, cause);
  }
  return undefined;
}

/** The address to connect to: a broker that listens everywhere is reached by loopback. */
function dialled(host: string): string {
  if (host === "0.0.0.0") return LOOPBACK;
  return host === "::" ? "::1" : host;
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
