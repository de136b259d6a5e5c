import type { NatsConnection } from "@nats-io/transport-node";
import { encodeAnswers, type Outcome } from "../../protocol/index.ts";
import type { Settled } from "../fold/shard.ts";

/** Outcomes in one message at most; a message of them stays small. */
const OUTCOMES_MAX = 512;

/** What one session is told at one inbox. */
interface Batch {
  readonly reply: string;
  readonly session: number;
  readonly outcomes: Outcome[];
}

/** Collects outcomes and sends each trainer its own in one message. */
export class AnswerBatch {
  readonly #connection: NatsConnection;
  readonly #shard: number;
  #batches: Map<string, Batch> = new Map();

  constructor(connection: NatsConnection, shard: number) {
    this.#connection = connection;
    this.#shard = shard;
  }

  /** Adds an outcome; one without a reply subject is only told when asked for. */
  add({ reply, session, outcome }: Settled): void {
    if (reply === "") return;
    const key = `${session} ${reply}`;
    const batch = this.#batches.get(key);
    if (batch === undefined) this.#batches.set(key, { reply, session, outcomes: [outcome] });
    else batch.outcomes.push(outcome);
  }

  /** Sends what was collected. */
  flush(generation: number): void {
    const batches = this.#batches;
    this.#batches = new Map();
    if (this.#connection.isClosed()) return;
    for (const { reply, session, outcomes } of batches.values()) {
      for (let start = 0; start < outcomes.length; start += OUTCOMES_MAX) {
        const part = outcomes.slice(start, start + OUTCOMES_MAX);
        const answers = { shard: this.#shard, generation, session, outcomes: part };
        this.#connection.publish(reply, encodeAnswers(answers));
      }
    }
  }

  /** Forgets what was collected, as an owner does that may not answer. */
  clear(): void {
    this.#batches.clear();
  }
}
