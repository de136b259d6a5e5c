import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { defined } from "../../protocol/fields.ts";
import {
  ensureError,
  JobSubjects,
  PAYLOAD_BYTES_MIN,
  PserverError,
  type SynchronizationInput,
  toSynchronization,
} from "../../protocol/index.ts";
import { fromBrokerError, orNoJetStream } from "../../transport/broker-error.ts";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.ts";
import { type ConnectionSettings, openConnection } from "../../transport/connection.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { type EtcdSettings, type EtcdSpace, openEtcdSpace } from "../job/etcd-space.ts";
import { journalSettings, type StoredSettings, type WantedSettings } from "../job/job-settings.ts";
import { openJob } from "../job/open-job.ts";
import { OwnersClient } from "../job/owners-client.ts";
import { Journal } from "../journal/journal.ts";
import type { Continued } from "../journal/next-generation.ts";
import { ensureTapeStream } from "../journal/tape-writer.ts";
import type { TakenBack } from "../lifecycle/initialization.ts";
import { RefusalBudget } from "../owner/fair-server.ts";
import type { ShardTrouble } from "../owner/serving-shard.ts";
import { RunningHost } from "./running-host.ts";

/** Options of `startHost`; settings are for a new job, and must agree with those of an existing one. */
export interface HostOptions extends Omit<WantedSettings, "synchronization"> {
  readonly connection: ConnectionSettings;
  /**
   * For the connections that answer trainers; `connection` by default. With a user of its own that
   * may publish to inboxes only, no request can make a host write anywhere else.
   */
  readonly answerConnection?: ConnectionSettings;
  readonly job: string;
  /**
   * Whether trainers are in another account of the broker than the host. Without it requests from
   * another account are not answered, because the host cannot tell where the broker would send the
   * replies. False by default.
   */
  readonly acrossAccounts?: boolean;
  /** Unique among the hosts of the job; by default made of machine, process and a random part. */
  readonly id?: string;
  /** Worker threads; by default one less than the processors, at least one. */
  readonly workers?: number;
  /** How the trainers of the job keep step; not at all by default. */
  readonly synchronization?: SynchronizationInput;
  /** Bytes of journal that each shard retains for replays; 1 GiB by default, 64 MiB in memory. */
  readonly retainBytes?: number;
  /** Bytes of journal after which a shard is snapshotted; 256 MiB by default. */
  readonly snapshotBytes?: number;
  /** The most memory that the values of its shards may take; what the system has free by default. */
  readonly memoryLimitBytes?: number;
  /** The directory in which `save` may write; without it this host saves nothing. */
  readonly modelDirectory?: string;
  /** Where the job's leases are kept and its hosts are published; without it, leases are in JetStream KV. */
  readonly etcd?: EtcdSettings;
  readonly onEvent?: (event: HostEvent) => void;
}

/** Events of a host for its operator. */
export type HostEvent =
  | { readonly type: "serving" | "released"; readonly shard: number }
  | {
      /** `shard-failed` for `failed`; the others as {@link ShardTrouble} says. */
      readonly type: "shard-failed" | Exclude<ShardTrouble, "failed">;
      readonly shard: number;
      readonly error: PserverError;
    }
  | ({ readonly type: "shard-recovered" } & Continued)
  /**
   * A shard has lost these parameters, whose journal was in memory: they, or the whole job, are to be initialized
   * anew.
   */
  | ({ readonly type: "parameters-lost"; readonly shard: number } & TakenBack)
  /** A shard goes on from its last snapshot, because its journal in memory is gone. */
  | ({ readonly type: "fell-back" } & Continued)
  /** The host ends, and still stores these shards, whose journals are in memory; told every few seconds. */
  | { readonly type: "saving"; readonly shards: readonly number[] }
  /** The host ends without having stored all of a shard whose journal is in memory. */
  | { readonly type: "unsaved"; readonly shard: number; readonly error: PserverError }
  | { readonly type: "disconnected" | "reconnected" | "etcd-back" }
  /** `etcd-lost`: etcd answers no call until `etcd-back`; calls that fail meanwhile are not reported. */
  | { readonly type: "error" | "etcd-lost"; readonly error: PserverError };

/** A running host. */
export interface Host {
  readonly id: string;
  readonly settings: StoredSettings;
  /** Settles when the host has stopped: with the reason, or undefined after `close`. */
  readonly stopped: Promise<PserverError | undefined>;
  /** Stores shards whose journals are in memory, releases all and stops; no acknowledged update is lost. */
  close(): Promise<void>;
}

/** What a host is opened with. */
export interface HostOpening {
  readonly options: HostOptions;
  readonly subjects: JobSubjects;
  readonly id: string;
  readonly connection: NatsConnection;
  /** Where requests of trainers arrive and are answered. */
  readonly answers: NatsConnection;
  /** Refusals sent through `answers`. */
  readonly refusals: RefusalBudget;
  readonly etcd: EtcdSpace | undefined;
  readonly retries: StartRetries;
}

/** First and longest pause between two attempts. */
const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 1_000;

/**
 * Repeats the work of a host's start until a deadline that all of it shares, where the broker cannot do it
 * for now, such as a cluster without a leader.
 */
export class StartRetries {
  readonly #connection: Pick<NatsConnection, "info">;
  readonly #endsAtMs: number;

  constructor(connection: Pick<NatsConnection, "info">, timeoutMs: number) {
    this.#connection = connection;
    this.#endsAtMs = performance.now() + timeoutMs;
  }

  /**
   * Returns the result of `work`, which is repeated while its error is retryable and there is time.
   * @throws its last error; NO_JETSTREAM at once if the broker's JetStream does not answer because
   * it has none.
   */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let retryMs = RETRY_MS_MIN; ; retryMs = Math.min(2 * retryMs, RETRY_MS_MAX)) {
      try {
        return await work();
      } catch (caught) {
        const error = orNoJetStream(fromBrokerError(caught, "starting"), this.#connection);
        if (!error.retryable || performance.now() + retryMs >= this.#endsAtMs) throw error;
        await delay(retryMs);
      }
    }
  }
}

/** How long a host may take to open the job, and then until its share of the shards is served. */
const START_MS = 60_000;

/**
 * Joins a job, which is made if it does not exist, and serves a share of its shards. While the broker's
 * JetStream is unavailable, as in a cluster without a leader, it retries for 60 s.
 * @returns the host, once every shard that fell to it is served or has failed.
 * @throws BAD_CONFIG for an invalid synchronization; NO_BROKER, DENIED, NO_JETSTREAM,
 * JETSTREAM_UNAVAILABLE, PAYLOAD_TOO_SMALL, JOB_EXISTS, NO_SPACE, TIMEOUT; with `etcd` also BAD_VALUE and NO_ETCD.
 */
export async function startHost(options: HostOptions): Promise<Host> {
  const subjects = new JobSubjects(options.job, options.acrossAccounts);
  const id = options.id ?? `${hostname().slice(0, 24)}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const inboxPrefix = subjects.hostInbox(id);
  const name = `pserver ${options.job} host ${id}`;
  const connection = await openConnection(options.connection, {
    name: `${name} control`,
    inboxPrefix,
  });
  let answers: NatsConnection | undefined;
  const refusals = new RefusalBudget();
  let etcd: EtcdSpace | undefined;
  let host: RunningHost | undefined;
  try {
    checkPayload(connection);
    // A connection of its own, so that no lease waits behind requests of trainers.
    answers = await openConnection(options.answerConnection ?? options.connection, {
      name: `${name} answers`,
      inboxPrefix,
      drops: refusals.isUnheard,
    });
    if (options.etcd !== undefined) {
      etcd = await openEtcdSpace(options.etcd, options.job, options.connection.timeoutMs);
    }
    const retries = new StartRetries(connection, START_MS);
    host = await openHost({ options, subjects, id, connection, answers, refusals, etcd, retries });
    await host.start();
    await host.served(START_MS);
    return host;
  } catch (error) {
    await host?.close();
    etcd?.client.close();
    await Promise.all([connection.close(), answers?.close()]);
    throw fromBrokerError(error, `starting host ${id}`);
  }
}

/** Opens the job and composes the host; nothing runs yet. */
async function openHost(opening: HostOpening): Promise<RunningHost> {
  const { options, subjects, id, connection, etcd, retries } = opening;
  const client = openJetStream(connection);
  const manager = await client.jetstreamManager(false);
  const wanted = wantedSettings(options);
  const job = await retries.run(() => openJob({ connection, manager, subjects, etcd, wanted }));
  if (job.settings.tape) await makeTape(opening, manager, job.settings.replicas);
  const settings = journalSettings(job.settings);
  const owners = new OwnersClient({
    connection,
    manager,
    subjects,
    host: id,
    journalOf: (shard) => new Journal({ manager, client, subjects, settings, shard }),
  });
  return new RunningHost(opening, job, owners);
}

/** Makes the stream of the job's tape. A tape only describes: if it cannot be made, its lines are left out. */
async function makeTape(
  { options, subjects, retries }: HostOpening,
  manager: JetStreamManager,
  replicas: number,
): Promise<void> {
  try {
    await retries.run(() => ensureTapeStream(manager, subjects, replicas));
  } catch (error) {
    options.onEvent?.({ type: "error", error: ensureError(error) });
  }
}

function wantedSettings(options: HostOptions): WantedSettings {
  const { shards, journal, journalBytesMax, leaseMs, replicas, tape } = options;
  const { parametersMax, heldBytesMax, trainerParametersMax, trainerHeldBytesMax } = options;
  return defined({
    ...{ shards, journal, journalBytesMax, leaseMs, replicas, tape },
    synchronization: options.synchronization && toSynchronization(options.synchronization),
    ...{ parametersMax, heldBytesMax, trainerParametersMax, trainerHeldBytesMax },
  });
}

function checkPayload(connection: NatsConnection): void {
  const received = payloadBytesMaxOf(connection);
  if (received >= PAYLOAD_BYTES_MIN) return;
  throw new PserverError(
    "PAYLOAD_TOO_SMALL",
    `the broker's max_payload: expected at least ${PAYLOAD_BYTES_MIN} bytes (8 MB recommended); received ${received}`,
    { expected: PAYLOAD_BYTES_MIN, received },
  );
}
