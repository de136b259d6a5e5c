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
  toSynchronization,
} from "../../protocol/index.ts";
import { fromBrokerError, orNoJetStream } from "../../transport/broker-error.ts";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.ts";
import { openConnection } from "../../transport/connection.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { InitializationKeys, Publication } from "../job/etcd-publication.ts";
import { type EtcdSpace, openEtcdSpace, toAdvertised } from "../job/etcd-space.ts";
import { journalSettings, quotasOf, type WantedSettings } from "../job/job-settings.ts";
import { BrokerProbe, LeaseClock, LeaseKeeper } from "../job/leases.ts";
import { leaseTimeoutMs, type OpenedJob, openJob } from "../job/open-job.ts";
import { type ArchiverRecord, readArchivers } from "../journal/archivers.ts";
import { Journal } from "../journal/journal.ts";
import { storageQueries } from "../journal/streams.ts";
import { ensureTapeStream } from "../journal/tape-writer.ts";
import { createLifecycle, type LifecycleService } from "../lifecycle/service.ts";
import { Refusals } from "../owner/fair-server.ts";
import { ControlService, Saver } from "./control-service.ts";
import { HostMemory } from "./host-memory.ts";
import type { Host, HostEvent, HostOpening, HostOptions } from "./host-options.ts";
import { OwnersClient } from "./owners-client.ts";
import { RunningHost } from "./running-host.ts";
import { createShardClaims, hostKey } from "./shard-claims.ts";
import { JobWatch, LossesWatch, MembersWatch, SessionsWatch } from "./watches.ts";
import { WorkerPool } from "./worker-pool.ts";

/** Composes a host of its parts. Nothing runs before {@link RunningHost.start}. */
function composeHost(opening: HostOpening, job: OpenedJob, owners: OwnersClient): RunningHost {
  const { options, id } = opening;
  const { leases } = job;
  const { shards, leaseMs } = job.settings;
  const emit = watchEtcd(opening);
  const onError = (error: PserverError): void => emit({ type: "error", error });
  const clock = new LeaseClock(shards);
  const pool = new WorkerPool({
    onServing: (shard) => host.shardServing(shard),
    onTrouble: (type, shard, error) => host.shardTroubled(type, shard, error),
    onRecovered: (recovered) => emit({ type: "shard-recovered", ...recovered }),
    onFellBack: (fallen) => emit({ type: "fell-back", ...fallen }),
    onCrash: (error) => void host.stop(error),
  });
  // The owner tells this life of the host from an earlier one with the same id.
  const value = { owner: randomUUID(), host: id, pid: process.pid, machine: hostname() };
  const claims = createShardClaims({
    ...{ job: options.job, shards, host: id, value, leases, leaseMs, clock },
    events: {
      onClaimed: (shard) => pool.own(shard),
      onReleased: (shard) => host.releaseShard(shard),
      onError,
    },
  });
  const onLost = (error: PserverError): void => void host.reclaimLease(error);
  const keeper = new LeaseKeeper({ leases, key: hostKey(id), value, leaseMs, onLost });
  const publication = opening.etcd && hostPublication(opening, opening.etcd, job, onError);
  const lifecycle = hostLifecycle(opening, job, owners, publication, onError);
  const statuses = () => pool.statuses;
  const host: RunningHost = new RunningHost({
    ...{ opening, job, emit, clock, pool, claims, keeper, lifecycle, publication },
    control: hostControl(opening, job, owners, lifecycle, onError),
    memory: HostMemory.open({ shards, limitBytes: options.memoryLimitBytes }),
    members: new MembersWatch({ service: lifecycle, statuses, leaseMs, onError }),
    presence: new JobWatch({
      ...{ connection: opening.connection, manager: job.manager, subjects: opening.subjects },
      ...{ created: job.created, leaseMs },
      onGone: (error) => void host.jobGone(error),
    }),
    losses: new LossesWatch({
      ...{ service: lifecycle, leaseMs, onError },
      onTakenBack: (shard, taken) => emit({ type: "parameters-lost", shard, ...taken }),
    }),
    sessions: new SessionsWatch({ service: lifecycle, statuses, onError }),
  });
  return host;
}

/**
 * Reports when etcd is lost and when it is back. Returns what emits the host's other events, in which
 * errors of etcd are not repeated.
 */
function watchEtcd({ options, etcd }: HostOpening): (event: HostEvent) => void {
  const emit = options.onEvent ?? (() => undefined);
  etcd?.client.watch((error) =>
    emit(error === undefined ? { type: "etcd-back" } : { type: "etcd-lost", error }),
  );
  return (event) => {
    if (event.type !== "error" || event.error.code !== "NO_ETCD") emit(event);
  };
}

function hostLifecycle(
  { options, id, connection }: HostOpening,
  { settings, bucket, leases }: OpenedJob,
  owners: OwnersClient,
  publication: Publication | undefined,
  onError: (error: PserverError) => void,
): LifecycleService {
  const { shards, journal, leaseMs, synchronization, rules } = settings;
  const quotas = quotasOf(settings);
  return createLifecycle({
    job: { job: options.job, shards, journal, leaseMs, synchronization, rules, quotas },
    ...{ bucket, leases, owners, onError },
    hostId: id,
    maxPayloadBytes: payloadBytesMaxOf(connection),
    ...(publication && { onJobChanged: () => publication.showJob() }),
  });
}

function hostControl(
  { options, id: host }: HostOpening,
  { settings: { synchronization, shards }, leases, bucket, tapeStorage }: OpenedJob,
  owners: OwnersClient,
  service: LifecycleService,
  onError: (error: PserverError) => void,
): ControlService {
  const { job, modelDirectory: directory } = options;
  const saver = new Saver({ service, owners, directory, job, host, onError });
  const archivers = async (): Promise<ArchiverRecord[]> => {
    const found = await readArchivers(bucket);
    return found.flatMap(({ record }) => (record === undefined ? [] : [record]));
  };
  return new ControlService({
    ...{ service, synchronization, saver, owners, leases, shards, archivers, tapeStorage },
  });
}

function hostPublication(
  { options, connection }: HostOpening,
  space: EtcdSpace,
  { settings: { leaseMs }, bucket }: OpenedJob,
  onError: (error: PserverError) => void,
): Publication {
  return new Publication({
    ...{ client: space.client, keys: space.keys, job: options.job, leaseMs, onError },
    urls: toAdvertised(options.etcd?.advertise ?? options.connection.servers),
    probe: new BrokerProbe(connection, leaseTimeoutMs(leaseMs)),
    initialization: new InitializationKeys(space, bucket),
  });
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

export type { Host, HostEvent, HostOptions } from "./host-options.ts";

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
  const refusals = new Refusals();
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
    storage: storageQueries(manager, subjects),
    subjects,
    host: id,
    journalOf: (shard) => new Journal({ manager, client, subjects, settings, shard }),
  });
  return composeHost(opening, job, owners);
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
