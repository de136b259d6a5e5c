import {
  type Msg,
  type NatsConnection,
  type Payload,
  type RequestOptions,
  TimeoutError,
} from "@nats-io/transport-node";
import { startAnswerDeadline } from "./answer-deadline.ts";

/** How long nats.js keeps a place for the answer to one copy: long enough for the largest message on a slow link. */
const COPY_MS = 600_000;

/** The parts of a connection that a repeated request uses. */
export type RequestConnection = Pick<NatsConnection, "request" | "flush">;

/**
 * Sends a request, and sends it again each second until an answer comes, to whichever copy: a request to a stream
 * without a leader, or with one that hangs, is lost, and its successor hears only what is sent from then on. A copy
 * is sent only after the broker has answered a PING that followed the last one: until then that copy, or its answer,
 * may still be on a slow link.
 * @throws as `request` does, the first error of any copy; a timeout after `timeout` in all, for which nothing was on the
 * link ({@link startAnswerDeadline}).
 */
export function requestRepeatedly(
  connection: RequestConnection,
  subject: string,
  payload: Payload | undefined,
  options: RequestOptions,
): Promise<Msg> {
  return request(connection, subject, payload, { ...options, isRepeated: true });
}

/** Sends a request once; the rest as {@link requestRepeatedly}. */
export function requestOnce(
  connection: RequestConnection,
  subject: string,
  payload: Payload | undefined,
  options: RequestOptions,
): Promise<Msg> {
  return request(connection, subject, payload, { ...options, isRepeated: false });
}

function request(
  connection: RequestConnection,
  subject: string,
  payload: Payload | undefined,
  { isRepeated, ...options }: RequestOptions & { readonly isRepeated: boolean },
): Promise<Msg> {
  return new Promise((resolve, reject) => {
    const send = (): void => {
      connection.request(subject, payload, { ...options, timeout: COPY_MS }).then(
        (answer) => {
          stop();
          resolve(answer);
        },
        (error: unknown) => {
          stop();
          reject(error);
        },
      );
    };
    const stop = startAnswerDeadline(connection, options.timeout, {
      ...(isRepeated ? { onSilence: send } : {}),
      onOver: () => reject(new TimeoutError()),
    });
    send();
  });
}
