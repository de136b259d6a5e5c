import type { NatsConnection } from "@nats-io/transport-node";
import { encodeAnswers, type Outcome } from "../../protocol/index.ts";
import { payloadBytesMaxOf } from "../../transport/payload-limit.ts";
import type { Settled } from "../fold/shard.ts";

/** Limit of the outcomes in one message, to keep it small. */
const OUTCOMES_MAX = 512;

/** Outcomes for one session at one inbox. */
interface SessionAnswers {
  readonly reply: string;
  readonly session: number;
  readonly outcomes: Outcome[];
}

/** Collects outcomes, and sends each session its own in one message. */
export class OutgoingAnswers {
  readonly #connection: NatsConnection;
  readonly #shard: number;
  #sessions: Map<string, SessionAnswers> = new Map();

  constructor(connection: NatsConnection, shard: number) {
    this.#connection = connection;
    this.#shard = shard;
  }

  /** Adds an outcome; ignores one without a reply subject, whose sender asks for it. */
  add({ reply, session, outcome }: Settled): void {
    if (reply === "") return;
    const key = `${session} ${reply}`;
    const answers = this.#sessions.get(key);
    if (answers === undefined) this.#sessions.set(key, { reply, session, outcomes: [outcome] });
    else answers.outcomes.push(outcome);
  }

  /** Sends the collected outcomes. */
  flush(generation: number): void {
    const sessions = this.#sessions;
    this.#sessions = new Map();
    if (this.#connection.isClosed()) return;
    const payloadBytesMax = payloadBytesMaxOf(this.#connection);
    for (const { reply, session, outcomes } of sessions.values()) {
      for (let start = 0; start < outcomes.length; start += OUTCOMES_MAX) {
        const part = outcomes.slice(start, start + OUTCOMES_MAX);
        const answers = { shard: this.#shard, generation, session, outcomes: part };
        this.#connection.publish(reply, encodeAnswers(answers, payloadBytesMax));
      }
    }
  }

  /** Forgets the collected outcomes, as an owner without a valid lease must not answer. */
  clear(): void {
    this.#sessions.clear();
  }
}
