import { randomInt } from "node:crypto";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { createServer, isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { resolve } from "node:path";
import type { SavedModel } from "../../client/client.ts";
import { resolveSettings } from "../../client/wire/broker-settings.ts";
import { isLoopback } from "../../http/address.ts";
import { mismatch, type PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { shellWord } from "../../system/shell-word.ts";
import type { ConnectionSettings } from "../../transport/connection.ts";
import type { CliContext } from "../context.ts";
import { type ConnectionFlags, toOverrides } from "../options/connection-options.ts";
import { makePaintRank, type PaintRank, wantsColor } from "../output/colors.ts";
import type { Output, OutputStream } from "../output/output.ts";
import { withoutConnection } from "../up/local-server.ts";
import { formatWallTime, type RunFlags } from "./run-flags.ts";
import { scriptOf, type TrainerCommand } from "./trainer-command.ts";
import { TrainerOutput } from "./trainer-output.ts";
import { StatsDirectory } from "./trainer-stats.ts";

/** How trainers reach the broker. */
export interface ServerAccess {
  /** Addresses without credentials, with commas between them. */
  readonly url: string;
  /** `NATS_…` variables of the credentials and certificates. */
  readonly credentials: Readonly<Record<string, string>>;
}

const PORT_DEFAULT = "4222";

/** Finds the access to the broker that flags, environment or a NATS context name. */
export function accessOf(
  flags: ConnectionFlags,
  environment: Readonly<Record<string, string | undefined>>,
): ServerAccess {
  const settings = resolveSettings(toOverrides(flags), environment);
  return { url: settings.servers.join(","), credentials: credentialVariables(settings) };
}

/** Returns host and port of the first address, as Legion's scripts expect them. */
function firstAddress(url: string): { readonly host: string; readonly port: string } {
  const [first = ""] = url.split(",");
  const address = first.replace(/^[a-z]+:\/\//i, "");
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]+))(?::(?<port>\w+))?$/.exec(address);
  const { v6, host = address, port = PORT_DEFAULT } = match?.groups ?? {};
  return { host: v6 ?? host, port };
}

/**
 * Returns the variables of the credentials; files by absolute paths, because a trainer may run in another
 * directory.
 */
function credentialVariables(settings: ConnectionSettings): Record<string, string> {
  const { user, password, token, credsFile, nkeyFile, tls } = settings;
  const path = (file: string | undefined): string | undefined =>
    file === undefined ? undefined : resolve(file);
  return defined({
    NATS_USER: user,
    NATS_PASSWORD: password,
    NATS_TOKEN: token,
    NATS_CREDS: path(credsFile),
    NATS_NKEY: path(nkeyFile),
    NATS_CERT: path(tls?.certFile),
    NATS_KEY: path(tls?.keyFile),
    NATS_CA: path(tls?.caFile),
  });
}

/** Variables for a trainer. One that is undefined is removed from what the trainer inherits. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** The place of a trainer among all of its run. */
export interface TrainerPlace {
  readonly rank: number;
  /** Its number among the trainers of its machine. */
  readonly localRank: number;
  /** How many trainers its machine has. */
  readonly localCount: number;
  /** The number of its machine. */
  readonly machine: number;
  /** How many machines have trainers. */
  readonly machineCount: number;
}

/** Returns the places of the trainers of ranks 0, 1, …, each given by the name of its machine. */
export function placesOn(machines: readonly string[]): TrainerPlace[] {
  const names = [...new Set(machines)];
  const used = new Map<string, number>();
  return machines.map((name, rank) => {
    const localRank = used.get(name) ?? 0;
    used.set(name, localRank + 1);
    const localCount = machines.filter((each) => each === name).length;
    return {
      rank,
      localRank,
      localCount,
      machine: names.indexOf(name),
      machineCount: names.length,
    };
  });
}

/**
 * Returns the variables of all trainers of a run, under their present names and Legion's; `--env` may override
 * them.
 */
export function sharedVariables(
  flags: RunFlags,
  command: TrainerCommand,
  url: string,
): Record<string, string> {
  const { host, port } = firstAddress(url);
  const instances = String(flags.instances);
  return {
    PSERVER_URL: url,
    PSERVER_JOB: flags.job,
    PSERVER_WORLD_SIZE: instances,
    legion_server_ip: host,
    legion_server_port: port,
    legion_instances: instances,
    legion_job_name: flags.job,
    legion_script_path: resolve(scriptOf(command)),
    legion_walltime: flags.walltime === undefined ? "" : formatWallTime(flags.walltime),
    legion_debug: "false",
    // Else Python buffers 8 KiB of output, because it prints to no terminal.
    PYTHONUNBUFFERED: "1",
  };
}

/** Returns the id of the trainer of a rank. */
export function trainerId({ trainer }: RunFlags, rank: number): string {
  return `${trainer}-${rank}`;
}

/** Returns the additional variables of one trainer, and at last those of `--env`, which override all. */
export function ownVariables(
  flags: RunFlags,
  { rank, localRank }: TrainerPlace,
  torch: Variables,
): Variables {
  return {
    PSERVER_TRAINER: trainerId(flags, rank),
    PSERVER_RANK: String(rank),
    PSERVER_LOCAL_RANK: String(localRank),
    ...torch,
    ...flags.env,
    ...deviceVariables(flags.devices?.[rank], flags.env),
  };
}

/**
 * Returns variables for a trainer that neither the user's environment on its machine nor `--env` sets: one
 * thread for arithmetic if it shares the machine with others, as torchrun does. Else each of them would start a
 * thread for every core.
 */
export function threadDefaults({ env = {} }: RunFlags, place: TrainerPlace): Variables {
  const isShared = place.localCount > 1 && !Object.hasOwn(env, "OMP_NUM_THREADS");
  return isShared ? { OMP_NUM_THREADS: "1" } : {};
}

/** Names a device as CUDA numbers it, and as Theano's users named it. */
function deviceVariables(device: string | undefined, env: RunFlags["env"]): Record<string, string> {
  if (device === undefined) return {};
  const theano = [env?.["THEANO_FLAGS"], `device=${device}`];
  const cuda = /^(?:gpu|cuda)?(\d+)$/.exec(device)?.[1];
  return {
    THEANO_FLAGS: theano.filter((flag) => flag !== undefined).join(","),
    ...defined({ CUDA_VISIBLE_DEVICES: cuda }),
  };
}

/** The server of a run: started for it, or running before. */
export interface JobServer {
  readonly access: ServerAccess;
  /** Where metrics, health and JSON are served; absent if they are not. */
  readonly http?: string;
  /** Where the run keeps its files. */
  readonly directory: string;
  /** Settles with the reason when a server that was started for the run has ended for good. */
  readonly failed: Promise<PserverError>;
  /** Has a host write the model. @throws as `Client.saveModel` does. */
  save(path: string): Promise<SavedModel>;
  /** Stops a server that was started for the run; with `isDone` its data is removed, unless `--store` names it. */
  stop(isDone: boolean): Promise<void>;
}

/** Dependencies of a launcher. */
export interface Launch {
  readonly context: CliContext;
  readonly output: Output;
  readonly flags: RunFlags;
  readonly command: TrainerCommand;
  readonly server: JobServer;
}

/** A way to start trainers. */
export interface Launcher {
  /** Whether the command must exist on this machine, because trainers run here or on a shared file system. */
  readonly isCommandHere: boolean;
  /** Checks the flags before anything starts. @throws BAD_VALUE for a flag it lacks, or a missing program. */
  check(context: CliContext, flags: RunFlags): void;
  /** Describes what it would start. */
  describe(context: CliContext, flags: RunFlags, command: TrainerCommand): Promise<string>;
  /** Starts the trainers. @throws what the first start failed for. */
  start(launch: Launch): Promise<RunningTrainers>;
}

/** Returns the variables of every trainer, credentials included; `--env` may override them. */
export function trainerVariables({ flags, command, server }: Launch): Record<string, string> {
  const { access, directory } = server;
  return {
    ...StatsDirectory.variables(directory),
    ...access.credentials,
    ...sharedVariables(flags, command, access.url),
  };
}

/** Returns the environment of this process without addresses and credentials of a broker. */
export function inheritedEnvironment({ context }: Launch): CliContext["environment"] {
  return withoutConnection(context.environment);
}

/** Says, once for all trainers, that some share a machine and therefore have one thread each. */
export function tellThreads({ output, flags }: Launch, places: readonly TrainerPlace[]): void {
  const limited = places.some((place) => threadDefaults(flags, place)["OMP_NUM_THREADS"]);
  if (!limited) return;
  output.message(
    "trainers that share a machine get OMP_NUM_THREADS=1; --env OMP_NUM_THREADS=N gives each N threads",
  );
}

/** Makes the printer of the output of trainers. */
export function trainerOutput({ context, output, flags }: Launch): TrainerOutput {
  const { stdout, stderr, environment } = context;
  const paint = ({ isTTY }: OutputStream): PaintRank =>
    makePaintRank(wantsColor(isTTY === true, environment, flags.color === false));
  return new TrainerOutput({
    stdout,
    stderr,
    paint: { stdout: paint(stdout), stderr: paint(stderr) },
    json: output.json,
    count: flags.instances,
  });
}

/** Writes words as one command line. */
export function shellCommand(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

/** Writes lines of a script that set and export variables, and unset those that are undefined. */
export function exportLines(variables: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(variables).map(([name, value]) =>
    value === undefined ? `unset ${name}` : `export ${name}=${shellWord(value)}`,
  );
}

/** How a trainer ended for good. */
export interface TrainerEnd {
  readonly rank: number;
  readonly trainer: string;
  readonly exitCode: number;
  readonly restarts: number;
}

/** Trainers that were started, on any machine. */
export interface RunningTrainers {
  /**
   * Settles when all have ended with exit code 0, or when the first has failed for good. Rejects with the
   * error that kept them from running.
   */
  readonly ended: Promise<void>;
  /** Returns the trainers that have ended by themselves so far, not because they were stopped. */
  ends(): readonly TrainerEnd[];
  /** Stops the trainers that still run; settles when none is left. */
  stop(): Promise<void>;
}

/** The address at which others reach this machine, and the one to listen on for it. */
export interface ReachableAddress {
  readonly advertised: string;
  readonly listen: string;
}

const ADDRESS = /^[A-Za-z0-9.-]{1,255}$/;

/**
 * Finds the address for other machines: the one given, else this machine's name if it resolves to more than
 * loopback, else its first address.
 * @throws BAD_VALUE if there is none, or the given one is neither a name nor an address.
 */
export async function reachableAddress(given: string | undefined): Promise<ReachableAddress> {
  const advertised = given ?? (await ownAddress());
  if (isIP(advertised) === 0 && !ADDRESS.test(advertised)) {
    const expected = "a name or an address without a port";
    throw mismatch("BAD_VALUE", "--advertise", expected, JSON.stringify(advertised));
  }
  if (isLoopback(advertised)) return { advertised, listen: advertised };
  return { advertised, listen: isIP(advertised) === 6 ? "::" : "0.0.0.0" };
}

async function ownAddress(): Promise<string> {
  const name = hostname();
  const addresses = await lookup(name, { all: true }).catch(() => []);
  if (addresses.some(({ address }) => !isLoopback(address))) return name;
  const outer = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const address = outer.find(({ internal, family }) => !internal && family === "IPv4")?.address;
  if (address !== undefined) return address;
  const expected = "the address at which other machines reach this one";
  throw mismatch("BAD_VALUE", "--advertise", expected, "none, and found none");
}

/** Where torch.distributed's trainers meet: the machine of rank 0, and a port that is free there. */
export interface Rendezvous {
  readonly address: string;
  readonly port: number;
}

/**
 * Ports below those that systems give to outgoing connections, so that no connection takes the port before it
 * is used.
 */
const PORTS = { first: 20_000, count: 12_000 } as const;

/**
 * A shell program that sets `port` to a free one of this machine. It knows which are in use where there is a
 * Linux kernel to tell. Like the guard it has nothing in it that a login shell could stumble over.
 */
export const FREE_PORT_PROGRAM = [
  'used=" $(echo $(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |' +
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
    ' while read -r number here rest; do echo "${here##*:}"; done)) "',
  `port=$((${PORTS.first} + ($$ * 7919 + $(date +%s)) % ${PORTS.count}))`,
  'while case "$used" in *" $(printf %04X "$port") "*) ;; *) false ;; esac; do port=$((port + 1)); done',
].join("; ");

/**
 * Checks that the flags leave all trainers what torch.distributed needs.
 * @throws BAD_VALUE for flags that `--torch-env` excludes.
 */
export function checkTorchFlags({ torchEnv, devices, maxSimultaneous, instances }: RunFlags): void {
  if (torchEnv !== true) return;
  if (devices !== undefined) {
    const expected = "no --torch-env with it, where LOCAL_RANK selects the device";
    throw mismatch("BAD_VALUE", "--devices", expected, "both");
  }
  if (maxSimultaneous !== undefined && maxSimultaneous < instances) {
    const expected = `${instances} with --torch-env, whose trainers wait for each other`;
    throw mismatch("BAD_VALUE", "--max-simultaneous", expected, maxSimultaneous);
  }
}

/**
 * Finds a free port of this machine.
 * @throws IO if this machine lets nobody listen on loopback.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + randomInt(PORTS.count);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port), "listening");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EADDRINUSE") return false;
    throw error;
  }
  server.close();
  await once(server, "close");
  return true;
}

/**
 * Returns the variables that torch.distributed and accelerate read, with the values that torchrun would give
 * them.
 */
export function torchVariables(
  { rank, localRank, localCount, machine, machineCount }: TrainerPlace,
  { instances }: RunFlags,
  { address, port }: Rendezvous,
): Variables {
  return {
    MASTER_ADDR: address,
    MASTER_PORT: String(port),
    RANK: String(rank),
    WORLD_SIZE: String(instances),
    LOCAL_RANK: String(localRank),
    LOCAL_WORLD_SIZE: String(localCount),
    GROUP_RANK: String(machine),
    GROUP_WORLD_SIZE: String(machineCount),
    ...OUTER_TORCHRUN,
  };
}

/**
 * Unsets the variables of a torchrun around the launcher: trainers would expect its store at the address of
 * ours.
 */
export const OUTER_TORCHRUN: Variables = {
  TORCHELASTIC_RUN_ID: undefined,
  TORCHELASTIC_USE_AGENT_STORE: undefined,
};
