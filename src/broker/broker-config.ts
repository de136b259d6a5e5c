import { existsSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { PserverError } from "../protocol/errors.ts";

/**
 * Finds the directory of this package: the nearest one above this file that contains `nats.conf`. The same
 * code runs from `src/`, `dist/` and `build/programs/src/`, which are at different depths.
 * @throws INTERNAL if there is none: the installation is incomplete.
 */
export function packageRoot(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let directory = start; ; ) {
    if (existsSync(join(directory, "nats.conf"))) return directory;
    const parent = dirname(directory);
    if (parent === directory) break;
    directory = parent;
  }
  throw new PserverError("INTERNAL", `no nats.conf in any directory above ${start}`, {
    expected: "nats.conf",
    received: start,
  });
}

/** Configuration of a broker besides its address. */
export interface BrokerConfig {
  /** Directory for JetStream, the lock and the written configuration; created if needed. */
  readonly storeDir: string;
  /** Replaces the package's `nats.conf`. It must enable JetStream and not name a `store_dir`. */
  readonly configFile?: string;
  /**
   * Whether an acknowledged update survives a power loss, at the cost of a disk sync each; false by
   * default. Not with `configFile`, which can set it itself.
   */
  readonly durable?: boolean;
  /** Lines for the `jetstream` block, such as limits. Not with `configFile`. */
  readonly jetstreamConfig?: string;
  /** File with users and TLS, as `pserver auth init` makes it; the broker's URL is then `tls://`. */
  readonly authFile?: string;
  /** Lines at the end of the configuration; they override earlier settings. */
  readonly extraConfig?: string;
}

/**
 * A configuration that is ready to be started: the text of the file, and the flags that the broker needs with
 * it.
 */
export interface WrittenConfig {
  readonly text: string;
  readonly flags: readonly string[];
}

/** Characters that could end a quoted path. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
const UNSAFE = /["\\\u0000-\u001f]/;

/** Matches the names that nats-server has for the limit of file storage. */
const FILE_LIMIT = /\bmax_file/;

/**
 * Returns whether to set the limit of file storage: not beside a user's file, and not if `jetstreamConfig`
 * sets it, because the broker reads the names of the limit in no defined order.
 */
export function setsFileLimit({ configFile, jetstreamConfig }: BrokerConfig): boolean {
  return configFile === undefined && !FILE_LIMIT.test(jetstreamConfig ?? "");
}

/** Share of the free disk space that a broker may fill; nats-server uses the same. */
const FREE_SHARE = 0.75;

/**
 * Returns the bytes that a broker may keep in files: three quarters of the free disk space, and never less
 * than in `lastConfig`, the text of its last configuration or "". By default nats-server takes three quarters
 * of the space that is free at its start. On a disk that has filled up since its last start, it would then
 * refuse streams and records that it has space for in its own files.
 */
export function fileLimitBytes(freeBytes: number, lastConfig: string): number {
  const [, last = "0"] = /^ {2}max_file: (\d+)$/m.exec(lastConfig) ?? [];
  return Math.max(Number(last), Math.floor(freeBytes * FREE_SHARE));
}

/**
 * Makes the configuration to be written into the store directory: it includes a file and overrides parts of
 * it.
 *
 * The `jetstream` block of the package's own file is replaced, because every version of the broker refuses
 * the `-sd` flag together with a `store_dir`. Nothing in a user's file is replaced: its block may hold
 * settings that must not be lost silently, such as `sync_interval`. With such a file the flag is used, and
 * the broker refuses a file that also names a `store_dir`.
 * @param fileBytesMax most bytes that the broker may keep in files; absent, the broker decides.
 * @throws BAD_PATH if a path holds a quote, a backslash or a control character.
 * @throws BAD_VALUE if `configFile` is given with `durable` or `jetstreamConfig`.
 */
export function writeBrokerConfig(settings: BrokerConfig, fileBytesMax?: number): WrittenConfig {
  const storeDir = resolve(settings.storeDir);
  const included = settings.configFile ?? join(packageRoot(), "nats.conf");
  const lines = [
    "# Written at each start of the broker; changes are lost.",
    include(storeDir, included),
  ];
  const flags: string[] = [];
  if (settings.configFile === undefined) {
    lines.push("jetstream {", `  store_dir: ${quotedPath(storeDir)}`);
    if (settings.durable === true) lines.push("  sync_interval: always");
    if (fileBytesMax !== undefined) lines.push(`  max_file: ${fileBytesMax}`);
    if (settings.jetstreamConfig !== undefined) lines.push(settings.jetstreamConfig);
    lines.push("}");
  } else {
    if (settings.durable !== undefined || settings.jetstreamConfig !== undefined) {
      throw new PserverError(
        "BAD_VALUE",
        `expected the settings of JetStream in ${settings.configFile}; received them beside it`,
        { configFile: settings.configFile },
      );
    }
    flags.push("-sd", storeDir);
  }
  if (settings.authFile !== undefined) lines.push(include(storeDir, settings.authFile));
  if (settings.extraConfig !== undefined) lines.push(settings.extraConfig);
  return { text: `${lines.join("\n")}\n`, flags };
}

/** Includes a file, by its path from the including one: nats-server takes even one with a slash before it for that. */
function include(storeDir: string, file: string): string {
  return `include ${quotedPath(`./${relative(storeDir, resolve(file))}`)}`;
}

/** Writes a path into a configuration. @throws BAD_PATH if it holds a quote, a backslash or a control character. */
export function quotedPath(path: string): string {
  if (!UNSAFE.test(path)) return `"${path}"`;
  throw new PserverError(
    "BAD_PATH",
    `expected a path without quotes, backslashes and control characters; received ${JSON.stringify(path)}`,
    { received: path },
  );
}

/** Parses a JSON object that another program has written; undefined if the text is not one. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    // Not JSON: the caller decides what that means.
    return undefined;
  }
}

/** A broker's greeting to a client. */
export interface BrokerGreeting {
  readonly version: string;
  readonly jetstream: boolean;
  readonly maxPayloadBytes: number;
}

/** Most bytes of a greeting: a broker's has a few hundred. */
const GREETING_BYTES_MAX = 64 * 1024;

/**
 * Connects, reads the broker's greeting and disconnects. A broker that greets accepts clients.
 * @throws NO_BROKER if nothing answers within `timeoutMs`, or not a broker; ABORTED by `signal`.
 */
export async function readBrokerGreeting(
  host: string,
  port: number,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<BrokerGreeting> {
  const greeting = await readLine(host, port, timeoutMs, signal);
  const [, entries] = /^INFO[ \t]+(.*)$/i.exec(greeting) ?? [];
  const fields = entries === undefined ? undefined : parseJsonObject(entries);
  if (fields === undefined || typeof fields["version"] !== "string") {
    throw new PserverError(
      "NO_BROKER",
      `${host}:${port} is not a NATS broker: expected INFO, received ${JSON.stringify(greeting.slice(0, 40))}`,
      { host, port, received: greeting.slice(0, 40) },
    );
  }
  return {
    version: fields["version"],
    jetstream: fields["jetstream"] === true,
    maxPayloadBytes: Number(fields["max_payload"]),
  };
}

function readLine(
  host: string,
  port: number,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    let text = "";
    const fail = (reason: string, cause?: unknown): void => {
      socket.destroy();
      const message = `the broker at ${host}:${port} cannot be reached: ${reason}`;
      reject(new PserverError("NO_BROKER", message, { host, port }, { cause }));
    };
    const abort = (): void => {
      socket.destroy();
      reject(new PserverError("ABORTED", `asking the broker at ${host}:${port} was aborted`));
    };
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort, { once: true });
    socket.setTimeout(timeoutMs, () => fail(`no greeting within ${timeoutMs} ms`));
    socket.setEncoding("utf8");
    socket.on("error", (error) => fail(error.message, error));
    socket.on("close", () => {
      signal?.removeEventListener("abort", abort);
      fail("it closed the connection without a greeting");
    });
    socket.on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\r\n");
      if (end >= 0) {
        resolve(text.slice(0, end));
        socket.destroy();
      } else if (text.length > GREETING_BYTES_MAX) {
        fail(`no end of line within ${GREETING_BYTES_MAX} bytes`);
      }
    });
  });
}
