import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import {
  bucketStream,
  JETSTREAM_ERRORS,
  type JobSubjects,
  PserverError,
} from "../../protocol/index.ts";
import { jetStreamErrorCode } from "../../transport/broker-error.ts";
import { type Clock, systemClock } from "../clock.ts";
import { Rounds } from "../rounds.ts";

/** Dependencies of {@link JobWatch}. */
export interface JobWatchDeps {
  readonly connection: Pick<NatsConnection, "info">;
  readonly manager: { readonly streams: Pick<JetStreamManager["streams"], "info"> };
  readonly subjects: JobSubjects;
  /** When the job's bucket was made. */
  readonly created: string;
  readonly leaseMs: number;
  /** Called once, when it is certain that the broker does not hold the job any more. */
  readonly onGone: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Finds out whether the broker still holds the job: it may have been started again on an empty store, or on that of
 * another job. Then what a host has of the job is of no use, and what it would write could be taken for a part of a
 * job that is made anew under the same name. Looks once in a lease time, and when it is told to.
 *
 * A job that has lost only its records, or only its snapshots, is not gone: its operator may put them back.
 */
export class JobWatch {
  readonly #deps: JobWatchDeps;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  /** Since when all looks found nothing of the job. */
  #missingSinceMs: number | undefined;

  constructor(deps: JobWatchDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
    this.#rounds = new Rounds(() => this.#round(), this.#clock);
  }

  /** Looks from now on, first after a lease time. */
  start(): void {
    void this.#rounds.start(this.#deps.leaseMs);
  }

  /** Looks soon: the connection to the broker is back. */
  reconnected(): void {
    this.#missingSinceMs = undefined;
    void this.#rounds.soon();
  }

  /** Looks no more. */
  stop(): void {
    void this.#rounds.stop();
  }

  async #round(): Promise<number> {
    const { leaseMs, onGone } = this.#deps;
    const problem = await this.#look();
    if (problem !== undefined) {
      this.stop();
      onGone(problem);
    }
    return this.#missingSinceMs === undefined ? leaseMs : leaseMs / 10;
  }

  /** Why the job is gone; undefined if it is there, or that is not certain. */
  async #look(): Promise<PserverError | undefined> {
    const { subjects, created, connection, leaseMs } = this.#deps;
    const records = bucketStream(subjects.bucket());
    try {
      const found = await this.#createdOf(records);
      if (found !== undefined) {
        this.#missingSinceMs = undefined;
        return found === created
          ? undefined
          : this.#gone(`another one of this name was made at ${found}`);
      }
      if ((await this.#createdOf(subjects.snapshotStream())) !== undefined) return undefined;
    } catch {
      // A broker that does not answer says nothing about the job.
      this.#missingSinceMs = undefined;
      return undefined;
    }
    // A server of a cluster that has just started may not have read its streams yet.
    this.#missingSinceMs ??= this.#clock.now();
    const isCertain =
      connection.info?.cluster === undefined || this.#clock.now() - this.#missingSinceMs >= leaseMs;
    return isCertain ? this.#gone("its store was emptied") : undefined;
  }

  /** When a stream was made; undefined if there is none. */
  async #createdOf(stream: string): Promise<string | undefined> {
    try {
      return (await this.#deps.manager.streams.info(stream)).created;
    } catch (error) {
      if (jetStreamErrorCode(error) === JETSTREAM_ERRORS.STREAM_NOT_FOUND) return undefined;
      throw error;
    }
  }

  #gone(what: string): PserverError {
    const { subjects, created } = this.#deps;
    const text = `job ${subjects.job}, made at ${created}, is gone from the broker: ${what}`;
    return new PserverError("JOB_DAMAGED", text, { job: subjects.job, expected: created });
  }
}
