import { hostname } from "node:os";
import type { NatsConnection } from "@nats-io/transport-node";
import { connectBroker } from "../../client/connect.ts";
import { Deadline } from "../../client/deadline.ts";
import { resolveConnection, resolveSettings } from "../../client/settings.ts";
import { ensureError } from "../../protocol/errors.ts";
import { ID_BYTES_MAX } from "../../protocol/limits.ts";
import { JobSubjects } from "../../protocol/subjects.ts";
import { orNoJetStream } from "../../transport/broker-error.ts";
import type { CliContext } from "../context.ts";
import { type JobFlags, toOverrides } from "../options/connection-options.ts";

/**
 * Time to reach the broker where NATS_TIMEOUT asks for no more: a command that may take long must not
 * wait long for that.
 */
const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Runs `use` with a connection as hosts of the job have one, for the JetStream API.
 * @throws NO_BROKER or DENIED if the broker cannot be used, NO_JETSTREAM if it has none; what `use` throws.
 */
export async function withStore<T>(
  context: CliContext,
  flags: JobFlags,
  use: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const name = commandId();
  const inboxPrefix = new JobSubjects(flags.job).hostInbox(name);
  return await withBroker(context, flags, { name, inboxPrefix }, async (connection) => {
    try {
      return await use(connection);
    } catch (error) {
      throw orNoJetStream(ensureError(error), connection);
    }
  });
}

/**
 * Runs `use` with a connection of its own.
 * @throws NO_BROKER or DENIED if the broker cannot be used; what `use` throws.
 */
export async function withBroker<T>(
  context: CliContext,
  flags: JobFlags,
  { name, inboxPrefix }: { readonly name: string; readonly inboxPrefix: string },
  use: (connection: NatsConnection) => Promise<T>,
): Promise<T> {
  const settings = resolveConnection(
    { name: `pserver ${flags.job} ${name}`, inboxPrefix, ...toOverrides(flags) },
    context.environment,
  );
  const { signal } = context;
  const timeoutMs = connectTimeoutMs(context, flags);
  const deadline = new Deadline("connect", { timeoutMs, signal });
  const connection = await connectBroker(settings, deadline).finally(() => deadline.dispose());
  try {
    return await use(connection);
  } finally {
    await connection.close();
  }
}

/** How long a command waits for the broker. */
export function connectTimeoutMs({ environment }: CliContext, flags: JobFlags): number {
  const { timeoutMs } = resolveSettings(toOverrides(flags), environment);
  return Math.min(flags.timeout, Math.max(CONNECT_TIMEOUT_MS, timeoutMs));
}

/** An id that no other process of this machine has now. */
export function commandId(): string {
  const tail = `-${process.pid}`;
  const host = hostname().replaceAll(/[^A-Za-z0-9-]/g, "-");
  return `${`cli-${host}`.slice(0, ID_BYTES_MAX - tail.length)}${tail}`;
}
