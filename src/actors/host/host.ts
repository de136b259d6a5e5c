import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { NatsConnection } from "@nats-io/transport-node";
import { JobSubjects, PAYLOAD_BYTES_MIN, PserverError } from "../../protocol/index.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";
import { openConnection } from "../../transport/connection.ts";
import { type EtcdSpace, openEtcdSpace } from "../etcd/etcd-space.ts";
import { Refusals } from "../requests/refusals.ts";
import type { Host, HostOptions } from "./host-options.ts";
import { RunningHost } from "./running-host.ts";
import { StartPatience } from "./start-retries.ts";

export type { Host, HostEvent, HostOptions, HostStatus } from "./host-options.ts";

/** How long a host may take until the job is open, and then until its share of the shards is served. */
const START_MS = 60_000;

/**
 * Joins a job, which is made if it does not exist, and serves a share of its shards. While the broker's
 * JetStream is away, as in a cluster without a leader, it tries again for 60 s.
 * @returns the host, once every shard that fell to it is served or has failed.
 * @throws BAD_CONFIG for a synchronization that is none; NO_BROKER, DENIED, NO_JETSTREAM,
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
    // Of its own, so that no lease waits behind what trainers ask.
    answers = await openConnection(options.answerConnection ?? options.connection, {
      name: `${name} answers`,
      inboxPrefix,
      drops: refusals.isUnheard,
    });
    if (options.etcd !== undefined) {
      etcd = await openEtcdSpace(options.etcd, options.job, options.connection.timeoutMs);
    }
    const patience = new StartPatience(connection, START_MS);
    const shared = { options, subjects, id, etcd, patience };
    host = await RunningHost.open({ ...shared, connection, answers, refusals });
    await host.served(START_MS);
    return host;
  } catch (error) {
    await host?.close();
    etcd?.client.close();
    await Promise.all([connection.close(), answers?.close()]);
    throw fromBrokerError(error, `starting host ${id}`);
  }
}

function checkPayload(connection: NatsConnection): void {
  const received = connection.info?.max_payload ?? 0;
  if (received >= PAYLOAD_BYTES_MIN) return;
  throw new PserverError(
    "PAYLOAD_TOO_SMALL",
    `the broker's max_payload: expected at least ${PAYLOAD_BYTES_MIN} bytes (8 MB recommended); received ${received}`,
    { expected: PAYLOAD_BYTES_MIN, received },
  );
}
