import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { PserverError } from "../../protocol/index.ts";
import { payloadBytesMaxOf } from "../../transport/payload-limit.ts";
import { type ArchiverRecord, readArchivers } from "../archivers/archiver-record.ts";
import { ControlService } from "../control/control-service.ts";
import { Saver } from "../control/saver.ts";
import { toAdvertised } from "../etcd/etcd-keys.ts";
import type { EtcdSpace } from "../etcd/etcd-space.ts";
import { InitializationKeys } from "../etcd/initialization-keys.ts";
import { Publication } from "../etcd/publication.ts";
import { leaseTimeoutMs, type OpenedJob } from "../job/open-job.ts";
import { quotasOf } from "../job/quotas.ts";
import { BrokerProbe } from "../leases/broker-probe.ts";
import { LeaseClock } from "../leases/lease-clock.ts";
import { LeaseKeeper } from "../leases/lease-keeper.ts";
import { createLifecycle, type LifecycleService } from "../lifecycle/service.ts";
import { HostMemory } from "../memory/host-memory.ts";
import type { OwnersClient } from "../requests/owners-client.ts";
import type { HostEvent } from "./host-options.ts";
import type { HostOpening } from "./host-parts.ts";
import { JobWatch } from "./job-watch.ts";
import { LossesWatch } from "./losses-watch.ts";
import { MembersWatch } from "./members-watch.ts";
import { RunningHost } from "./running-host.ts";
import { SessionsWatch } from "./sessions-watch.ts";
import { createShardClaims, hostKey } from "./shard-claims.ts";
import { WorkerPool } from "./worker-pool.ts";

/** Composes a host of its parts. Nothing runs before {@link RunningHost.start}. */
export function composeHost(
  opening: HostOpening,
  job: OpenedJob,
  owners: OwnersClient,
): RunningHost {
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
