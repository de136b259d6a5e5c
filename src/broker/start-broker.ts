import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import {
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  statfs,
  writeFile,
} from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { PserverError } from "../protocol/errors.ts";
import { errnoCode, fileError, io } from "../system/file-errors.ts";
import { readProcessStat } from "../system/process-identity.ts";
import {
  type BrokerConfig,
  fileLimitBytes,
  readBrokerGreeting,
  setsFileLimit,
  writeBrokerConfig,
} from "./broker-config.ts";
import { BrokerLog } from "./broker-log.ts";
import { limitMemory } from "./broker-memory.ts";
import { type FoundBroker, findBroker } from "./find-broker.ts";
import { lockStore, type StoreLock } from "./store-lock.ts";

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

/** What a {@link BrokerProcess} calls. */
interface ProcessEvents {
  /** Cleans up when the process has ended. */
  readonly afterExit: () => Promise<void>;
  readonly onLog: (line: string) => void;
}

/** A nats-server process that was started, and the last lines of its log. */
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
    environment: NodeJS.ProcessEnv,
    { afterExit, onLog }: ProcessEvents,
  ): Promise<BrokerProcess> {
    const command =
      SETPRIV === undefined
        ? [program, ...args]
        : [SETPRIV, "--pdeathsig", "TERM", program, ...args];
    const [file = program, ...rest] = command;
    const stdio: ["ignore", "ignore", "pipe"] = ["ignore", "ignore", "pipe"];
    const child = spawn(file, rest, { stdio, detached: true, env: environment });
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

  /** Keeps the last lines of the process's log, and notes its end. */
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

  /** Returns the last lines of the log, oldest first. */
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

/** A process that listens on a port of this machine. */
export interface Listener {
  readonly pid: number;
  /** Name of its program as in `/proc`: at most 15 bytes. */
  readonly name: string;
}

/** State of a listening socket, and indices of fields in a line of `/proc/net/tcp`. */
const LISTENING = "0A";
const [ADDRESS_FIELD, STATE_FIELD, INODE_FIELD] = [1, 3, 9];

/**
 * Finds the process that listens on a TCP port; undefined if the system does not say: without `/proc`, or if
 * the process belongs to another user.
 */
export async function findListener(port: number): Promise<Listener | undefined> {
  const inodes = new Set<string>();
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    for (const inode of listeningInodes(await readIfVisible(readFile(table, "utf8"), ""), port)) {
      inodes.add(inode);
    }
  }
  if (inodes.size === 0) return undefined;
  for (const pid of await readIfVisible(readdir("/proc"), [])) {
    if (/^\d+$/.test(pid) && (await holdsOneOf(inodes, pid))) {
      return { pid: Number(pid), name: readProcessStat(Number(pid))?.name ?? "" };
    }
  }
  return undefined;
}

/** Returns the inodes of the sockets that listen on a port, from the text of `/proc/net/tcp`. */
function listeningInodes(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return table
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter((row) => row[STATE_FIELD] === LISTENING && row[ADDRESS_FIELD]?.endsWith(suffix))
    .flatMap((row) => row[INODE_FIELD] ?? []);
}

async function holdsOneOf(inodes: ReadonlySet<string>, pid: string): Promise<boolean> {
  for (const descriptor of await readIfVisible(readdir(`/proc/${pid}/fd`), [])) {
    const target = await readIfVisible(readlink(`/proc/${pid}/fd/${descriptor}`), "");
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1];
    if (inode !== undefined && inodes.has(inode)) return true;
  }
  return false;
}

/**
 * Returns the result of reading `/proc`, or `nothing` if that fails: the process may have ended, or belong to
 * another user.
 */
async function readIfVisible<T>(reading: Promise<T>, nothing: T): Promise<T> {
  try {
    return await reading;
  } catch {
    return nothing;
  }
}

/** Prefix of each line of nats-server's log: process, time, level. */
const PREFIX = /^\[\d+\] \S+ \S+ \[([A-Z]{3})\] /;

/** Matches nats-server's message that the address to listen on is in use. */
const ADDRESS_IN_USE = /listen tcp\S* (\S+):(\d+): bind: address already in use/;

/**
 * Makes the error for a broker that did not start, from the end of its log.
 * @param what what happened, such as "ended before it was ready".
 * @returns ADDRESS_IN_USE with the address and, if known, the process that listens there; else
 *   NO_BROKER with the broker's own message.
 */
export async function failedStart(what: string, log: readonly string[]): Promise<PserverError> {
  const match = ADDRESS_IN_USE.exec(log.join("\n"));
  if (match === null) {
    const words = reasons(log).join(" | ");
    return new PserverError("NO_BROKER", `the broker ${what}${words && `: ${words}`}`, { log });
  }
  const [host = "", port] = [match[1], Number(match[2])];
  const listener = await findListener(port);
  const by =
    listener === undefined ? "another process" : `process ${listener.pid} (${listener.name})`;
  const message = `expected ${host}:${port} to be free for the broker; ${by} listens there`;
  return new PserverError("ADDRESS_IN_USE", message, { host, port, pid: listener?.pid });
}

/** Returns the lines that report failures, without process and time; all lines if none does. */
function reasons(log: readonly string[]): readonly string[] {
  const bad = log.filter((line) => ["ERR", "FTL"].includes(PREFIX.exec(line)?.[1] ?? ""));
  // Errors of the configuration are written without a prefix.
  const plain = log.filter((line) => !PREFIX.test(line));
  const telling = [...plain, ...bad];
  return (telling.length === 0 ? log : telling).map((line) => line.replace(PREFIX, ""));
}

/**
 * Detects in a broker's log a store that cannot be written until the broker is restarted. If a full disk
 * cut off the first record of a file, nats-server 2.12 appends nothing to it, even with free space, and
 * logs "no message cache" for every record. At its next start it drops the incomplete record.
 */
export class StuckStore {
  #ranOut = false;

  /** Notes a line of the log; returns whether it reports a record refused for this reason. */
  isReportedBy(line: string): boolean {
    if (!line.includes("failed to store a msg")) return false;
    if (line.includes("no space left")) this.#ranOut = true;
    return this.#ranOut && line.includes("no message cache");
  }
}

/** Options of {@link startBroker}. */
export interface BrokerOptions extends BrokerConfig {
  /** 0, the default, selects a free port. */
  readonly port?: number;
  /** Address to listen on; `127.0.0.1` by default. */
  readonly host?: string;
  /** The program; by default the one that {@link findBroker} finds. */
  readonly program?: FoundBroker;
  /** Time for recovering the store and opening the port; 60 s by default. */
  readonly startTimeoutMs?: number;
  /**
   * The most memory that the broker shall use; by default what `GOMEMLIMIT` in this process's environment says, or a
   * quarter of what the machine or the control group has.
   */
  readonly memoryBytes?: number;
  /** How many brokers that quarter is for: those of a cluster on this machine; 1 by default. */
  readonly brokersHere?: number;
  /** Receives each line of the broker's log. */
  readonly onLog?: (line: string) => void;
  /** Called for each record refused because a full disk has made the store unwritable until a restart. */
  readonly onStoreStuck?: () => void;
  /** Aborts the start; without effect afterwards. */
  readonly signal?: AbortSignal;
}

/** A broker that this process has started and that accepts clients. */
export interface Broker {
  /** Such as `nats://127.0.0.1:4222`, or `tls://…` if only that is taken. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** The store directory as an absolute path. */
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
 * accepts clients. Its log is in `broker.log` of that directory. To restart it on the same data, pass the same `storeDir` and `port`.
 *
 * The broker ends with the process or worker thread that started it: on exit it is sent SIGTERM, and if
 * `setpriv` is installed (as on Debian) the kernel sends it even after SIGKILL. Without `setpriv` a broker
 * may be left running; it keeps the store locked, and the next start names its pid.
 * @throws NO_BROKER if there is no program, or it ended or was not ready in time; the message
 *   ends with the reason from its log.
 * @throws ADDRESS_IN_USE if another process listens on the port.
 * @throws BROKER_TOO_OLD, STORE_IN_USE, BAD_PATH, BAD_VALUE, NO_JETSTREAM, IO, DISK_FULL;
 *   ABORTED by `signal`.
 */
export async function startBroker(options: BrokerOptions): Promise<Broker> {
  const storeDir = resolve(options.storeDir);
  const { env: own } = process;
  const { memoryBytes: limitBytes, brokersHere: brokers } = options;
  const environment = limitMemory({ environment: own, limitBytes, brokers });
  const program = options.program ?? (await findBroker(process.env, options.signal));
  throwIfAborted(options);
  const lock = await lockStore(storeDir);
  let running: BrokerProcess | undefined;
  try {
    const files = await writeFiles(storeDir, options);
    throwIfAborted(options);
    running = await BrokerProcess.spawn(program.path, files.flags, environment, {
      afterExit: () => afterExit(lock, files),
      onLog: logReader(storeDir, options),
    });
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

/** Makes the receiver of the broker's log, which is kept in a file. */
function logReader(
  storeDir: string,
  { onLog, onStoreStuck }: BrokerOptions,
): (line: string) => void {
  const store = new StuckStore();
  const file = new BrokerLog(storeDir);
  return (line) => {
    file.add(line);
    onLog?.(line);
    if (store.isReportedBy(line)) onStoreStuck?.();
  };
}

/** Files written before each start. */
interface StartFiles {
  /**
   * Directory where the broker writes the port that it has chosen. A port chosen here could be taken before
   * the broker listens.
   */
  readonly portsDir: string;
  readonly flags: readonly string[];
}

async function writeFiles(storeDir: string, options: BrokerOptions): Promise<StartFiles> {
  const configPath = join(storeDir, "broker.conf");
  const newPath = `${configPath}.new`;
  const portsDir = join(storeDir, "ports");
  const fileBytesMax = setsFileLimit(options) ? await findLimit(storeDir, configPath) : undefined;
  const config = writeBrokerConfig(options, fileBytesMax);
  try {
    // The file may contain a token, so only this user may read it. It is replaced, not written over: an older
    // file could have other permissions, and holds the last limit until the new one is complete.
    await rm(newPath, { force: true });
    await writeFile(newPath, config.text, { mode: 0o600 });
    await rename(newPath, configPath);
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

async function findLimit(storeDir: string, configPath: string): Promise<number> {
  const disk = await io("look at the disk of", storeDir, statfs(storeDir));
  const lastConfig = await readFile(configPath, "utf8").catch((cause: unknown) => {
    if (errnoCode(cause) === "ENOENT") return "";
    throw fileError("read", configPath, cause);
  });
  return fileLimitBytes(disk.bavail * disk.bsize, lastConfig);
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
  const info = await readBrokerGreeting(dialled(host), port, GREETING_TIMEOUT_MS, options.signal);
  if (!info.jetstream) {
    const message = `expected a configuration that enables JetStream; received ${options.configFile}`;
    throw new PserverError("NO_JETSTREAM", message, { configFile: options.configFile });
  }
  return {
    url: `${options.authFile === undefined ? "nats" : "tls"}://${bracketed(dialled(host))}:${port}`,
    port,
    pid: running.pid,
    storeDir,
    version: info.version,
    exited: running.exited,
    stop: () => running.stop(),
    kill: () => running.kill(),
  };
}

/** Reads the client port; undefined until the broker has written its ports file completely. */
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

/** Returns the address to connect to: loopback for a broker that listens on all addresses. */
function dialled(host: string): string {
  if (host === "0.0.0.0") return LOOPBACK;
  return host === "::" ? "::1" : host;
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
