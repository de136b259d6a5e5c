import { setTimeout as delay } from "node:timers/promises";
import { connect, type NatsConnection, RequestError, TimeoutError } from "@nats-io/transport-node";
import {
  bytesOf,
  decodeMessage,
  draftRecord,
  encodeClock,
  encodeMessage,
  encodeOutcomeRequest,
  encodeStepRequest,
  type Fields,
  JobSubjects,
  type LifecycleVerb,
  l2Norm,
  type Outcome,
  type Position,
  PserverError,
  parseAnswers,
  parseEnterReply,
  parseJoinReply,
  parseStepReply,
  type RecordHeader,
  type StepReply,
  sealMessage,
  throwIfError,
} from "../../../src/protocol/index.ts";
import type { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

const POLL_MS = 20;

/** Codes of answers that say "not now". */
const NOT_NOW = ["NOT_OWNER", "NO_OWNER", "BUSY", "TIMEOUT"];

/** A trainer that keeps step message by message, so that a test decides what it says and when. */
export class StepTrainer {
  readonly id: string;
  readonly session: number;
  readonly subjects: JobSubjects;
  readonly #connection: NatsConnection;
  readonly #shards: number;
  readonly #renewal: NodeJS.Timeout;
  readonly #positions: Map<number, Position> = new Map();
  readonly #numbers: Map<number, number> = new Map();
  #revision = 0;

  private constructor(options: {
    id: string;
    session: number;
    shards: number;
    leaseMs: number;
    subjects: JobSubjects;
    connection: NatsConnection;
  }) {
    this.id = options.id;
    this.session = options.session;
    this.subjects = options.subjects;
    this.#shards = options.shards;
    this.#connection = options.connection;
    this.#renewal = setInterval(() => {
      const subject = this.subjects.lifecycle(this.id, "renew");
      const request = encodeMessage({ session: this.session });
      this.#connection.request(subject, request, { timeout: 1_000 }).catch(() => undefined);
    }, options.leaseMs / 4);
  }

  /** Joins the job, and keeps its lease until it is killed. */
  static async join(job: TestJob, id: string): Promise<StepTrainer> {
    const subjects = new JobSubjects(job.job);
    const inboxPrefix = `${subjects.inbox(id)}.${Math.random().toString(36).slice(2)}`;
    const connection = await connect({ servers: job.broker.url, inboxPrefix });
    const subject = subjects.lifecycle(id, "join");
    const body = encodeMessage({ token: `${id} ${Math.random()}` });
    const reply = parseJoinReply(await ask(connection, subject, body));
    return new StepTrainer({ id, ...reply, subjects, connection });
  }

  /** Joins and enters. */
  static async enter(job: TestJob, id: string): Promise<StepTrainer> {
    const trainer = await StepTrainer.join(job, id);
    await trainer.enter();
    return trainer;
  }

  async enter(): Promise<void> {
    this.#revision = parseEnterReply(await this.lifecycle("enter")).revision;
  }

  async lifecycle(verb: LifecycleVerb): Promise<Fields> {
    const subject = this.subjects.lifecycle(this.id, verb);
    return await ask(this.#connection, subject, encodeMessage({ session: this.session }));
  }

  /** Sends a gradient of a step for block 0 of a parameter; gives its number, once it is stored. */
  async send(shard: number, name: string, step: number, values: Float32Array): Promise<number> {
    const data = bytesOf(values);
    return await this.#store(shard, this.subjects.log(shard, this.id, "push", name, 0), (head) => {
      const operation = { op: "grad", step } as const;
      const norm = l2Norm(values);
      const draft = draftRecord(
        { verb: "push", ...head, epoch: 1, dtype: "float32", norm, operation },
        data.length,
      );
      draft.data.set(data);
      return sealMessage(draft);
    });
  }

  /** As {@link send}, and what became of it. */
  async gradient(
    shard: number,
    name: string,
    step: number,
    values: Float32Array,
  ): Promise<Outcome> {
    return await this.outcome(shard, await this.send(shard, name, step, values));
  }

  /** Ends a step in one shard, or in all; the outcomes, by shard. */
  async clock(step: number, shard?: number): Promise<Outcome[]> {
    const all = Array.from({ length: this.#shards }, (_, i) => i);
    return await Promise.all(
      (shard === undefined ? all : [shard]).map(async (each) =>
        this.outcome(each, await this.sendClock(each, step)),
      ),
    );
  }

  /** Ends a step in one shard; gives the record's number, once it is stored. */
  async sendClock(shard: number, step: number): Promise<number> {
    const subject = this.subjects.clock(shard, this.id);
    return await this.#store(shard, subject, (head) =>
      encodeClock({ verb: "clock", ...head, step }),
    );
  }

  /** What became of a record that is stored. */
  async outcome(shard: number, n: number): Promise<Outcome> {
    const position = this.#position(shard);
    const request = encodeOutcomeRequest({ session: this.session, numbers: [n], ...position });
    const subject = this.subjects.outcome(shard, this.id);
    const fields = await ask(this.#connection, subject, request);
    const [outcome] = parseAnswers({ fields, data: new Uint8Array(0) }).outcomes;
    if (outcome === undefined) throw new Error(`no outcome of record ${n}`);
    return outcome;
  }

  /** How far a shard is, once a step has closed there; asks again until it has. */
  async closed(shard: number, step: number): Promise<StepReply> {
    const subject = this.subjects.step(shard, this.id);
    return readStep(await ask(this.#connection, subject, this.#stepRequest(shard, step, 900)));
  }

  /** How far a shard is, asked once. @throws what it answers, TIMEOUT after `waitMs`. */
  async peek(shard: number, step: number, waitMs = 50): Promise<StepReply> {
    const subject = this.subjects.step(shard, this.id);
    const request = this.#stepRequest(shard, step, waitMs);
    const { data } = await this.#connection.request(subject, request, { timeout: HANG_MS });
    return parseStepReply(decodeMessage(data));
  }

  /** Ends as a crash does: its lease is not renewed any more, and nobody is told. */
  async kill(): Promise<void> {
    clearInterval(this.#renewal);
    await this.#connection.close();
  }

  #position(shard: number): Position {
    return this.#positions.get(shard) ?? { generation: 1, seq: 0 };
  }

  #stepRequest(shard: number, step: number, waitMs: number): Uint8Array {
    const position = this.#position(shard);
    return encodeStepRequest({ ...position, revision: this.#revision, step, waitMs });
  }

  async #store(
    shard: number,
    subject: string,
    make: (head: RecordHeader) => Uint8Array,
  ): Promise<number> {
    const n = (this.#numbers.get(shard) ?? 0) + 1;
    this.#numbers.set(shard, n);
    const { session } = this;
    const { data } = await this.#connection.request(
      subject,
      make({ session, n, done: 0, reply: "" }),
      { timeout: HANG_MS },
    );
    const ack = JSON.parse(new TextDecoder().decode(data)) as { stream: string; seq: number };
    const { generation } = this.subjects.parseJournalStream(ack.stream);
    const known = this.#position(shard);
    if (known.generation < generation || known.seq < ack.seq) {
      this.#positions.set(shard, { generation, seq: ack.seq });
    }
    return n;
  }
}

function readStep(fields: Fields): StepReply {
  return parseStepReply({ fields, data: new Uint8Array(0) });
}

/** The entries of the reply; what is only "not now" is asked again. @throws the error in it. */
async function ask(connection: NatsConnection, subject: string, body: Uint8Array): Promise<Fields> {
  const deadline = performance.now() + HANG_MS;
  while (true) {
    try {
      const reply = await connection.request(subject, body, { timeout: 4_000 });
      const { fields } = decodeMessage(reply.data);
      throwIfError(fields);
      return fields;
    } catch (error) {
      const isNotNow =
        error instanceof TimeoutError ||
        (error instanceof RequestError && error.isNoResponders()) ||
        (error instanceof PserverError && NOT_NOW.includes(error.code));
      if (!isNotNow || performance.now() > deadline) throw error;
      await delay(POLL_MS);
    }
  }
}
