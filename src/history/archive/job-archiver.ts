import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { NatsConnection } from "@nats-io/transport-node";
import { openStoredJob } from "../../actors/job/stored-job.ts";
import { ensureError, JobSubjects, type PserverError } from "../../protocol/index.ts";
import { orNoJetStream } from "../../transport/broker-error.ts";
import { type ConnectionSettings, openConnection } from "../../transport/connection.ts";
import { BrokerHistory } from "../broker/broker-history.ts";
import { Archiver } from "./archiver.ts";
import { ArchiverRegistration } from "./archiver-registration.ts";
import type { ShardProgress } from "./shard-archiver.ts";

/** How to archive a job from the broker. */
export interface JobArchiverOptions {
  readonly connection: ConnectionSettings;
  readonly job: string;
  /** Directory of the archive. */
  readonly directory: string;
  /** Called before the directory is used: keeps other archivers off it. */
  readonly lock: () => Promise<void>;
  /** How long hosts keep what is not copied after they last heard of this archiver. */
  readonly graceMs: number;
  /** Called for a part that is damaged, in the archive or where it is kept; the rest is copied. */
  readonly onDamaged: (error: PserverError) => void;
  /** Called when the registration could not be renewed; it is repeated. */
  readonly onUnregistered: (error: PserverError) => void;
}

/** Archives a job from the broker, registered with its hosts. */
export class JobArchiver {
  readonly #connection: NatsConnection;
  readonly #archiver: Archiver;
  readonly #registration: ArchiverRegistration;

  private constructor(
    connection: NatsConnection,
    archiver: Archiver,
    registration: ArchiverRegistration,
  ) {
    this.#connection = connection;
    this.#archiver = archiver;
    this.#registration = registration;
  }

  /**
   * Connects as a host does, without joining the job, opens the archive and registers; needs no host.
   * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if there is no such
   * job; BAD_ARCHIVE if the directory holds the archive of another; BAD_VERSION, DISK_FULL, IO.
   */
  static async open(options: JobArchiverOptions): Promise<JobArchiver> {
    const { job, directory, graceMs, onDamaged, onUnregistered: onFailure } = options;
    const id = `archive-${hostname().slice(0, 24)}-${process.pid}-${randomUUID().slice(0, 8)}`;
    const inboxPrefix = new JobSubjects(job).hostInbox(id);
    const role = { name: `pserver ${job} archive`, inboxPrefix };
    const connection = await openConnection(options.connection, role);
    try {
      const stored = await openStoredJob(connection, job);
      await options.lock();
      const source = new BrokerHistory(connection, inboxPrefix, stored);
      const archiver = await Archiver.open({ source, directory, onDamaged });
      const registration = new ArchiverRegistration({
        ...{ records: stored.records, archive: archiver.facts.archive, graceMs, onFailure },
        archived: () => archiver.archived,
      });
      await registration.start();
      return new JobArchiver(connection, archiver, registration);
    } catch (error) {
      await connection.close();
      throw orNoJetStream(ensureError(error), connection);
    }
  }

  /** How far the shards are, by their numbers. */
  get progress(): ShardProgress[] {
    return this.#archiver.progress;
  }

  /** Copies what is there now. @throws as {@link Archiver.copy}. */
  async copy(signal: AbortSignal): Promise<void> {
    await this.#archiver.copy(signal);
  }

  /**
   * Completes the files, takes the registration back and closes the connection.
   * @throws DISK_FULL, IO; NO_BROKER and the like if the registration cannot be taken back.
   */
  async end(): Promise<void> {
    try {
      await this.#archiver.close();
      await this.#registration.end();
    } finally {
      await this.abandon();
    }
  }

  /** Closes the connection and leaves the rest as it is: hosts wait for the grace time. */
  async abandon(): Promise<void> {
    this.#registration.stop();
    await this.#connection.close();
  }
}
