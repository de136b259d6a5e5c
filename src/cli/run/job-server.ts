import { mkdir, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { SavedModel } from "../../client/client.ts";
import { connect } from "../../client/connect.ts";
import type { ConnectionOverrides } from "../../client/wire/broker-settings.ts";
import { removeEmptyDirectories } from "../../model-files/atomic-write.ts";
import { mismatch } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { io } from "../../system/file-errors.ts";
import type { CliContext } from "../context.ts";
import { withAdmin } from "../open-job.ts";
import { toOverrides } from "../options/connection-options.ts";
import { hostArguments } from "../options/host-options.ts";
import type { Output } from "../output/output.ts";
import { startLocalServer } from "../up/local-server.ts";
import { accessOf, type JobServer, reachableAddress, trainerId } from "./launch.ts";
import { flagOf, type RunFlags } from "./run-flags.ts";

const HOST_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 30_000;

/** Flags of a new server besides those of its hosts. */
const SERVER_FLAGS = [
  ...(["hosts", "port", "durable", "brokerMemory", "advertise", "noToken"] as const),
  ...(["http", "httpToken", "httpTrainers"] as const),
];

/** Whether the run uses a server that already runs. */
export function usesRunningServer(
  flags: RunFlags,
  environment: CliContext["environment"],
): boolean {
  return [flags.url, flags.context, environment["PSERVER_URL"]].some((each) => (each ?? "") !== "");
}

/** @throws BAD_VALUE for flags of a new server if the run uses one that already runs. */
export function checkServerFlags(flags: RunFlags, environment: CliContext["environment"]): void {
  if (!usesRunningServer(flags, environment)) return;
  const { advertise: _advertised, ...rest } = flags;
  const own = SERVER_FLAGS.find((name) => flags[name] !== undefined);
  const flag = own === undefined ? hostArguments(rest)[0] : flagOf(own);
  if (flag === undefined) return;
  const source = flags.url === undefined && flags.context === undefined ? "PSERVER_URL" : "--url";
  const expected = `no ${source} with it`;
  throw mismatch("BAD_VALUE", flag, expected, "both");
}

/**
 * Starts the job's server, or connects to the one that already runs; settles when it serves.
 * @throws the error that kept it from starting; NO_BROKER or NO_HOST if a running one does not answer.
 */
export async function openServer(
  context: CliContext,
  output: Output,
  flags: RunFlags,
): Promise<JobServer> {
  const directory = resolve(flags.store ?? join(".pserver", `run-${runName()}`));
  if (usesRunningServer(flags, context.environment))
    return await joinServer(context, flags, directory);
  return await startServer(context, output, flags, directory);
}

async function joinServer(
  context: CliContext,
  flags: RunFlags,
  directory: string,
): Promise<JobServer> {
  const access = accessOf(flags, context.environment);
  const asker = { ...flags, trainer: trainerId(flags, 0), timeout: HOST_TIMEOUT_MS };
  await withAdmin(context, asker, (admin) => admin.status());
  return {
    access,
    directory,
    failed: new Promise(() => {}),
    save: (path) => saveModel(flags, toOverrides(flags), path),
    stop: async () => {},
  };
}

async function startServer(
  context: CliContext,
  output: Output,
  flags: RunFlags,
  directory: string,
): Promise<JobServer> {
  const address = flags.launcher === "local" ? undefined : await reachableAddress(flags.advertise);
  await io("make the directory of the run", directory, mkdir(directory, { recursive: true }));
  const modelDir = modelDirectory(flags);
  const { advertise: _advertised, ...serverFlags } = flags;
  const server = await startLocalServer(
    context,
    output,
    {
      ...serverFlags,
      port: flags.port ?? 0,
      hosts: flags.hosts ?? 1,
      store: directory,
      ...defined({ modelDir }),
    },
    { httpPort: 0, ...defined({ address: address?.listen }) },
  ).catch(async (error: unknown) => {
    // No trainer has run yet, so the data is worthless.
    if (flags.store === undefined) await removeData(directory);
    throw error;
  });
  const { token } = server;
  const { url } = server.ready;
  const credentials: Record<string, string> = token === undefined ? {} : { NATS_TOKEN: token };
  // Credentials in the environment are for another broker. A broker without users ignores the token.
  const own = { url, token: token ?? "none" };
  return {
    ...defined({ http: server.ready.http }),
    access: { url: address === undefined ? url : withHost(url, address.advertised), credentials },
    directory,
    failed: server.failed,
    save: (path) => saveModel(flags, own, flags.modelDir === undefined ? nameOf(path) : path),
    async stop(isDone) {
      await server.stop();
      if (isDone && flags.store === undefined) await removeData(directory);
    },
  };
}

/** Returns the directory where `--save` wants the model, unless `--model-dir` says where models are. */
function modelDirectory({ save, modelDir }: RunFlags): string | undefined {
  return modelDir === undefined && save !== undefined ? dirname(resolve(save)) : modelDir;
}

/** Returns the last name in a path, with the slash of a directory. */
function nameOf(path: string): string {
  return path.endsWith("/") ? `${basename(path)}/` : basename(path);
}

async function saveModel(
  flags: RunFlags,
  connection: ConnectionOverrides,
  path: string,
): Promise<SavedModel> {
  // Takes no signal: the model is saved after Ctrl-C, and a second one ends the process. All trainers
  // have ended, so the id and permissions of one of them can be used.
  const { job } = flags;
  const trainer = trainerId(flags, 0);
  const client = await connect({ ...connection, job, trainer, timeoutMs: CONNECT_TIMEOUT_MS });
  try {
    return await client.saveModel(path);
  } finally {
    await client.close();
  }
}

/** Removes the broker's data, and the directories if that leaves them empty: models and messages stay. */
async function removeData(directory: string): Promise<void> {
  await io("remove", directory, rm(join(directory, "store"), { recursive: true, force: true }));
  await removeEmptyDirectories(join(directory, "models"), directory);
}

function runName(): string {
  const time = new Date().toISOString().replaceAll(/[-:]|\..*/g, "");
  return `${time}-${process.pid}`;
}

function withHost(url: string, host: string): string {
  const port = /:(\d+)$/.exec(url)?.[1] ?? "";
  return `nats://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
