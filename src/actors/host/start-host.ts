import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { JetStreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { defined } from "../../protocol/fields.ts";
import {
  ensureError,
  JobSubjects,
  PAYLOAD_BYTES_MIN,
  PserverError,
  toGuard,
  toSynchronization,
} from "../../protocol/index.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";
import { payloadBytesMaxOf } from "../../transport/bulk-transport.ts";
import { openConnection } from "../../transport/connection.ts";
import { openJetStream } from "../../transport/jetstream.ts";
import { type EtcdSpace, openEtcdSpace } from "../job/etcd-space.ts";
import { journalSettings, type StoredSettings, type WantedSettings } from "../job/job-settings.ts";
import { openJob } from "../job/open-job.ts";
import { OwnersClient } from "../job/owners-client.ts";
import { Journal } from "../journal/journal.ts";
import { ensureTapeStream } from "../journal/tape/tape-store.ts";
import { RefusalBudget } from "../owner/fair-server.ts";
import {
  type Host,
  type HostOpening,
  type HostOptions,
  RunningHost,
  StartRetries,
} from "./host.ts";

/** How long a host may take to open the job, and then be without progress until its shards are served. */
const START_MS = 60_000;

/**
 * Joins a job, which is made if it does not exist, and serves a share of its shards. While the broker's
 * JetStream is unavailable, as in a cluster without a leader, it retries for 60 s. Loading and folding the shards takes
 * as long as it makes progress.
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
      drops: refusals.isDropped,
    });
    if (options.etcd !== undefined) {
      etcd = await openEtcdSpace(options.etcd, options.job, options.connection.timeoutMs);
    }
    const retries = new StartRetries(connection, START_MS);
    host = await openHost({ options, subjects, id, connection, answers, refusals, etcd, retries });
    await host.start();
    await host.untilServed(START_MS);
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
  if (job.settings.tape) await makeTape(opening, manager, job.settings);
  const settings = journalSettings(job.settings);
  const owners = new OwnersClient({
    connection,
    manager,
    subjects,
    settings: job.settings,
    host: id,
    journalOf: (shard) => new Journal({ manager, client, subjects, settings, shard }),
  });
  return new RunningHost(opening, job, owners);
}

/** Makes the stream of the job's tape. A tape only describes: if it cannot be made, its lines are left out. */
async function makeTape(
  { options, subjects, retries }: HostOpening,
  manager: JetStreamManager,
  { replicas, tapeBytesMax: bytesMax }: StoredSettings,
): Promise<void> {
  try {
    await retries.run(() => ensureTapeStream(manager, subjects, { replicas, bytesMax }));
  } catch (error) {
    options.onEvent?.({ type: "error", error: ensureError(error) });
  }
}

function wantedSettings(options: HostOptions): WantedSettings {
  const { shards, journal, journalBytesMax, leaseMs, replicas, tape, tapeBytesMax } = options;
  const { parametersMax, heldBytesMax, trainerParametersMax, trainerHeldBytesMax } = options;
  return defined({
    ...{ shards, journal, journalBytesMax, leaseMs, replicas, tape, tapeBytesMax },
    synchronization: options.synchronization && toSynchronization(options.synchronization),
    guard: options.guard && toGuard(options.guard, "guard"),
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
