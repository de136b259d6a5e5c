import type { NatsConnection } from "@nats-io/transport-node";

/**
 * A connection whose requests end late: `answered` is called and awaited with the subject of each request once its
 * answer is there. So a test decides what others do between a look of a command and its next write.
 */
export function heldConnection(
  connection: NatsConnection,
  answered: (subject: string) => Promise<void>,
): NatsConnection {
  const request: NatsConnection["request"] = async (subject, ...rest) => {
    const answer = await connection.request(subject, ...rest);
    await answered(subject);
    return answer;
  };
  return Object.create(connection, { request: { value: request } }) as NatsConnection;
}
