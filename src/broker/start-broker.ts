import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PserverError } from "../protocol/errors.ts";
import { errnoCode, fileError } from "../system/file-errors.ts";
import { type BrokerSettings, limitIsOurs, writeBrokerConfig } from "./broker-config.ts";
import { readBrokerInfo } from "./broker-info.ts";
import { type BrokerExit, BrokerProcess } from "./broker-process.ts";
import { failedStart } from "./failed-start.ts";
import { type FoundBroker, findBroker } from "./find-broker.ts";
import { storeLimitBytes } from "./store-limit.ts";
import { lockStore, type StoreLock } from "./store-lock.ts";
import { StuckStore } from "./stuck-store.ts";

/** Options of {@link startBroker}. */
export interface BrokerOptions extends BrokerSettings {
  /** 0, the default, selects a free port. */
  readonly port?: number;
  /** Address to listen on; `127.0.0.1` by default. */
  readonly host?: string;
  /** The program; by default the one that {@link findBroker} finds. */
  readonly program?: FoundBroker;
  /** Time for recovering the store and opening the port; 60 s by default. */
  readonly startTimeoutMs?: number;
  /** Receives each line of the broker's log. */
  readonly onLog?: (line: string) => void;
  /** Called for each record refused because a full disk has made the store unwritable until a restart. */
  readonly onStoreStuck?: () => void;
  /** Aborts the start; without effect afterwards. */
  readonly signal?: AbortSignal;
}

/** A broker that this process has started and that accepts clients. */
export interface Broker {
  /** Such as `nats://127.0.0.1:4222`. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** As an absolute path. */
  readonly storeDir: string;
  /** Such as `2.12.15`. */
  readonly version: string;
  /** Settles when the process has ended and its store is unlocked; never rejects. */
  readonly exited: Promise<BrokerExit>;
  /** Stops the broker, with SIGKILL if that takes more than 15 s, and waits for its end. */
  stop(): Promise<void>;
  /** Ends the broker with SIGKILL, like a crash, and waits for its end. */
  kill(): Promise<void>;
}

const LOOPBACK = "127.0.0.1";
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 10;
const GREETING_TIMEOUT_MS = 10_000;

/**
 * Starts a broker with JetStream on a store directory that nobody else uses, and settles when it
 * accepts clients. To restart it on the same data, pass the same `storeDir` and `port`.
 *
 * The broker ends with the process that started it, or with its worker thread: on exit it is sent
 * SIGTERM, and if `setpriv` is installed (as on Debian) the kernel does that even after SIGKILL. Without
 * it, a broker that is left keeps the store locked, and the next start names its pid.
 * @throws NO_BROKER if there is no program, or it ended or was not ready in time; the message
 *   ends with the reason from its log.
 * @throws ADDRESS_IN_USE if another process listens on the port.
 * @throws BROKER_TOO_OLD, STORE_IN_USE, BAD_PATH, BAD_VALUE, NO_JETSTREAM, IO, DISK_FULL;
 *   ABORTED by `signal`.
 */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const storeDir = resolve(options.storeDir);
  const program = options.program ?? (await findBroker(process.env, options.signal));
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

/** The receiver of the broker's log. */
function logReader({ onLog, onStoreStuck }: BrokerOptions): (line: string) => void {
  const store = new StuckStore();
  return (line) => {
    onLog?.(line);
    if (store.isToldBy(line)) onStoreStuck?.();
  };
}

/** Files written before each start. */
interface StartFiles {
  /** Directory where the broker writes its port: letting it choose has no races, choosing one has. */
  readonly portsDir: string;
  readonly flags: readonly string[];
}

async function writeFiles(storeDir: string, options: BrokerOptions): Promise<StartFiles> {
  const fileBytesMax = limitIsOurs(options) ? await storeLimitBytes(storeDir) : undefined;
  const config = writeBrokerConfig(options, fileBytesMax);
  const configPath = join(storeDir, "broker.conf");
  const portsDir = join(storeDir, "ports");
  try {
    // It may contain a token: only this user may read it. An older file could have other permissions.
    await rm(configPath, { force: true });
    await writeFile(configPath, config.text, { mode: 0o600 });
    await rm(portsDir, { recursive: true, force: true });
    await mkdir(portsDir);
  } catch (cause) {
    throw fileError("write to the store directory", storeDir, cause);
  }
  // The broker reads -1 as any free port, and 0 as its default port.
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

/** The client port; undefined until the broker has written its ports file completely. */
async function readPort(portsDir: string): Promise<number | undefined> {
  try {
    for (const name of await readdir(portsDir)) {
      const port = /"nats":\["[a-z]+:\/\/[^"]*:(\d+)"/.exec(
        await readFile(join(portsDir, name), "utf8"),
      )?.[1];
      if (port !== undefined) return Number(port);
    }
  } catch (cause) {
    // A failing broker removes the directory; its exit is noticed next.
    if (errnoCode(cause) !== "ENOENT") throw fileError("read", portsDir, cause);
  }
  return undefined;
}

/** The address to connect to: loopback for a broker that listens on all addresses. */
function dialled(host: string): string {
  if (host === "0.0.0.0") return LOOPBACK;
  return host === "::" ? "::1" : host;
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
