import { join, resolve } from "node:path";
import { brokerLacks, checkBrokerVersion, startBroker } from "../../broker/index.ts";
import { makeDirectories } from "../../model-files/atomic-write.ts";
import type { PserverError } from "../../protocol/errors.ts";
import type { CliContext } from "../context.ts";
import { tellHostEvent } from "../host/host-events.ts";
import { unlessAborted } from "../interrupts.ts";
import { type HostFlags, hostArguments, toHostSettings } from "../options/host-options.ts";
import type { Output } from "../output/output.ts";
import { BrokerKeeper } from "./broker-keeper.ts";
import { findProgram } from "./find-program.ts";
import { HostProcess } from "./host-process.ts";
import { KeptHost, type StartedHost } from "./kept-host.ts";
import { startLocalHost } from "./local-host.ts";
import { describeEnd } from "./messages.ts";
import { RunningHosts } from "./running-hosts.ts";
import { thisCommand } from "./this-command.ts";

/** The broker is on this machine and has just answered. */
const CONNECT_TIMEOUT_MS = 5_000;

/** What a broker and its hosts on this machine are started with. */
export interface LocalServerFlags extends HostFlags {
  readonly job: string;
  readonly port: number;
  readonly store: string;
  readonly hosts: number;
  readonly durable?: boolean;
}

/** Who reaches the broker, where that is not this machine alone without a token. */
export interface Listening {
  /** Address to listen on. */
  readonly address: string;
  /** What every client must know. */
  readonly token: string;
}

/** What serves, as `pserver up --json` prints it. */
export interface ServerReady {
  readonly url: string;
  readonly job: string;
  readonly hosts: readonly string[];
  readonly store: string;
  readonly modelDirectory: string;
  readonly broker: { readonly pid: number; readonly version: string };
}

/** A broker and hosts that this command has started and keeps running. */
export class LocalServer {
  readonly ready: ServerReady;
  /** Settles with the reason when the broker or every host is gone for good. */
  readonly failed: Promise<PserverError>;
  readonly #keeper: BrokerKeeper;
  readonly #hosts: RunningHosts;
  readonly #output: Output;

  private constructor(
    ready: ServerReady,
    { keeper, hosts, output }: { keeper: BrokerKeeper; hosts: RunningHosts; output: Output },
  ) {
    this.ready = ready;
    this.#keeper = keeper;
    this.#hosts = hosts;
    this.#output = output;
    this.failed = Promise.race([keeper.failed, hosts.allGone]);
  }

  /**
   * Settles when all of it serves.
   * @throws what a start failed for; ABORTED if it is interrupted before it serves.
   */
  static async start(
    context: CliContext,
    output: Output,
    flags: LocalServerFlags,
    listening?: Listening,
  ): Promise<LocalServer> {
    const keeper = await startKeeper(context, flags, output, listening);
    const hosts = new RunningHosts((name, reason) => output.warning(describeEnd(name, reason)));
    try {
      const ready = await Promise.race([
        startHosts(context, flags, { keeper, hosts, output }, listening?.token),
        keeper.failed.then((reason): never => {
          throw reason;
        }),
      ]);
      return new LocalServer(ready, { keeper, hosts, output });
    } catch (error) {
      await stopAll(keeper, hosts, output);
      throw error;
    }
  }

  /** Stops the hosts in order, and last the broker. */
  stop(): Promise<void> {
    return stopAll(this.#keeper, this.#hosts, this.#output);
  }
}

async function stopAll(keeper: BrokerKeeper, hosts: RunningHosts, output: Output): Promise<void> {
  for (const error of await hosts.stop()) output.warning(error.message);
  await keeper.stop();
}

async function startKeeper(
  context: CliContext,
  flags: LocalServerFlags,
  output: Output,
  listening: Listening | undefined,
): Promise<BrokerKeeper> {
  const program = await findProgram(context, output);
  const { signal } = context;
  const keeper = await BrokerKeeper.start({
    start: (port, onStoreStuck) =>
      startBroker({
        program,
        // Where nats.conf has it, so that a broker started by hand finds the same data.
        storeDir: join(resolve(flags.store), "store"),
        port: port ?? flags.port,
        signal,
        onStoreStuck,
        ...(flags.durable === true ? { durable: true } : {}),
        ...(listening === undefined ? {} : listeningOptions(listening)),
      }),
    onMessage: (text) => output.warning(text),
  });
  const { version } = keeper.broker;
  if (checkBrokerVersion(version) === "warned") {
    const lacks = brokerLacks(version).join("; ");
    output.warning(`nats-server ${version} works, but 2.12 is recommended; it lacks: ${lacks}`);
  }
  return keeper;
}

function listeningOptions({ address, token }: Listening): { host: string; extraConfig: string } {
  return { host: address, extraConfig: `authorization { token: "${token}" }` };
}

async function startHosts(
  context: CliContext,
  flags: LocalServerFlags,
  parts: {
    readonly keeper: BrokerKeeper;
    readonly hosts: RunningHosts;
    readonly output: Output;
  },
  token: string | undefined,
): Promise<ServerReady> {
  const { signal } = context;
  const { keeper, hosts, output } = parts;
  const store = resolve(flags.store);
  const modelDirectory = resolve(flags.modelDir ?? join(store, "models"));
  await makeDirectories(modelDirectory);
  const { url, pid, version } = keeper.broker;
  const withModels = { ...flags, modelDir: modelDirectory };
  const keep = (name: string, start: () => StartedHost): KeptHost => {
    const host = new KeptHost({ name, start, onMessage: (text) => output.warning(text) });
    hosts.add(name, host);
    return host;
  };
  const credentials = token === undefined ? {} : { token };
  const local = (): StartedHost =>
    startLocalHost({
      connection: { servers: [url], timeoutMs: CONNECT_TIMEOUT_MS, ...credentials },
      ...toHostSettings(withModels),
      onEvent: (event) => tellHostEvent(event, output),
    });
  // The first makes the job: together they would ask for room at one time.
  const first = await unlessAborted(signal, keep("host 1", local).ready);
  const args = ["--url", url, "--job", flags.job, ...hostArguments(withModels)];
  const environment = withoutConnection(context.environment);
  const others = Array.from({ length: flags.hosts - 1 }, (_, i) => {
    const name = `host process ${i + 2}`;
    const start = (): StartedHost =>
      new HostProcess({
        command: thisCommand(),
        args,
        environment: token === undefined ? environment : { ...environment, NATS_TOKEN: token },
        onMessage: (text) => output.message(`${name}: ${text}`),
      });
    return keep(name, start).ready;
  });
  const ids = [first, ...(await unlessAborted(signal, Promise.all(others)))];
  return {
    url,
    job: flags.job,
    hosts: ids,
    store,
    modelDirectory,
    broker: { pid, version },
  };
}

/** An environment without what leads to another broker: credentials for that one would only confuse. */
export function withoutConnection(
  environment: CliContext["environment"],
): CliContext["environment"] {
  const others = Object.entries(environment).filter(
    ([name]) => !/^(?:NATS_|PSERVER_URL$)/.test(name),
  );
  return Object.fromEntries(others);
}
