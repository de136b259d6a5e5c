import { connect } from "node:net";
import { PserverError } from "../protocol/errors.ts";
import { parseJsonObject } from "./json-object.ts";

/** A broker's greeting to a client. */
export interface BrokerInfo {
  readonly version: string;
  readonly jetstream: boolean;
  readonly maxPayloadBytes: number;
}

/** A broker's greeting has a few hundred bytes; anything longer is not one. */
const GREETING_BYTES_MAX = 64 * 1024;

/**
 * Connects, reads the broker's greeting and hangs up. A broker that greets accepts clients.
 * @throws NO_BROKER if nothing answers within `timeoutMs`, or not a broker; ABORTED by `signal`.
 */
export async function readBrokerInfo(
  host: string,
  port: number,
  timeoutMs: number,
  signal?: AbortSignal,
): Promise<BrokerInfo> {
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
