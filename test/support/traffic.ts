import { connect, type NatsConnection } from "@nats-io/transport-node";

/** A message that went through the broker. */
export interface Passed {
  readonly subject: string;
  readonly bytes: number;
}

/** Listens to everything that passes on some subjects of a broker. */
export class Traffic {
  readonly #connection: NatsConnection;
  readonly #passed: Passed[] = [];

  private constructor(connection: NatsConnection, subjects: readonly string[]) {
    this.#connection = connection;
    for (const subject of subjects) {
      connection.subscribe(subject, {
        callback: (_error, message) => {
          this.#passed.push({ subject: message.subject, bytes: message.data.length });
        },
      });
    }
  }

  /** Listens from now on. */
  static async listen(url: string, ...subjects: string[]): Promise<Traffic> {
    const connection = await connect({ servers: url });
    const traffic = new Traffic(connection, subjects);
    await connection.flush();
    return traffic;
  }

  /** What has passed since the last call, as far as the broker has taken it in. */
  async take(): Promise<Passed[]> {
    await this.#connection.flush();
    return this.#passed.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }
}

/** Bytes of messages together. */
export function bytesOfAll(passed: readonly Passed[]): number {
  return passed.reduce((sum, { bytes }) => sum + bytes, 0);
}
