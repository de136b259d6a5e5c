import { randomUUID } from "node:crypto";
import type { NatsConnection } from "@nats-io/transport-node";
import { JobSubjects } from "../../protocol/subjects.ts";
import { Calls } from "../calls/calls.ts";
import { Deadline } from "../timing/deadline.ts";
import type { Environment } from "../wire/broker-settings.ts";
import { connectBroker } from "../wire/connect.ts";
import { Requests } from "../wire/requests.ts";
import { type ConnectionOverrides, resolveConnection } from "../wire/settings.ts";
import { NatsWire } from "../wire/wire.ts";
import { JobAdmin } from "./job-admin.ts";

/** Where to connect for the administration of a job. */
export interface AdminConnectionOptions {
  readonly job: string;
  /** Settings not given come from the environment. */
  readonly broker: ConnectionOverrides;
  readonly environment: Environment;
  /** Time to reach the broker. */
  readonly connectTimeoutMs: number;
  readonly signal: AbortSignal;
}

/** How to ask the hosts of a job. */
export interface AdminOptions extends AdminConnectionOptions {
  /** The id to ask under; permissions of the broker may be bound to it. */
  readonly trainer: string;
  /** Time for each call. */
  readonly timeoutMs: number;
}

/**
 * Connects to the broker for questions to the hosts of a job, without joining it. The caller closes
 * the admin.
 * @throws NO_BROKER or DENIED if the broker cannot be used; ABORTED.
 */
export async function openAdmin(options: AdminOptions): Promise<JobAdmin> {
  const { job, trainer, timeoutMs, signal } = options;
  const subjects = new JobSubjects(job);
  const connection = await openAs(options, trainer, subjects.inbox(trainer));
  const calls = new Calls();
  const inbox = `${subjects.inbox(trainer)}.${randomUUID()}`;
  const wire = NatsWire.open(connection, inbox, (error) => calls.fail(error));
  const callOptions = { timeoutMs, signal };
  const requests = Requests.open(wire);
  return new JobAdmin({ connection, requests, calls, subjects, trainer, callOptions });
}

/**
 * A connection as hosts of the job have one, for the JetStream API: streams, records and their removal.
 * The caller closes it.
 * @param name appears in the inbox and in the broker's list of connections.
 * @throws as {@link openAdmin}.
 */
export function openStoreConnection(
  options: AdminConnectionOptions,
  name: string,
): Promise<NatsConnection> {
  return openAs(options, name, new JobSubjects(options.job).hostInbox(name));
}

async function openAs(
  { job, broker, environment, connectTimeoutMs, signal }: AdminConnectionOptions,
  name: string,
  inboxPrefix: string,
): Promise<NatsConnection> {
  const role = { name: `pserver ${job} ${name}`, inboxPrefix };
  const settings = resolveConnection({ ...role, ...broker }, environment);
  const deadline = Deadline.start("connect", { timeoutMs: connectTimeoutMs, signal });
  return await connectBroker(settings, deadline).finally(() => deadline.dispose());
}
