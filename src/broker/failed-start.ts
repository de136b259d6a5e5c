import { PserverError } from "../protocol/errors.ts";
import { findListener } from "./listener.ts";

/** What stands before each line of nats-server's log: process, time, level. */
const PREFIX = /^\[\d+\] \S+ \S+ \[([A-Z]{3})\] /;

/** What nats-server says where an address that it is to listen on is taken. */
const TAKEN = /listen tcp\S* (\S+):(\d+): bind: address already in use/;

/**
 * Why a broker did not start, by the end of its log.
 * @param what how it went, such as "ended before it was ready".
 * @returns ADDRESS_IN_USE with the address, and the process that listens there where the system tells;
 *   else NO_BROKER with the broker's own words.
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

/** The lines that say what failed, without process and time; all lines where none says so. */
function reasons(log: readonly string[]): readonly string[] {
  const bad = log.filter((line) => ["ERR", "FTL"].includes(PREFIX.exec(line)?.[1] ?? ""));
  // What is wrong with a configuration comes without any prefix.
  const plain = log.filter((line) => !PREFIX.test(line));
  const telling = [...plain, ...bad];
  return (telling.length === 0 ? log : telling).map((line) => line.replace(PREFIX, ""));
}
