import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ensureError, PserverError } from "../protocol/errors.ts";
import { checkBrokerVersion } from "../transport/broker-version.ts";
import { type FoundBroker, findBroker } from "./find-broker.ts";
import { packageRoot } from "./package-root.ts";
import { signalTree } from "./process-tree.ts";
import { userBrokerDirectory } from "./user-directory.ts";

/** Options of {@link setUpBroker}. */
export interface SetUpOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Receives progress, line by line. */
  readonly onMessage: (text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * The broker that {@link findBroker} finds. If there is none, or only an old one, installs one in the
 * user's directory: built with Go or, without Go, taken from Debian's package.
 * @throws NO_BROKER if that is not possible, naming what to install; the reason of `signal`, which ends
 *   all processes of the installation.
 */
export async function setUpBroker(options: SetUpOptions): Promise<FoundBroker> {
  const { environment, signal } = options;
  const found = await findUsable(environment, signal);
  if (found !== undefined && checkBrokerVersion(found.version) !== "warned") return found;
  const keep = found === undefined ? [] : ["--or-keep", found.path];
  await runScript([userBrokerDirectory(environment), ...keep], options);
  return await findBroker(environment, signal);
}

/** A usable broker; undefined if there is none that is new enough. */
async function findUsable(
  environment: SetUpOptions["environment"],
  signal: AbortSignal,
): Promise<FoundBroker | undefined> {
  try {
    return await findBroker(environment, signal);
  } catch (thrown) {
    const error = ensureError(thrown);
    const isNamed = (environment["PSERVER_NATS_SERVER"] ?? "") !== "";
    if (isNamed || (error.code !== "NO_BROKER" && error.code !== "BROKER_TOO_OLD")) throw error;
    return undefined;
  }
}

async function runScript(args: readonly string[], options: SetUpOptions): Promise<void> {
  options.signal.throwIfAborted();
  const script = join(packageRoot(), "scripts", "provide-broker.sh");
  const child = spawn("bash", [script, ...args], {
    // The script may ask for a password.
    stdio: ["inherit", "ignore", "pipe"],
    env: options.environment,
  });
  // What bash has started, such as Go, does not end with it. A group of their own would not do: they could
  // not ask for a password at the terminal, and `timeout` makes another one.
  const end = (): void => {
    if (child.pid !== undefined) void signalTree(child.pid, "SIGTERM");
  };
  options.signal.addEventListener("abort", end, { once: true });
  let last = "";
  createInterface({ input: child.stderr }).on("line", (line) => {
    last = line.replace(/^setup: /, "");
    options.onMessage(last);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("close", resolve);
    child.once("error", (cause) => {
      const message = `cannot run bash, which sets the broker up: ${cause.message}`;
      reject(new PserverError("NO_BROKER", message, { program: "bash" }, { cause }));
    });
  }).finally(() => options.signal.removeEventListener("abort", end));
  options.signal.throwIfAborted();
  if (code !== 0) throw new PserverError("NO_BROKER", last || `the set-up ended with ${code}`);
}
