import { setImmediate as turn } from "node:timers/promises";
import {
  decodeMessage,
  type ErrorCode,
  encodeAnswers,
  encodeMessage,
  encodeStepReply,
  type Fields,
  parseStepRequest,
  type StepRequest,
  type Synchronization,
} from "../../../src/protocol/index.ts";
import { FakeWire } from "../../support/fake-wire.ts";

/** A clock that came, in the order of coming. */
export interface SeenClock {
  readonly shard: number;
  readonly step: number;
}

/**
 * Plays the hosts of a job that is synchronized by steps; which steps are closed is for the test to
 * say. Answers come in a later turn of the event loop, as from a broker.
 */
export class StepHost extends FakeWire {
  readonly clocks: SeenClock[] = [];
  /** Lifecycle verbs and step requests, in the order of coming. */
  readonly asked: string[] = [];
  readonly closed: number[];
  /** What the next clocks are answered with. */
  readonly rejections: ErrorCode[] = [];
  readonly #synchronization: Synchronization;
  #waiting: { shard: number; request: StepRequest; reply: string }[] = [];
  #session = 0;
  #revision = 0;
  #seq = 0;

  constructor(synchronization: Synchronization, shards = 2) {
    super();
    this.#synchronization = synchronization;
    this.closed = new Array<number>(shards).fill(0);
  }

  /** Closes a step in every shard, or in one. */
  close(step: number, shard?: number): void {
    this.closed.forEach((_, each) => {
      if (shard === undefined || shard === each) this.closed[each] = step;
    });
    this.#answerSteps();
  }

  override publish(subject: string, bytes: Uint8Array, reply: string): void {
    super.publish(subject, bytes, reply);
    const [, , kind, token = "", , verb = ""] = subject.split(".");
    const { fields } = decodeMessage(bytes);
    if (kind === "lifecycle") this.#lifecycle(subject.split(".").at(-1) ?? "", reply);
    if (kind === "shard" && verb === "step") {
      const request = parseStepRequest(fields);
      this.asked.push(`step ${token} ${request.step}`);
      this.#waiting.push({ shard: Number(token), request, reply });
      this.#answerSteps();
    }
    if (kind === "log") this.#clock(Number(token), fields, reply);
  }

  /** Lets everything happen that can without the test. */
  async settle(): Promise<void> {
    for (let i = 0; i < 20; i++) await turn();
  }

  #lifecycle(verb: string, reply: string): void {
    this.asked.push(verb);
    if (verb === "join") this.#session += 1;
    if (verb === "enter") this.#revision += 1;
    const joined = {
      session: this.#session,
      made: "now",
      shards: this.closed.length,
      leaseMs: 600_000,
      journal: "file",
      synchronization: this.#synchronization,
      maxPayloadBytes: 1_000_000,
    };
    const replies: Readonly<Record<string, Fields>> = {
      join: joined,
      enter: { revision: this.#revision },
    };
    this.#later(reply, encodeMessage(replies[verb] ?? {}));
  }

  #clock(shard: number, fields: Fields, reply: string): void {
    this.clocks.push({ shard, step: Number(fields["step"]) });
    const seq = ++this.#seq;
    const ack = new TextEncoder().encode(JSON.stringify({ stream: `PS_j_${shard}`, seq }));
    this.#later(reply, ack);
    const code = this.rejections.shift();
    const outcome = { n: Number(fields["n"]), seq, version: 0, ...(code && { code }) };
    const session = Number(fields["session"]);
    const answers = { shard, generation: 1, session, outcomes: [outcome] };
    this.#later(`${this.inbox}.applied`, encodeAnswers(answers));
  }

  #answerSteps(): void {
    this.#waiting = this.#waiting.filter(({ shard, request, reply }) => {
      const step = this.closed[shard] ?? 0;
      if (step < request.step || this.#revision < request.revision) return true;
      const { generation, seq } = request;
      const revision = this.#revision;
      this.#later(reply, encodeStepReply({ generation, seq, revision, step, waitingFor: [] }));
      return false;
    });
  }

  #later(subject: string, bytes: Uint8Array): void {
    setImmediate(() => this.deliver(subject, bytes));
  }
}
