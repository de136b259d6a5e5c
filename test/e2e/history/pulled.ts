import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { connect, type NatsConnection, RequestError, TimeoutError } from "@nats-io/transport-node";
import {
  blockPlaces,
  decodeMessage,
  encodePullRequest,
  JobSubjects,
  type ParameterInfo,
  type Position,
  PserverError,
  parsePullReply,
} from "../../../src/protocol/index.ts";
import type { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";

const POLL_MS = 20;

/** A block as an observer pulled it, with the position that its owner had folded up to. */
export interface PulledBlock {
  readonly parameter: string;
  readonly index: number;
  readonly shard: number;
  readonly position: Position;
  readonly version: number;
  /** Of its values. */
  readonly digest: string;
}

/** Pulls blocks message by message, because the client tells nobody which positions it has seen. */
export class Observer {
  readonly #connection: NatsConnection;
  readonly #subjects: JobSubjects;

  private constructor(connection: NatsConnection, subjects: JobSubjects) {
    this.#connection = connection;
    this.#subjects = subjects;
  }

  static async open(job: TestJob): Promise<Observer> {
    const subjects = new JobSubjects(job.job);
    const inboxPrefix = subjects.inbox("observer");
    const connection = await connect({
      servers: job.broker.url,
      inboxPrefix,
      maxReconnectAttempts: -1,
    });
    return new Observer(connection, subjects);
  }

  /** All blocks of a parameter; those of several shards are of several moments. */
  async pull(info: ParameterInfo): Promise<PulledBlock[]> {
    const places = blockPlaces(info.layout);
    return await Promise.all(places.map(({ index, shard }) => this.#block(info, index, shard)));
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  async #block(info: ParameterInfo, index: number, shard: number): Promise<PulledBlock> {
    const { name: parameter, epoch } = info;
    const subject = this.#subjects.pull(parameter, index, "observer");
    const request = encodePullRequest({ epoch, generation: 1, seq: 0, waitMs: 1_000 });
    for (const deadline = performance.now() + HANG_MS; ; ) {
      try {
        const reply = await this.#connection.request(subject, request, { timeout: 2_000 });
        const { generation, seq, version, data } = parsePullReply(decodeMessage(reply.data));
        const position = { generation, seq };
        return { parameter, index, shard, position, version, digest: digestOf(data) };
      } catch (error) {
        if (!isPassing(error) || performance.now() > deadline) throw error;
        await delay(POLL_MS);
      }
    }
  }
}

/** SHA-256 of bytes. */
export function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Whether another host may answer later. */
function isPassing(error: unknown): boolean {
  if (error instanceof PserverError) return error.retryable || error.code === "JOURNAL_REPLACED";
  return error instanceof TimeoutError || (error instanceof RequestError && error.isNoResponders());
}
