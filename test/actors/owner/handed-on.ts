import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { SHARD, SUBJECTS } from "../fold/journal-writer.ts";

type Handler = (error: null, message: Msg) => void;

/** A connection that hands requests to whom they concern and keeps what is published. */
export class HandedOn {
  readonly published: Uint8Array[] = [];
  readonly repliedTo: string[] = [];
  /** Whether the broker takes what is published; while it does not, flushes wait. */
  taking = true;
  readonly #handlers: Map<string, Handler> = new Map();
  readonly #flushes: (() => void)[] = [];

  /** What the actors use of a connection. */
  readonly connection: NatsConnection = {
    subscribe: (subject: string, { callback }: { callback: Handler }) => {
      this.#handlers.set(subject, callback);
      return { unsubscribe: () => this.#handlers.delete(subject) };
    },
    publish: (subject: string, bytes: Uint8Array) => {
      // A copy: the memory is used again once the broker has taken it.
      this.published.push(bytes.slice());
      this.repliedTo.push(subject);
    },
    isClosed: () => false,
    flush: () =>
      this.taking ? Promise.resolve() : new Promise<void>((resolve) => this.#flushes.push(resolve)),
    info: { max_payload: 1024 * 1024 },
  } as unknown as NatsConnection;

  /** A pull, by alice and of "w" block 0 if nothing else is said. */
  ask(data: Uint8Array, name = "w", index = 0, trainer = "alice"): void {
    const subject = SUBJECTS.pull(name, index, trainer);
    const message = { subject, reply: `${SUBJECTS.inbox(trainer)}.7`, data } as Msg;
    for (const heard of [SUBJECTS.block(name, index), SUBJECTS.allPulls()]) {
      this.#handlers.get(heard)?.(null, message);
    }
  }

  /** A batched read. */
  read(data: Uint8Array, trainer = "alice"): void {
    const subject = SUBJECTS.read(SHARD, trainer);
    const message = { subject, reply: `${SUBJECTS.inbox(trainer)}.7`, data } as Msg;
    this.#handlers.get(SUBJECTS.shardRequests(SHARD).read)?.(null, message);
  }

  /** The broker takes what was published, and all further messages. */
  take(): void {
    this.taking = true;
    for (const flushed of this.#flushes.splice(0)) flushed();
  }

  /** Whether anybody listens to a subject. */
  hears(subject: string): boolean {
    return this.#handlers.has(subject);
  }
}
