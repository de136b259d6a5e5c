import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { NatsConnection } from "@nats-io/transport-node";
import { storageQueries } from "../../actors/jetstream/storage-queries.ts";
import { openStoredJob, type StoredJob } from "../../actors/job/stored-job.ts";
import { OwnersClient } from "../../actors/requests/owners-client.ts";
import { SnapshotReader } from "../../actors/snapshot/snapshot-reader.ts";
import {
  ensureError,
  type Fields,
  JobSubjects,
  type Message,
  type OwnerVerb,
  type Synchronization,
} from "../../protocol/index.ts";
import { orNoJetStream } from "../../transport/broker-error.ts";
import { type ConnectionSettings, openConnection } from "../../transport/connection.ts";
import { checkShard } from "../check-shard.ts";
import type { HistorySource } from "../source.ts";
import { BrokerShard } from "./broker-shard.ts";

/** Grace time of a request to the owner of a shard. */
const OWNER_MS = 5_000;

/** The history that the broker still holds: journals, abandoned ones too, and snapshots. */
export class BrokerHistory implements HistorySource {
  readonly name = "broker";
  readonly #connection: NatsConnection;
  readonly #inboxPrefix: string;
  readonly #job: StoredJob;
  readonly #owners: OwnersClient;

  constructor(connection: NatsConnection, host: string, job: StoredJob) {
    const { subjects, manager, journalOf } = job;
    const storage = storageQueries(manager, subjects);
    this.#connection = connection;
    this.#inboxPrefix = subjects.hostInbox(host);
    this.#job = job;
    this.#owners = new OwnersClient({ connection, subjects, host, storage, journalOf });
  }

  /**
   * Connects as a host does, without joining the job; works without any host. The caller closes it.
   * @throws NO_BROKER, DENIED, NO_JETSTREAM, JETSTREAM_UNAVAILABLE, TIMEOUT; BAD_NAME if the broker holds
   * no such job.
   */
  static async open(reach: ConnectionSettings, job: string): Promise<BrokerHistory> {
    const host = `history-${hostname().slice(0, 24)}-${process.pid}-${randomUUID().slice(0, 8)}`;
    const inboxPrefix = new JobSubjects(job).hostInbox(host);
    const connection = await openConnection(reach, { name: `pserver ${job} history`, inboxPrefix });
    try {
      return new BrokerHistory(connection, host, await openStoredJob(connection, job));
    } catch (error) {
      await connection.close();
      throw orNoJetStream(ensureError(error), connection);
    }
  }

  get job(): string {
    return this.#job.subjects.job;
  }

  get shards(): number {
    return this.#job.settings.shards;
  }

  get synchronization(): Synchronization {
    return this.#job.settings.synchronization;
  }

  shard(shard: number): BrokerShard {
    checkShard(this, shard);
    const { manager, subjects, records, journalOf } = this.#job;
    return new BrokerShard({
      ...{
        connection: this.#connection,
        inboxPrefix: this.#inboxPrefix,
        manager,
        subjects,
        records,
      },
      journal: journalOf(shard),
      snapshots: new SnapshotReader({ manager, subjects, shard }),
    });
  }

  askOwner(shard: number, verb: OwnerVerb, fields: Fields): Promise<Message> {
    return this.#owners.ask(shard, verb, fields, OWNER_MS);
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}
