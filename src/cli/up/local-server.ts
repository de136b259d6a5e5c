import { join, resolve } from "node:path";
import type { Host, HostOptions, ReportingHost } from "../../actors/host/host.ts";
import { type FoundBroker, findBroker, setUpBroker } from "../../broker/index.ts";
import type { ConnectionOverrides } from "../../client/wire/broker-settings.ts";
import type { BrokerAccess as HttpAccess } from "../../http/broker-access.ts";
import { makeDirectories } from "../../model-files/atomic-write.ts";
import { type ErrorCode, ensureError, PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { OBSERVER_ID } from "../../protocol/permissions.ts";
import { type CliContext, confirm, thisCommand } from "../context.ts";
import { hostEventPrinter } from "../host-events.ts";
import type { BrokerFlags } from "../options/broker-options.ts";
import { type HostFlags, hostArguments, toHostSettings } from "../options/host-options.ts";
import { type HttpFlags, toHttpSetting } from "../options/http-options.ts";
import type { Output } from "../output/output.ts";
import type { HttpService } from "../serve-http.ts";
import { unlessAborted } from "../signals.ts";
import { type AccessFlags, type BrokerAccess, openAccess } from "./broker-access.ts";
import { keptTokenFile, publishToken } from "./broker-token.ts";
import { KeptHost, RunningHosts, type StartedHost, startHostProcess } from "./kept-processes.ts";
import { type BrokerReady, brokerDirectory, checkStore, LocalBrokers } from "./local-brokers.ts";

/** Errors after which a broker can be provided. */
const MISSING: readonly ErrorCode[] = ["NO_BROKER", "BROKER_TOO_OLD"];

/** Functions that find and provide brokers. */
const BROKERS = { findBroker, setUpBroker };

/**
 * Finds the broker to start. If there is none, a person at a terminal is asked whether to provide one, as
 * `pserver setup` does.
 * @throws as `findBroker` and `setUpBroker` do.
 */
export async function findProgram(
  context: CliContext,
  output: Output,
  brokers: typeof BROKERS = BROKERS,
): Promise<FoundBroker> {
  const { environment, signal, stdin } = context;
  try {
    return await brokers.findBroker(environment, signal);
  } catch (thrown) {
    const { code, message } = ensureError(thrown);
    const isNamed = (environment["PSERVER_NATS_SERVER"] ?? "") !== "";
    if (!MISSING.includes(code) || isNamed || output.json || stdin.isTTY !== true) throw thrown;
    const question = 'Provide one now, as "pserver setup" does?';
    if (!(await confirm(context, `${message}. ${question}`))) throw thrown;
    return await brokers.setUpBroker({
      environment,
      signal,
      onMessage: (text) => output.message(text),
    });
  }
}

/** The host in this process, while there is one. */
interface LocalHost {
  running?: Host;
}

/**
 * Starts a host in this process. Its code is loaded here, so that other commands start faster. `stop`
 * does not wait for a host that is still starting, which may hang: this process ends next.
 */
function startLocalHost(options: HostOptions, local: LocalHost): StartedHost {
  let running: Host | undefined;
  let isStopping = false;
  const start = async (): Promise<Host> => {
    const { startHost } = await import("../../actors/host/start-host.ts");
    running = await startHost(options);
    local.running = running;
    if (isStopping) await running.close();
    return running;
  };
  const starting = start();
  const ready = starting.then(({ id }) => id);
  // A caller that stops a host while it starts may not wait for `ready`.
  ready.catch(() => {});
  const stopped = starting.then(
    (host) => host.stopped,
    (error): PserverError => ensureError(error),
  );
  const stop = async (): Promise<void> => {
    isStopping = true;
    await running?.close();
  };
  return { ready, stopped, stop };
}

/** Time to connect to the broker, which is on this machine and has just answered. */
const CONNECT_TIMEOUT_MS = 5_000;

/** Flags of a broker and its hosts on this machine. */
export interface LocalServerFlags extends HostFlags, AccessFlags, BrokerFlags, HttpFlags {
  readonly port: number;
  readonly store: string;
  readonly hosts: number;
  /** Number of brokers that keep all data, each a copy; a single one by default. */
  readonly cluster?: number;
}

/** Options of {@link startLocalServer}. */
export interface LocalServerOptions {
  /** Address to listen on; by default only programs of this machine reach the broker. */
  readonly address?: string;
  /** Port of HTTP unless the flags name one; 0 for any free one, which is also taken if another process has it. */
  readonly httpPort: number;
}

/** A server that is ready, as `pserver up --json` prints it. */
export interface ServerReady {
  readonly url: string;
  readonly job: string;
  readonly hosts: readonly string[];
  readonly store: string;
  readonly modelDirectory: string;
  readonly brokers: readonly BrokerReady[];
  /** File with the token that clients need; absent if they need none. */
  readonly tokenFile?: string;
  /** Files with the variables by which each trainer connects; absent without `--secure`. */
  readonly trainers?: Readonly<Record<string, string>>;
  /** Where the page, metrics, health and JSON are served; absent if they are not. */
  readonly http?: string;
}

/** A broker and hosts that this command has started and keeps running. */
export interface LocalServer {
  readonly ready: ServerReady;
  /** The token that clients need; undefined if they need none. */
  readonly token: string | undefined;
  /** Settles with the reason when the broker or every host is gone for good. */
  readonly failed: Promise<PserverError>;
  /** Stops the hosts in order, and last the broker. */
  stop(): Promise<void>;
}

/** The parts of a local server while it starts. */
interface ServerParts {
  readonly context: CliContext;
  readonly output: Output;
  readonly flags: LocalServerFlags;
  readonly brokers: LocalBrokers;
  readonly hosts: RunningHosts;
  readonly access: BrokerAccess;
  readonly local: LocalHost;
  readonly http: HttpService | undefined;
}

/**
 * Starts a broker and hosts; settles when all of them serve.
 * @throws the error that kept it from starting; ABORTED if it is interrupted before it serves.
 */
export async function startLocalServer(
  context: CliContext,
  output: Output,
  flags: LocalServerFlags,
  options: LocalServerOptions,
): Promise<LocalServer> {
  const { cluster: count = 1 } = flags;
  const store = resolve(flags.store);
  checkStore(store, count);
  const access = await openAccess(flags, store, tokenDirectory(flags), output);
  let connection: ConnectionOverrides | undefined;
  const environment = withoutConnection(context.environment);
  const http = await startHttp(flags, options.httpPort, output, () => {
    if (connection !== undefined) return { broker: connection, environment, asker: OBSERVER_ID };
    throw new PserverError("NO_BROKER", "the broker is being started");
  });
  const start = async (): Promise<LocalBrokers> =>
    LocalBrokers.start({
      ...{ store, count, port: flags.port, access, signal: context.signal },
      program: await findProgram(context, output),
      ...{ address: options.address, durable: flags.durable, memoryBytes: flags.brokerMemory },
      onMessage: (text) => output.warning(text),
    });
  const brokers = await start().catch(async (error: unknown) => {
    await http?.close();
    throw error;
  });
  connection = { url: brokers.url, ...access.clientSettings };
  const { token } = access;
  const published =
    token === undefined
      ? []
      : await Promise.all(
          brokers.ports.map((port) => publishToken(context, output, { port, token })),
        );
  const hosts = new RunningHosts((name, reason) => output.warning(describeEnd(name, reason)));
  const stop = async (): Promise<void> => {
    await http?.endChanges();
    for (const error of await hosts.stop()) output.warning(error.message);
    await Promise.all([brokers.stop(), http?.close()]);
    for (const each of published) await each.remove();
  };
  try {
    const brokerLost = brokers.failed.then((reason): never => {
      throw reason;
    });
    const ready = await Promise.race([
      startHosts({ context, output, flags, brokers, hosts, access, local: {}, http }),
      brokerLost,
    ]);
    return { ready, token, failed: Promise.race([brokers.failed, hosts.allGone]), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Serves HTTP, if the flags do not turn it off. @throws as `toHttpSetting` and `serveHttp`. */
async function startHttp(
  flags: LocalServerFlags,
  port: number,
  output: Output,
  access: () => HttpAccess,
): Promise<HttpService | undefined> {
  const setting = toHttpSetting(flags, port);
  if (setting === undefined) return undefined;
  // Loaded here, so that other commands start faster.
  const { serveHttp } = await import("../serve-http.ts");
  return await serveHttp(setting, flags.job, access, output);
}

/** Returns the directory with the broker's token. */
function tokenDirectory({ store, cluster = 1 }: LocalServerFlags): string {
  return cluster === 1 ? brokerDirectory(resolve(store), 1, 0) : resolve(store);
}

async function startHosts(parts: ServerParts): Promise<ServerReady> {
  const { context, flags, brokers, access } = parts;
  const store = resolve(flags.store);
  const modelDirectory = resolve(flags.modelDir ?? join(store, "models"));
  await makeDirectories(modelDirectory);
  const withModels = { ...parts, flags: { ...flags, modelDir: modelDirectory } };
  // The first host creates the job: several at once would ask the broker for the same storage.
  const first = await unlessAborted(context.signal, keepHere(withModels).ready);
  const others = Array.from({ length: flags.hosts - 1 }, (_, i) =>
    keepInProcess(withModels, `host process ${i + 2}`),
  );
  const ids = await unlessAborted(context.signal, Promise.all(others.map(({ ready }) => ready)));
  const { auth } = access;
  return {
    url: brokers.url,
    job: flags.job,
    hosts: [first, ...ids],
    store,
    modelDirectory,
    brokers: brokers.ready,
    ...(access.token !== undefined && { tokenFile: keptTokenFile(tokenDirectory(flags)) }),
    ...(auth !== undefined && {
      trainers: Object.fromEntries(auth.trainers.map((id) => [id, auth.variablesFile(id)])),
    }),
    ...defined({ http: parts.http?.url }),
  };
}

/** Keeps the first host running, in this process. */
function keepHere({ flags, brokers, hosts, output, access, local, http }: ServerParts): KeptHost {
  const name = "host 1";
  const options: HostOptions = {
    ...toHostSettings(flags),
    ...defined({ replicas: flags.cluster }),
    ...access.connect({ servers: brokers.urls, timeoutMs: CONNECT_TIMEOUT_MS }),
    ...defined({ countsTrainers: flags.httpTrainers }),
    ...(http && { onReporting: (host: ReportingHost) => http.hosts.set(name, host) }),
  };
  const start = (): StartedHost =>
    startLocalHost({ ...options, onEvent: hostEventPrinter(output) }, local);
  const host = KeptHost.start({
    name,
    start: () => watchedUntilEnd(start(), name, http),
    onMessage: (text) => output.warning(text),
  });
  hosts.add(name, host);
  return host;
}

/** Returns a host that was started, which HTTP tells of no more once it has ended. */
function watchedUntilEnd(
  host: StartedHost,
  name: string,
  http: HttpService | undefined,
): StartedHost {
  const stopped = host.stopped.finally(() => http?.hosts.ended(name));
  return { ...host, stopped };
}

/** Keeps a host running in a process of its own. If that dies, the host in this process takes its shards at once. */
function keepInProcess(parts: ServerParts, name: string): KeptHost {
  const { context, flags, brokers, hosts, output, access, local, http } = parts;
  const args = [
    ...["--url", brokers.url, "--job", flags.job, ...hostArguments(flags)],
    ...(flags.cluster === undefined ? [] : ["--replicas", String(flags.cluster)]),
    ...access.hostArguments,
    ...(flags.httpTrainers === true ? ["--http-trainers"] : []),
  ];
  const environment = withoutConnection(context.environment);
  const start = (): StartedHost =>
    startHostProcess({
      command: thisCommand(),
      args,
      environment: { ...environment, ...access.hostVariables },
      onMessage: (text) => output.message(`${name}: ${text}`),
      onReporting: (host) => http?.hosts.set(name, host),
    });
  const onMessage = (text: string): void => output.warning(text);
  const onDied = (id: string): void => {
    // If this fails, other hosts wait for the leases to end.
    local.running?.releaseDead(id).catch((error: unknown) => onMessage(ensureError(error).message));
  };
  const watched = (): StartedHost => watchedUntilEnd(start(), name, http);
  const host = KeptHost.start({ name, start: watched, onMessage, onDied });
  hosts.add(name, host);
  return host;
}

/** Describes the end of a host that is not started again any more, while others go on. */
function describeEnd(name: string, reason: PserverError | undefined): string {
  const why = reason === undefined ? "" : `: ${reason.code}: ${reason.message}`;
  return `${name} is not started again${why}; the other hosts take its shards`;
}

/** Returns the environment without the address and credentials of another broker. */
export function withoutConnection(
  environment: CliContext["environment"],
): CliContext["environment"] {
  const others = Object.entries(environment).filter(
    ([name]) => !/^(?:NATS_|PSERVER_URL$)/.test(name),
  );
  return Object.fromEntries(others);
}
