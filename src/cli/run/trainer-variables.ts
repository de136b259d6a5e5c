import { resolve } from "node:path";
import { defined } from "../../protocol/defined.ts";
import { scriptOf, type TrainerCommand } from "./command-line.ts";
import type { RunFlags } from "./run-flags.ts";
import { firstAddress } from "./server-access.ts";
import { formatWallTime } from "./wall-time.ts";

/** Variables of all trainers of a run, under their present names and Legion's. */
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
    WORLD_SIZE: instances,
    legion_server_ip: host,
    legion_server_port: port,
    legion_instances: instances,
    legion_job_name: flags.job,
    legion_script_path: resolve(scriptOf(command)),
    legion_walltime: flags.walltime === undefined ? "" : formatWallTime(flags.walltime),
    legion_debug: "false",
    // Otherwise Python buffers 8 KiB of output, because it prints to no terminal.
    PYTHONUNBUFFERED: "1",
    ...flags.env,
  };
}

/** The id of the trainer of a rank. */
export function trainerId({ trainer }: RunFlags, rank: number): string {
  return `${trainer}-${rank}`;
}

/** Additional variables of one trainer; `localRank` counts on its machine. */
export function ownVariables(
  flags: RunFlags,
  rank: number,
  localRank: number,
): Record<string, string> {
  return {
    PSERVER_TRAINER: trainerId(flags, rank),
    RANK: String(rank),
    LOCAL_RANK: String(localRank),
    ...deviceVariables(flags.devices?.[rank], flags.env),
  };
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
