import { PserverError } from "../protocol/errors.ts";
import { findListener } from "./listener.ts";

/** Prefix of each line of nats-server's log: process, time, level. */
const PREFIX = /^\[\d+\] \S+ \S+ \[([A-Z]{3})\] /;

/** Message of nats-server if the address that it should listen on is in use. */
const TAKEN = /listen tcp\S* (\S+):(\d+): bind: address already in use/;

/**
 * The error for a broker that did not start, from the end of its log.
 * @param what what happened, such as "ended before it was ready".
 * @returns ADDRESS_IN_USE with the address and, if known, the process that listens there; else
 *   NO_BROKER with the broker's own message.
 */
export async function failedStart(what: string, log: readonly string[]): Promise<PserverError> {
  const taken = TAKEN.exec(log.join("\n"));
  if (taken === null) {
    const words = reasons(log).join(" | ");
    return new PserverError("NO_BROKER", `the broker ${what}${words && `: ${words}`}`, { log });
  }
  const [host = "", port] = [taken[1], Number(taken[2])];
  const listener = await findListener(port);
  const by =
    listener === undefined ? "another process" : `process ${listener.pid} (${listener.name})`;
  const message = `expected ${host}:${port} to be free for the broker; ${by} listens there`;
  return new PserverError("ADDRESS_IN_USE", message, { host, port, pid: listener?.pid });
}

/** The lines that report failures, without process and time; all lines if none does. */
function reasons(log: readonly string[]): readonly string[] {
  const bad = log.filter((line) => ["ERR", "FTL"].includes(PREFIX.exec(line)?.[1] ?? ""));
  // Errors of the configuration are written without a prefix.
  const plain = log.filter((line) => !PREFIX.test(line));
  const telling = [...plain, ...bad];
  return (telling.length === 0 ? log : telling).map((line) => line.replace(PREFIX, ""));
}
