import type { NatsConnection } from "@nats-io/transport-node";

/**
 * A connection whose requests end late: `answered` is called and awaited with the subject of each request once its
 * answer is there. So a test decides what others do between a look of a command and its next write. Answers come in the
 * order of the broker's: while one is held up, so is that of the same request sent again.
 */
export function heldConnection(
  connection: NatsConnection,
  answered: (subject: string) => Promise<void>,
): NatsConnection {
  let line: Promise<unknown> = Promise.resolve();
  const request: NatsConnection["request"] = async (subject, ...rest) => {
    const answer = await connection.request(subject, ...rest);
    const held = line.then(() => answered(subject));
    line = held.catch(() => undefined);
    await held;
    return answer;
  };
  return Object.create(connection, { request: { value: request } }) as NatsConnection;
}
