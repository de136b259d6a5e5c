import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { JETSTREAM_ERRORS, type JobSubjects } from "../../protocol/index.ts";
import {
  fromStoreError,
  isWrongSequence,
  jetStreamErrorCode,
} from "../../transport/broker-error.ts";
import { readable } from "../fold/read-record.ts";
import { brokerCall } from "../jetstream/broker-call.ts";
import { ensureFileStream } from "../jetstream/streams.ts";
import { type TapeSpan, tapeSpan } from "./tape-decoder.ts";

/** Time limit for storing one message. */
const STORE_TIMEOUT_MS = 10_000;

/** Dependencies of {@link TapeStore}. */
export interface TapeStoreDeps {
  readonly client: Pick<JetStreamClient, "publish">;
  readonly manager: JetStreamManager;
  readonly subjects: JobSubjects;
  readonly shard: number;
}

/** The last message of a shard's tape: its sequence in the stream, and what it covers. */
export interface TapeEnd extends TapeSpan {
  readonly streamSeq: number;
}

/** One shard's part of the tape of a job, for its owner. */
export class TapeStore {
  readonly #deps: TapeStoreDeps;

  constructor(deps: TapeStoreDeps) {
    this.#deps = deps;
  }

  /**
   * The last message; undefined if there is none. One that cannot be read covers nothing: what it had lines of is
   * written again. @throws TIMEOUT, ….
   */
  async last(): Promise<TapeEnd | undefined> {
    const { manager, subjects, shard } = this.#deps;
    const stream = subjects.tapeStream();
    return await brokerCall(`reading the tape of shard ${shard}`, { shard }, async () => {
      try {
        const last = await manager.streams.getMessage(stream, {
          last_by_subj: subjects.tape(shard),
        });
        if (last === null) return undefined;
        const span = readable(() => tapeSpan(last.data)) ?? { generation: 0, from: 0, to: 0 };
        return { streamSeq: last.seq, ...span };
      } catch (error) {
        if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.MESSAGE_NOT_FOUND) return undefined;
        throw error;
      }
    });
  }

  /**
   * Appends a message after the one with sequence `after` in the stream (0: the first of the shard).
   * @returns its sequence; undefined if the last message is another one.
   * @throws NO_SPACE, TIMEOUT, … if it was not stored, or nobody knows.
   */
  async append(bytes: Uint8Array, after: number): Promise<number | undefined> {
    const { client, subjects, shard } = this.#deps;
    try {
      const ack = await client.publish(subjects.tape(shard), bytes, {
        timeout: STORE_TIMEOUT_MS,
        expect: { lastSubjectSequence: after },
      });
      return ack.seq;
    } catch (error) {
      if (isWrongSequence(error)) return undefined;
      throw fromStoreError(error, `writing the tape of shard ${shard}`, { shard });
    }
  }
}

/** What a job's tape takes in the broker. */
export interface TapeStorage {
  readonly messages: number;
  readonly bytes: number;
}

/** What the tape of a job takes in the broker. @throws TIMEOUT, JETSTREAM_UNAVAILABLE and the like. */
export async function readTapeStorage(
  manager: JetStreamManager,
  subjects: JobSubjects,
): Promise<TapeStorage> {
  const stream = subjects.tapeStream();
  return await brokerCall(`looking at the tape of job ${subjects.job}`, { stream }, async () => {
    const { messages, bytes } = (await manager.streams.info(stream)).state;
    return { messages, bytes };
  });
}

/** Creates the stream of a job's tape unless it exists. Nothing is ever removed from it. */
export async function ensureTapeStream(
  manager: JetStreamManager,
  subjects: JobSubjects,
  replicas: number,
): Promise<void> {
  const name = subjects.tapeStream();
  const config = { name, subjects: [subjects.allTapes()], num_replicas: replicas };
  await brokerCall(`creating the tape of job ${subjects.job}`, {}, () =>
    ensureFileStream(manager, { ...config, deny_delete: true, deny_purge: true }),
  );
}
