import { join, resolve } from "node:path";
import type { Host, HostOptions } from "../../actors/host/host.ts";
import { type FoundBroker, findBroker, setUpBroker, startBroker } from "../../broker/index.ts";
import { makeDirectories } from "../../model-files/atomic-write.ts";
import { type ErrorCode, ensureError, type PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { type CliContext, confirm, thisCommand } from "../context.ts";
import { hostEventPrinter } from "../host-events.ts";
import type { BrokerFlags } from "../options/broker-options.ts";
import { type HostFlags, hostArguments, toHostSettings } from "../options/host-options.ts";
import type { Output } from "../output/output.ts";
import { unlessAborted } from "../signals.ts";
import { keepToken, keptTokenFile, publishToken } from "./broker-token.ts";
import {
  BrokerKeeper,
  KeptHost,
  RunningHosts,
  type StartedHost,
  startHostProcess,
} from "./kept-processes.ts";

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

/**
 * Starts a host in this process. Its code is loaded here, so that other commands start faster. `stop`
 * does not wait for a host that is still starting, which may hang: this process ends next.
 */
function startLocalHost(options: HostOptions): StartedHost {
  let running: Host | undefined;
  let isStopping = false;
  const start = async (): Promise<Host> => {
    const { startHost } = await import("../../actors/host/start-host.ts");
    running = await startHost(options);
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
export interface LocalServerFlags extends HostFlags, BrokerFlags {
  readonly job: string;
  readonly port: number;
  readonly store: string;
  readonly hosts: number;
  /** Whether clients need no token. */
  readonly noToken?: boolean;
}

/** Options of {@link startLocalServer}. */
export interface LocalServerOptions {
  /** Address to listen on; by default only programs of this machine reach the broker. */
  readonly address?: string;
}

/** A server that is ready, as `pserver up --json` prints it. */
export interface ServerReady {
  readonly url: string;
  readonly job: string;
  readonly hosts: readonly string[];
  readonly store: string;
  readonly modelDirectory: string;
  readonly broker: { readonly pid: number; readonly version: string };
  /** File with the token that clients need; absent if they need none. */
  readonly tokenFile?: string;
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
  readonly keeper: BrokerKeeper;
  readonly hosts: RunningHosts;
  /** The token of the broker, if clients need one. */
  readonly token: string | undefined;
}

/**
 * Starts a broker and hosts; settles when all of them serve.
 * @throws the error that kept it from starting; ABORTED if it is interrupted before it serves.
 */
export async function startLocalServer(
  context: CliContext,
  output: Output,
  flags: LocalServerFlags,
  options: LocalServerOptions = {},
): Promise<LocalServer> {
  const token = flags.noToken === true ? undefined : await keepToken(brokerDirectory(flags));
  const keeper = await startKeeper(context, flags, output, { ...options, ...defined({ token }) });
  const published = token && (await publishToken(context, output, { ...keeper.broker, token }));
  const hosts = new RunningHosts((name, reason) => output.warning(describeEnd(name, reason)));
  const stop = async (): Promise<void> => {
    for (const error of await hosts.stop()) output.warning(error.message);
    await keeper.stop();
    if (published) await published.remove();
  };
  try {
    const brokerLost = keeper.failed.then((reason): never => {
      throw reason;
    });
    const parts = { context, output, flags, keeper, hosts, token };
    const ready = await Promise.race([startHosts(parts), brokerLost]);
    return { ready, token, failed: Promise.race([keeper.failed, hosts.allGone]), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Returns the directory that nats.conf names, so that a broker started by hand finds the same data. */
function brokerDirectory({ store }: LocalServerFlags): string {
  return join(resolve(store), "store");
}

async function startKeeper(
  context: CliContext,
  flags: LocalServerFlags,
  output: Output,
  { address, token }: LocalServerOptions & { readonly token?: string },
): Promise<BrokerKeeper> {
  const program = await findProgram(context, output);
  const { signal } = context;
  const keeper = await BrokerKeeper.start({
    start: (port, onStoreStuck) =>
      startBroker({
        program,
        storeDir: brokerDirectory(flags),
        port: port ?? flags.port,
        signal,
        onStoreStuck,
        ...defined({
          durable: flags.durable,
          memoryBytes: flags.brokerMemory,
          host: address,
          extraConfig: token && `authorization { token: "${token}" }`,
        }),
      }),
    onMessage: (text) => output.warning(text),
  });
  return keeper;
}

async function startHosts(parts: ServerParts): Promise<ServerReady> {
  const { context, flags, keeper, token } = parts;
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
  const { url, pid, version } = keeper.broker;
  return {
    url,
    job: flags.job,
    hosts: [first, ...ids],
    store,
    modelDirectory,
    broker: { pid, version },
    ...(token !== undefined && { tokenFile: keptTokenFile(brokerDirectory(flags)) }),
  };
}

/** Keeps the first host running, in this process. */
function keepHere({ flags, keeper, hosts, output, token }: ServerParts): KeptHost {
  const { url } = keeper.broker;
  const start = (): StartedHost =>
    startLocalHost({
      connection: { servers: [url], timeoutMs: CONNECT_TIMEOUT_MS, ...defined({ token }) },
      ...toHostSettings(flags),
      onEvent: hostEventPrinter(output),
    });
  return keepHost(hosts, output, "host 1", start);
}

/** Keeps a host running in a process of its own. */
function keepInProcess(parts: ServerParts, name: string): KeptHost {
  const { context, flags, keeper, hosts, output, token } = parts;
  const args = ["--url", keeper.broker.url, "--job", flags.job, ...hostArguments(flags)];
  const environment = withoutConnection(context.environment);
  const start = (): StartedHost =>
    startHostProcess({
      command: thisCommand(),
      args,
      environment: token === undefined ? environment : { ...environment, NATS_TOKEN: token },
      onMessage: (text) => output.message(`${name}: ${text}`),
    });
  return keepHost(hosts, output, name, start);
}

function keepHost(
  hosts: RunningHosts,
  output: Output,
  name: string,
  start: () => StartedHost,
): KeptHost {
  const host = KeptHost.start({ name, start, onMessage: (text) => output.warning(text) });
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
