import { createHash } from "node:crypto";
import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";

/** A message that went through the broker. */
export interface Passed {
  readonly subject: string;
  readonly bytes: number;
}

/**
 * Listens to everything that passes on some subjects of a broker. What is repeated counts once: on a busy
 * machine clients repeat records and requests whose answers come late, and hosts answer each.
 */
export class Traffic {
  readonly #connection: NatsConnection;
  readonly #passed: Passed[] = [];
  readonly #seen: Set<string> = new Set();

  private constructor(connection: NatsConnection, subjects: readonly string[]) {
    this.#connection = connection;
    for (const subject of subjects) {
      connection.subscribe(subject, {
        callback: (_error, message) => {
          const identity = identityOf(message);
          if (this.#seen.has(identity)) return;
          this.#seen.add(identity);
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

/** Alike for a message and its repeats only: a record has a number in it, a request its own reply subject. */
function identityOf({ subject, reply, data }: Msg): string {
  const isRecord = subject.split(".")[2] === "log";
  const hash = createHash("sha256").update(data).digest("base64");
  return `${subject} ${isRecord ? "" : reply} ${hash}`;
}

/** Bytes of messages together. */
export function bytesOfAll(passed: readonly Passed[]): number {
  return passed.reduce((sum, { bytes }) => sum + bytes, 0);
}
