import { resolve } from "node:path";
import { defined } from "../../protocol/defined.ts";
import { scriptOf, type TrainerCommand } from "./command-line.ts";
import type { RunFlags } from "./run-flags.ts";
import { firstAddress } from "./server-access.ts";
import { formatWallTime } from "./wall-time.ts";

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

/** The places of the trainers of ranks 0, 1, …, each given by the name of its machine. */
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

/** Variables of all trainers of a run, under their present names and Legion's; `--env` may override them. */
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
    // Otherwise Python buffers 8 KiB of output, because it prints to no terminal.
    PYTHONUNBUFFERED: "1",
  };
}

/** The id of the trainer of a rank. */
export function trainerId({ trainer }: RunFlags, rank: number): string {
  return `${trainer}-${rank}`;
}

/** Additional variables of one trainer, and at last those of `--env`, which override all. */
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
 * What a trainer gets where neither the user's environment on its machine nor `--env` says otherwise: one
 * thread for arithmetic if it shares the machine with others, as torchrun does. Each of them would otherwise
 * start a thread for every core.
 */
export function threadDefaults({ env = {} }: RunFlags, place: TrainerPlace): Variables {
  const isShared = place.localCount > 1 && !Object.hasOwn(env, "OMP_NUM_THREADS");
  return isShared ? { OMP_NUM_THREADS: "1" } : {};
}

/** A device as CUDA numbers it, and as Theano's users named it. */
function deviceVariables(device: string | undefined, env: RunFlags["env"]): Record<string, string> {
  if (device === undefined) return {};
  const theano = [env?.["THEANO_FLAGS"], `device=${device}`];
  const cuda = /^(?:gpu|cuda)?(\d+)$/.exec(device)?.[1];
  return {
    THEANO_FLAGS: theano.filter((flag) => flag !== undefined).join(","),
    ...defined({ CUDA_VISIBLE_DEVICES: cuda }),
  };
}
