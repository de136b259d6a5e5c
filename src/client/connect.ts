import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import {
  AuthorizationError,
  type NatsConnection,
  type NodeConnectionOptions,
  TimeoutError,
  UserAuthenticationExpiredError,
} from "@nats-io/transport-node";
import { ensureError, PserverError } from "../protocol/errors.ts";
import { ID_BYTES_MAX } from "../protocol/limits.ts";
import { JOB_DEFAULT } from "../protocol/names.ts";
import { JobSubjects } from "../protocol/subjects.ts";
import { BufferPool } from "../transport/buffers.ts";
import { connectForBulk } from "../transport/bulk-transport.ts";
import { showUrl } from "../transport/connection.ts";
import { Backoff, type CallOptions, Calls, Deadline } from "./calls/calls.ts";

import { Client, ClientParts } from "./client.ts";
import { STATS_VARIABLE } from "./client-stats.ts";
import type { ShardFallback } from "./io/fallbacks.ts";
import {
  type ConnectionOverrides,
  type Environment,
  nonEmpty,
  resolveConnection,
} from "./wire/broker-settings.ts";
import { NatsWire } from "./wire/wire.ts";

/** The connections of a client: one for records and values, and one for what must not wait behind them. */
interface Connections {
  readonly values: NatsConnection;
  readonly control: NatsConnection;
}

/** Joins a job and returns the client, which owns the connections from now on. */
async function joinJob(options: {
  readonly connections: Connections;
  readonly job: string;
  readonly trainer: string;
  readonly inbox: string;
  readonly deadline: Deadline;
  readonly onFallback?: ((fallback: ShardFallback) => void) | undefined;
  readonly statsDirectory: string | undefined;
}): Promise<Client> {
  const { connections, job, trainer, inbox, deadline, onFallback, statsDirectory } = options;
  const subjects = new JobSubjects(job);
  const calls = new Calls();
  const fail = (error: PserverError): void => {
    calls.fail(error);
    parts.stop();
  };
  const { values, control } = connections;
  const wires = {
    wire: NatsWire.open(values, processInbox(inbox), fail),
    control: NatsWire.open(control, processInbox(inbox), fail),
  };
  const parts = new ClientParts({ ...wires, subjects, trainer, fail, onFallback });
  for (const connection of [values, control]) {
    connection.closed().then(
      (error) => fail(connectionClosed(error)),
      (error: unknown) => fail(ensureError(error)),
    );
  }
  await parts.session.join(deadline);
  return new Client({
    ...{ connections: [values, control], wires: Object.values(wires), statsDirectory },
    ...{ subjects, trainer, calls, parts },
  });
}

/**
 * Makes the inbox of one connection of this process: a second process of the trainer must not receive its messages, nor
 * one connection those of the other.
 */
function processInbox(inbox: string): string {
  return `${inbox}.${randomUUID().slice(0, 8)}`;
}

function connectionClosed(cause: unknown): PserverError {
  if (!(cause instanceof Error)) return new PserverError("CLOSED", "the client is closed");
  return new PserverError(
    "NO_BROKER",
    `the connection to the broker is lost for good: ${cause.message}`,
    {},
    { cause },
  );
}

/** Options of `connect`; connection settings that are left out come from the environment. */
export interface ConnectOptions extends ConnectionOverrides, CallOptions {
  /** Name of the job: 1 to 40 of `A-Z a-z 0-9 -`. By default `PSERVER_JOB`, else `default`. */
  readonly job?: string;
  /**
   * Id of this trainer in the job, the same after a restart to take over what it was doing. Two
   * processes with one id end each other's sessions. By default `PSERVER_TRAINER`, else one that is used
   * once: the host name, the process id and a random part.
   */
  readonly trainer?: string;
  /**
   * Called once for each journal of a shard that was replaced with acknowledged updates undone, as after
   * `pserver recover`. Calls under way fail as for a lost journal; later calls go on from the state that is
   * left. Without this option the process emits a warning.
   */
  readonly onFallback?: (fallback: ShardFallback) => void;
}

/** Time to reach the broker and a host. */
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Connects to the broker, by two connections, and joins a job as a trainer. Tries again until `timeoutMs` (10 s) is
 * over, so that broker, host and trainers can be started in any order. Settings that are left out come
 * from `environment`; so a trainer that the launcher has started joins its job without any.
 *
 * @throws NO_BROKER, naming the address, if the broker does not answer; DENIED if it refuses the
 * credentials; NO_TLS if it offers no TLS, or none to trust, where `tls://` asks for it; NO_HOST if no host of the job answers; BAD_NAME for a wrong job or trainer.
 *
 * @example
 * const ps = await connect({ url: "nats://127.0.0.1:4222", job: "mnist" });
 * if (await ps.beginInit()) {
 *   await ps.initParam("w", { dtype: "float32", shape: [10, 784], data }, { learningRate: 0.1 });
 *   await ps.finishInit();
 * }
 * await ps.sendGrads({ w: gradient });
 * const [w] = await ps.getParams(["w"]);
 */
export async function connect(
  options: ConnectOptions = {},
  environment: Environment = process.env,
): Promise<Client> {
  const {
    job = nonEmpty(environment["PSERVER_JOB"]) ?? JOB_DEFAULT,
    trainer = nonEmpty(environment["PSERVER_TRAINER"]) ?? uniqueTrainer(),
    onFallback,
  } = options;
  const inbox = new JobSubjects(job).inbox(trainer);
  const deadline = Deadline.start("connect", options, CONNECT_TIMEOUT_MS);
  try {
    const name = `pserver ${job} ${trainer}`;
    const settings = resolveConnection({ ...options, name, inboxPrefix: inbox }, environment);
    const values = await connectBroker(settings, deadline);
    const opened = [values];
    try {
      const control = await connectBroker({ ...settings, name: `${name} control` }, deadline);
      opened.push(control);
      const connections = { values, control };
      const statsDirectory = nonEmpty(environment[STATS_VARIABLE]);
      const joining = { connections, job, trainer, inbox, deadline, onFallback, statsDirectory };
      return await joinJob(joining);
    } catch (error) {
      for (const connection of opened) await connection.close();
      throw error;
    }
  } finally {
    deadline.dispose();
  }
}

/**
 * Connects to the broker. Retries until the deadline, unless the credentials are refused.
 * @internal
 */
export async function connectBroker(
  settings: NodeConnectionOptions,
  deadline: Deadline,
): Promise<NatsConnection> {
  const backoff = new Backoff();
  while (true) {
    try {
      return await connectOnce(settings, deadline);
    } catch (caught) {
      const delayMs = backoff.nextMs();
      if (caught instanceof PserverError) throw caught;
      if (isAuthError(caught)) throw refused(settings, caught);
      if (!deadline.allows(delayMs)) throw noBroker(settings, await reasonOf(caught, deadline));
      await deadline.sleep(delayMs);
    }
  }
}

/**
 * Returns the error to report. If an attempt that had all of the call's remaining time timed out, that is the
 * end of the call.
 */
async function reasonOf(caught: unknown, deadline: Deadline): Promise<unknown> {
  if (!(caught instanceof TimeoutError)) return caught;
  const rest = deadline.sleep(deadline.remainingMs + 1);
  return await rest.then(
    () => caught,
    (end: unknown) => end,
  );
}

/** Connects once. A connection that comes too late is closed. */
async function connectOnce(
  settings: NodeConnectionOptions,
  deadline: Deadline,
): Promise<NatsConnection> {
  const timeout = Math.max(
    1,
    Math.min(settings.timeout ?? Number.POSITIVE_INFINITY, deadline.remainingMs),
  );
  const lending = { prefix: `${settings.inboxPrefix}.`, pool: new BufferPool() };
  const attempt = connectForBulk({ ...settings, timeout, lending });
  try {
    return await deadline.race(attempt);
  } catch (caught) {
    if (caught !== deadline.ended) throw caught;
    attempt.then(
      (late) => late.close(),
      // The attempt has failed as well, so there is nothing to close.
      () => {},
    );
    const error = ensureError(caught);
    throw error.code === "TIMEOUT" ? noBroker(settings, error) : error;
  }
}

function uniqueTrainer(): string {
  const random = randomUUID().slice(0, 8);
  const tail = `-${process.pid}-${random}`;
  const host = hostname().replaceAll(/[^A-Za-z0-9-]/g, "-");
  return `${host.slice(0, ID_BYTES_MAX - tail.length)}${tail}`;
}

function isAuthError(error: unknown): boolean {
  return (
    error instanceof AuthorizationError ||
    error instanceof UserAuthenticationExpiredError ||
    (error instanceof Error && isAuthError(error.cause))
  );
}

function addresses({ servers = [] }: NodeConnectionOptions): string[] {
  return (typeof servers === "string" ? [servers] : servers).map(showUrl);
}

function refused(settings: NodeConnectionOptions, cause: unknown): PserverError {
  return new PserverError(
    "DENIED",
    `the broker at ${addresses(settings).join(", ")} refuses the credentials: ${ensureError(cause).message}`,
    { servers: addresses(settings) },
    { cause },
  );
}

function noBroker(settings: NodeConnectionOptions, cause: unknown): PserverError {
  return new PserverError(
    "NO_BROKER",
    `no broker answers at ${addresses(settings).join(", ")} (${ensureError(cause).message}): start nats-server with JetStream there, or give its address as url or in PSERVER_URL`,
    { servers: addresses(settings) },
    { cause },
  );
}
