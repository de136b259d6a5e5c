import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { BrokerAccess } from "../http/broker-access.ts";
import type { CommandLine, StartCommand, StartedCommand } from "../http/job-changes.ts";
import { defined } from "../protocol/fields.ts";
import { type StarterMessage, thisCommand } from "./context.ts";
import { EXIT } from "./report-error.ts";

/** How long a command that is to stop may take; one that writes stops after the shard that it writes. */
const STOP_TIMEOUT_MS = 20_000;

/** Variables of credentials, and of TLS: of each group, all come from one source. */
const AUTH = ["NATS_USER", "NATS_PASSWORD", "NATS_TOKEN", "NATS_CREDS", "NATS_NKEY"] as const;
const TLS = ["NATS_CERT", "NATS_KEY", "NATS_CA"] as const;

/** Returns the environment in which a command reaches the broker as `access` says. */
export function variablesOf({ broker, environment }: BrokerAccess): Record<string, string> {
  const { url, user, password, token, creds, nkey, tlsCert, tlsKey, tlsCa, context } = broker;
  const given: Record<string, string> = defined({
    PSERVER_URL: typeof url === "object" ? url.join(",") : url,
    ...{ NATS_USER: user, NATS_PASSWORD: password, NATS_TOKEN: token, NATS_CREDS: creds },
    ...{ NATS_NKEY: nkey, NATS_CERT: tlsCert, NATS_KEY: tlsKey, NATS_CA: tlsCa },
    NATS_CONTEXT: context,
  });
  const isGiven = (name: string): boolean => given[name] !== undefined;
  // The password of a user that is given may be in the environment: see resolveSettings.
  const keepsPassword = isGiven("NATS_USER") && !isGiven("NATS_PASSWORD");
  const replaced = [
    ...(AUTH.some(isGiven)
      ? AUTH.filter((name) => name !== "NATS_PASSWORD" || !keepsPassword)
      : []),
    ...(TLS.some(isGiven) ? TLS : []),
  ] as readonly string[];
  const kept = Object.entries(environment).flatMap(([name, value]) =>
    value === undefined || replaced.includes(name) ? [] : [[name, value] as const],
  );
  return { ...Object.fromEntries(kept), ...given };
}

/** Returns how a page's commands are started: each in a process of its own, which ends with this one. */
export function commandStarter(access: () => BrokerAccess): StartCommand {
  return (args, onLine) => startCommand(args, variablesOf(access()), onLine);
}

function startCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  onLine: (line: CommandLine) => void,
): StartedCommand {
  const [program, ...first] = thisCommand();
  // A group of its own: Ctrl-C reaches only this process, which stops it in order.
  const child = spawn(program, [...first, ...args], {
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    detached: true,
    env: environment,
  }) as ChildProcessByStdio<null, Readable, Readable>;
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (text) => onLine({ kind: "message", text }));
  }
  child.on("message", (message: StarterMessage) => {
    if ("progress" in message) onLine({ kind: "progress", text: message.progress });
  });
  const ended = new Promise<number>((resolve) => {
    child.once("error", ({ message }) => {
      onLine({ kind: "message", text: `cannot run ${program}: ${message}` });
      resolve(EXIT.files);
    });
    child.once("close", (code) => resolve(code ?? EXIT.failure));
  });
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await ended;
    clearTimeout(timer);
  };
  return { ended, stop };
}
