import type { NatsConnection } from "@nats-io/transport-node";

/**
 * A connection whose requests end late: `answered` is called and awaited with the subject of each request once its
 * answer is there. So a test decides what others do between a look of a command and its next write. Answers come in the
 * order of the broker's: while one is held up, so are that of the same request sent again, and those to PINGs, so that no
 * deadline counts the time.
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
  const flush: NatsConnection["flush"] = async () => {
    await line;
    await connection.flush();
  };
  const changed = { request: { value: request }, flush: { value: flush } };
  return Object.create(connection, changed) as NatsConnection;
}
