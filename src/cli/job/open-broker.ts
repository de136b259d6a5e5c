import { hostname } from "node:os";
import type { NatsConnection } from "@nats-io/transport-node";
import { type AdminConnectionOptions, openStoreConnection } from "../../client/admin/open-admin.ts";
import { resolveSettings } from "../../client/wire/settings.ts";
import { ensureError } from "../../protocol/errors.ts";
import { ID_BYTES_MAX } from "../../protocol/limits.ts";
import { orNoJetStream } from "../../transport/broker-error.ts";
import type { CliContext } from "../context.ts";
import { type JobFlags, toOverrides } from "../options/connection-options.ts";

/**
 * Time to reach the broker, unless NATS_TIMEOUT asks for more: a command with a long `--timeout` must not
 * wait that long for a broker that is not there.
 */
const CONNECT_TIMEOUT_MS = 5_000;

/** Longest wait for one answer, of commands that change what the broker stores of a job; the default of `--timeout`. */
export const STORE_TIMEOUT_MS = 30_000;

/**
 * Runs `use` with a connection as hosts of the job have one, for the JetStream API, and the id of its inbox.
 * @throws NO_BROKER or DENIED if the broker cannot be used, NO_JETSTREAM if it has none; what `use` throws.
 */
export async function withStore<T>(
  context: CliContext,
  flags: JobFlags,
  use: (connection: NatsConnection, host: string) => Promise<T>,
): Promise<T> {
  const host = commandId();
  const connection = await openStoreConnection(adminConnection(context, flags), host);
  try {
    return await use(connection, host);
  } catch (error) {
    throw orNoJetStream(ensureError(error), connection);
  } finally {
    await connection.close();
  }
}

/** How a command connects to the broker of its job. */
export function adminConnection(context: CliContext, flags: JobFlags): AdminConnectionOptions {
  const { environment, signal } = context;
  const connectTimeoutMs = connectTimeoutMsOf(context, flags);
  return { job: flags.job, broker: toOverrides(flags), environment, connectTimeoutMs, signal };
}

/** How long a command waits for the broker, in milliseconds. */
export function connectTimeoutMsOf({ environment }: CliContext, flags: JobFlags): number {
  const { timeoutMs } = resolveSettings(toOverrides(flags), environment);
  return Math.min(flags.timeout, Math.max(CONNECT_TIMEOUT_MS, timeoutMs));
}

/** An id that no other process of this machine has now; a long name of the machine is cut. */
export function commandId(machine = hostname()): string {
  const tail = `-${process.pid}`;
  const host = machine.replaceAll(/[^A-Za-z0-9-]/g, "-");
  return `${`cli-${host}`.slice(0, ID_BYTES_MAX - tail.length)}${tail}`;
}
