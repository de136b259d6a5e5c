import type { Msg, NatsConnection, Payload, RequestOptions } from "@nats-io/transport-node";

/** How long an answer may take before the request is sent again. */
const REPEAT_MS = 1_000;

/** The parts of a connection that a repeated request uses. */
export type RequestConnection = Pick<NatsConnection, "request" | "flush">;

/**
 * Sends a request, and sends it again each second until an answer comes, to whichever copy: a request to a stream
 * without a leader, or with one that hangs, is lost, and its successor hears only what is sent from then on. A copy
 * is sent only after the broker has answered a PING that followed the last one: until then that copy, or its answer,
 * may still be on a slow link.
 * @throws as `request` does, the first error of any copy; a timeout after `timeout` in all.
 */
export function requestRepeatedly(
  connection: RequestConnection,
  subject: string,
  payload: Payload | undefined,
  options: RequestOptions,
): Promise<Msg> {
  const endsAtMs = performance.now() + options.timeout;
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    let isOver = false;
    const over = (): void => {
      isOver = true;
      clearTimeout(timer);
    };
    const send = (timeoutMs: number): void => {
      connection.request(subject, payload, { ...options, timeout: timeoutMs }).then(
        (answer) => {
          over();
          resolve(answer);
        },
        (error: unknown) => {
          over();
          reject(error);
        },
      );
      timer = setTimeout(repeat, REPEAT_MS);
    };
    const repeat = (): void => {
      connection.flush().then(
        () => {
          const leftMs = Math.floor(endsAtMs - performance.now());
          if (!isOver && leftMs > 0) send(leftMs);
        },
        // The connection is lost, and with it the copies that were sent: their requests end.
        () => undefined,
      );
    };
    send(options.timeout);
  });
}
