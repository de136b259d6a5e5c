import { hostname } from "node:os";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Client } from "../../client/client.ts";
import { connect, connectBroker } from "../../client/connect.ts";
import { Deadline } from "../../client/deadline.ts";
import { resolveConnection, resolveSettings } from "../../client/settings.ts";
import { ID_BYTES_MAX } from "../../protocol/limits.ts";
import { JobSubjects } from "../../protocol/subjects.ts";
import type { CliContext } from "../context.ts";
import { type TrainerFlags, toOverrides } from "../options/connection-options.ts";
import { HostRequests } from "./host-requests.ts";

/**
 * Time to reach the broker where NATS_TIMEOUT asks for no more: a command that may take long must not
 * wait long for that.
 */
const CONNECT_TIMEOUT_MS = 5_000;

/** What a command asks with before it joins a job, if it does. */
export interface OpenJob {
  readonly connection: NatsConnection;
  readonly requests: HostRequests;
  /** The id that the command appears under. */
  readonly trainer: string;
}

/**
 * Runs `use` with questions to the hosts of a job, without joining it.
 * @throws NO_BROKER or DENIED if the broker cannot be used; what `use` throws.
 */
export async function withHosts<T>(
  context: CliContext,
  flags: TrainerFlags,
  use: (job: OpenJob) => Promise<T>,
): Promise<T> {
  const { signal } = context;
  const trainer = flags.trainer ?? commandId();
  const settings = resolveConnection(
    {
      name: `pserver ${flags.job} ${trainer}`,
      inboxPrefix: new JobSubjects(flags.job).inbox(trainer),
      ...toOverrides(flags),
    },
    context.environment,
  );
  const deadline = new Deadline("connect", {
    timeoutMs: connectTimeoutMs(context, flags),
    signal,
  });
  const connection = await connectBroker(settings, deadline).finally(() => deadline.dispose());
  try {
    const { job, timeout: timeoutMs } = flags;
    const requests = new HostRequests({ connection, job, trainer, timeoutMs, signal });
    return await use({ connection, requests, trainer });
  } finally {
    await connection.close();
  }
}

/**
 * Runs `use` with a client that has joined the job as a trainer.
 * @throws as `connect` does; what `use` throws.
 */
export async function withTrainer<T>(
  context: CliContext,
  flags: TrainerFlags,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await connect({
    ...toOverrides(flags),
    job: flags.job,
    trainer: flags.trainer ?? commandId(),
    timeoutMs: connectTimeoutMs(context, flags),
    signal: context.signal,
  });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

function connectTimeoutMs({ environment }: CliContext, flags: TrainerFlags): number {
  const { timeoutMs } = resolveSettings(toOverrides(flags), environment);
  return Math.min(flags.timeout, Math.max(CONNECT_TIMEOUT_MS, timeoutMs));
}

/** An id that no other process of this machine has now. */
function commandId(): string {
  const tail = `-${process.pid}`;
  const host = hostname().replaceAll(/[^A-Za-z0-9-]/g, "-");
  return `${`cli-${host}`.slice(0, ID_BYTES_MAX - tail.length)}${tail}`;
}
