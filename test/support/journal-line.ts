import type { ConsumerConfig, JetStreamManager } from "@nats-io/jetstream";
import type { Msg, NatsConnection } from "@nats-io/transport-node";

/** A request for records, as the broker gets it. */
export interface RecordsRequest {
  readonly subject: string;
  /** Where the records and statuses go. */
  readonly reply: string | undefined;
  readonly batch: number;
  /** Lifetime of the request, and interval of the heartbeats, in nanoseconds. */
  readonly expires: number;
  readonly idle_heartbeat: number;
}

const RECORD = new Uint8Array(8);

/**
 * A connection to a broker that holds one journal: it takes down the consumers that are made and the
 * records that are asked for, and delivers what the test says.
 */
export class JournalLine {
  readonly consumers: { readonly stream: string; readonly config: Partial<ConsumerConfig> }[] = [];
  readonly requests: RecordsRequest[] = [];
  /** Awaited before a consumer is made; it may fail. */
  beforeAdd: () => Promise<void> = () => Promise.resolve();
  /** Awaited before a PING is answered; it fails if the connection is lost. */
  beforePong: () => Promise<void> = () => Promise.resolve();
  /** Subjects of records that the broker gives one by one. */
  readonly stored: Map<number, string> = new Map();
  /** The brokers on which the next consumers will be, and then the last of them; none without a cluster. */
  readonly brokers: string[] = [];
  /** The broker that leads the stream. */
  leader: string | undefined;
  #inbox = "";
  #deliver: ((error: Error | null, message: Msg) => void) | undefined;
  /** Subscriptions that were not ended. */
  open = 0;

  readonly connection: NatsConnection = {
    subscribe: (subject: string, { callback }: { callback: (e: Error | null, m: Msg) => void }) => {
      this.#inbox = subject;
      this.#deliver = callback;
      this.open += 1;
      return {
        unsubscribe: () => {
          this.open -= 1;
          if (this.#deliver === callback) this.#deliver = undefined;
        },
      };
    },
    publish: (subject: string, body: string, { reply }: { reply?: string } = {}) => {
      const request = JSON.parse(body) as Omit<RecordsRequest, "subject" | "reply">;
      this.requests.push({ subject, reply, ...request });
    },
    flush: () => this.beforePong(),
  } as unknown as NatsConnection;

  readonly manager: JetStreamManager = {
    consumers: {
      add: async (stream: string, config: Partial<ConsumerConfig>) => {
        this.consumers.push({ stream, config });
        await this.beforeAdd();
        const leader = this.brokers.length > 1 ? this.brokers.shift() : this.brokers[0];
        return { name: config.name, ...(leader === undefined ? {} : { cluster: { leader } }) };
      },
      delete: () => Promise.resolve(true),
    },
    streams: {
      info: () => Promise.resolve({ cluster: { leader: this.leader } }),
      getMessage: (_stream: string, { seq }: { seq: number }) => {
        const subject = this.stored.get(seq);
        return Promise.resolve(subject === undefined ? null : { seq, subject, data: RECORD });
      },
    },
  } as unknown as JetStreamManager;

  /** Subject of the newest subscription. */
  get inbox(): string {
    return this.#inbox;
  }

  /** Delivers a record to whoever listens now. */
  record(
    seq: number,
    payload: Uint8Array = new Uint8Array(8),
    subject = `s.${seq}`,
    reply = `$JS.ACK.PS_j_3.owner-x.1.${seq}.1.0.0`,
  ): void {
    // A sender may name headers as it likes: they make no status of a record.
    this.#deliver?.(null, {
      reply,
      subject,
      data: payload,
      headers: { code: 409 },
    } as unknown as Msg);
  }

  /** Sends a status; `pending`: records of the request that did not come. */
  status(code: number, pending = 0): void {
    const headers = { code, get: () => `${pending}` };
    const message = { subject: this.#inbox, data: new Uint8Array(0), headers };
    this.#deliver?.(null, message as unknown as Msg);
  }

  /** Reports an error of the subscription, with an empty message as the connection does. */
  fail(error: Error): void {
    this.#deliver?.(error, {} as Msg);
  }
}
