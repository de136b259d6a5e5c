import { join, resolve } from "node:path";
import { brokerLacks, checkBrokerVersion, startBroker } from "../../broker/index.ts";
import { makeDirectories } from "../../model-files/atomic-write.ts";
import type { CliContext } from "../context.ts";
import { tellHostEvent } from "../host/host-events.ts";
import { unlessAborted, untilAborted } from "../interrupts.ts";
import { type HostFlags, hostArguments, toHostSettings } from "../options/host-options.ts";
import type { Output, OutputFlags } from "../output/output.ts";
import { BrokerKeeper } from "./broker-keeper.ts";
import { findProgram } from "./find-program.ts";
import { HostProcess } from "./host-process.ts";
import { KeptHost, type StartedHost } from "./kept-host.ts";
import { startLocalHost } from "./local-host.ts";
import { describeEnd, describeReady } from "./messages.ts";
import { RunningHosts } from "./running-hosts.ts";
import { thisCommand } from "./this-command.ts";

/** The broker is on this machine and has just answered. */
const CONNECT_TIMEOUT_MS = 5_000;

/** Flags of `pserver up`. */
export interface UpFlags extends HostFlags, OutputFlags {
  readonly job: string;
  readonly port: number;
  readonly store: string;
  readonly hosts: number;
  readonly durable?: boolean;
}

/** What `pserver up --json` prints when it serves. */
export interface UpReady {
  readonly ready: true;
  readonly url: string;
  readonly job: string;
  readonly hosts: readonly string[];
  readonly store: string;
  readonly modelDirectory: string;
  readonly broker: { readonly pid: number; readonly version: string };
}

/**
 * Runs a broker and hosts until it is interrupted; then stops the hosts and last the broker.
 * @throws what a start failed for, or why no broker or no host is left; ABORTED if it is
 * interrupted before it serves.
 */
export async function runUp(context: CliContext, output: Output, flags: UpFlags): Promise<void> {
  const { signal } = context;
  const keeper = await startKeeper(context, flags, output);
  const hosts = new RunningHosts((name, reason) => output.warning(describeEnd(name, reason)));
  try {
    const ready = await Promise.race([
      startHosts(context, flags, keeper, hosts, output),
      keeper.failed.then((reason): never => {
        throw reason;
      }),
    ]);
    if (output.json) output.value(ready);
    else output.lines(describeReady(ready, output.paint));
    const failed = await Promise.race([untilAborted(signal), keeper.failed, hosts.allGone]);
    if (failed !== undefined) throw failed;
    output.message("stopping; Ctrl-C again stops at once");
  } finally {
    for (const error of await hosts.stop()) output.warning(error.message);
    await keeper.stop();
  }
}

async function startKeeper(
  context: CliContext,
  flags: UpFlags,
  output: Output,
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

async function startHosts(
  context: CliContext,
  flags: UpFlags,
  keeper: BrokerKeeper,
  hosts: RunningHosts,
  output: Output,
): Promise<UpReady> {
  const { signal } = context;
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
  const local = (): StartedHost =>
    startLocalHost({
      connection: { servers: [url], timeoutMs: CONNECT_TIMEOUT_MS },
      ...toHostSettings(withModels),
      onEvent: (event) => tellHostEvent(event, output),
    });
  // The first makes the job: together they would ask for room at one time.
  const first = await unlessAborted(signal, keep("host 1", local).ready);
  const args = ["--url", url, "--job", flags.job, ...hostArguments(withModels)];
  const others = Array.from({ length: flags.hosts - 1 }, (_, i) => {
    const name = `host process ${i + 2}`;
    const start = (): StartedHost =>
      new HostProcess({
        command: thisCommand(),
        args,
        environment: withoutConnection(context.environment),
        onMessage: (text) => output.message(`${name}: ${text}`),
      });
    return keep(name, start).ready;
  });
  const ids = [first, ...(await unlessAborted(signal, Promise.all(others)))];
  return {
    ready: true,
    url,
    job: flags.job,
    hosts: ids,
    store,
    modelDirectory,
    broker: { pid, version },
  };
}

/** The broker is ours and asks for no credentials: those for another one would only confuse. */
function withoutConnection(environment: CliContext["environment"]): CliContext["environment"] {
  const others = Object.entries(environment).filter(
    ([name]) => !/^(?:NATS_|PSERVER_URL$)/.test(name),
  );
  return Object.fromEntries(others);
}
