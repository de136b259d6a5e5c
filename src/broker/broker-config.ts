import { join, relative, resolve } from "node:path";
import { PserverError } from "../protocol/errors.ts";
import { packageRoot } from "./package-root.ts";

/** Configuration of a broker besides its address. */
export interface BrokerSettings {
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
  /** Lines at the end of the configuration; they override earlier settings. */
  readonly extraConfig?: string;
}

/** Text of the file a broker is started with, and the flags that go with it. */
export interface WrittenConfig {
  readonly text: string;
  readonly flags: readonly string[];
}

/** Characters that could end the quoted string of a path. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
const UNSAFE = /["\\\u0000-\u001f]/;

/** Matches the names that nats-server has for the limit of file storage. */
const FILE_LIMIT = /\bmax_file/;

/**
 * Whether to set the limit of file storage: not in a user's file, and not if further lines set it,
 * because the order in which the broker reads its names is not defined.
 */
export function limitIsOurs({ configFile, jetstreamConfig }: BrokerSettings): boolean {
  return configFile === undefined && !FILE_LIMIT.test(jetstreamConfig ?? "");
}

/**
 * The configuration to be written into the store directory: it includes a file and overrides parts.
 *
 * The `jetstream` block of the package's own file is replaced, because every version of the broker
 * refuses the `-sd` flag together with a `store_dir`. Nothing in a user's file is replaced: its block may
 * hold settings that must not be lost silently, such as `sync_interval`. There the flag is used, and the
 * broker refuses a file that also names a `store_dir`.
 * @param fileBytesMax most bytes that the broker may keep in files; absent, the broker decides.
 * @throws BAD_PATH if a path holds a quote, a backslash or a control character.
 * @throws BAD_VALUE if `configFile` is given with `durable` or `jetstreamConfig`.
 */
export function writeBrokerConfig(settings: BrokerSettings, fileBytesMax?: number): WrittenConfig {
  const storeDir = resolve(settings.storeDir);
  const included = settings.configFile ?? join(packageRoot(), "nats.conf");
  const lines = [
    "# Written at each start of the broker; changes are lost.",
    // An include is relative to the including file, even if it begins with a slash.
    `include ${quoted(`./${relative(storeDir, resolve(included))}`)}`,
  ];
  const flags: string[] = [];
  if (settings.configFile === undefined) {
    lines.push("jetstream {", `  store_dir: ${quoted(storeDir)}`);
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
  if (settings.extraConfig !== undefined) lines.push(settings.extraConfig);
  return { text: `${lines.join("\n")}\n`, flags };
}

function quoted(path: string): string {
  if (!UNSAFE.test(path)) return `"${path}"`;
  throw new PserverError(
    "BAD_PATH",
    `expected a path without quotes, backslashes and control characters; received ${JSON.stringify(path)}`,
    { received: path },
  );
}
