import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import type { Msg, NatsConnection, Payload, RequestOptions } from "@nats-io/transport-node";
import { checkJetStreamAnswer } from "./jetstream-answer.ts";

/**
 * A JetStream client on this connection that checks answers before nats.js uses them: its methods end in
 * a result, the broker's refusal or BAD_MESSAGE, whatever a broker answers. A request may take
 * `timeoutMs`, 5 s by default.
 */
export function openJetStream(connection: NatsConnection, timeoutMs?: number): JetStreamClient {
  return jetstream(withCheckedAnswers(connection), {
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  });
}

/** The same connection, for requests to JetStream only. */
function withCheckedAnswers(connection: NatsConnection): NatsConnection {
  const request = async (
    subject: string,
    payload?: Payload,
    options?: RequestOptions,
  ): Promise<Msg> => {
    const answer = await connection.request(subject, payload, options);
    checkJetStreamAnswer(subject, answer.data);
    return answer;
  };
  return Object.create(connection, { request: { value: request } }) as NatsConnection;
}
