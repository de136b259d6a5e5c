import { type Command, InvalidArgumentError, Option } from "commander";
import { SYNCHRONIZATION_ENTRIES } from "../../protocol/config/index.ts";
import { addHelp, type CliContext, openLog } from "../context.ts";
import { addBrokerOptions } from "../options/broker-options.ts";
import {
  addConnectionOptions,
  addJobOption,
  addOutputOptions,
} from "../options/connection-options.ts";
import { addJobHostOptions, type SynchronizationFlags } from "../options/host-options.ts";
import { addHttpOptions } from "../options/http-options.ts";
import { parseId, wholeNumber } from "../options/parse-values.ts";
import { LAUNCHERS, parseWallTime, type RunFlags } from "../run/run-flags.ts";
import { runTrainers } from "../run/run-trainers.ts";
import type { TrainerCommand } from "../run/trainer-command.ts";
import { addNoTokenOption } from "../up/broker-token.ts";

const INSTANCES_MAX = 4_096;
const HOSTS_MAX = 64;
const RESTARTS_MAX = 1_000;
const RESTARTS_DEFAULT = 3;
const GPUS_MAX = 1_024;
const VARIABLE = /^(?<name>[A-Za-z_][A-Za-z0-9_]*)(?:=(?<value>.*)|-)$/s;

/**
 * Adds the command `pserver run`, which runs trainers to their end, with a new server or one that already runs.
 */
export function registerRun(program: Command, context: CliContext): void {
  const command = program
    .command("run")
    .summary("start trainers, with a server of their own")
    .description("start trainers, here or on other machines, with a server of their own")
    .argument("<command...>", "what each trainer runs, after --");
  addTrainersOptions(command);
  addServerOptions(command);
  addLauncherOptions(command);
  // By default as many trainers keep step as are started.
  command.hook("preAction", (_program, action) => {
    const { sync, trainers } = action.opts<SynchronizationFlags>();
    const entries: readonly string[] = sync === undefined ? [] : SYNCHRONIZATION_ENTRIES[sync];
    if (!entries.includes("trainers") || trainers !== undefined) return;
    action.setOptionValue("trainers", action.opts<RunFlags>().instances);
  });
  addNoTokenOption(addConnectionOptions(command));
  addOutputOptions(
    addJobHostOptions(addJobOption(command), "where --save says, else STORE/models"),
  ).action((words: TrainerCommand, flags: RunFlags) =>
    runTrainers(context, openLog(context, flags), flags, words),
  );
  addHelp(command, HELP);
}

const HELP = {
  "What a trainer gets": [
    "  PSERVER_URL, PSERVER_JOB, PSERVER_TRAINER, PSERVER_RANK, PSERVER_WORLD_SIZE, PSERVER_LOCAL_RANK,",
    "  the credentials as NATS_…, and the old legion_server_ip, legion_server_port, legion_instances,",
    "  legion_job_name, legion_script_path, legion_walltime, legion_debug. Where trainers share a",
    "  machine, OMP_NUM_THREADS=1 unless it is set. With --torch-env also what torchrun sets.",
  ],
  "The server": [
    "  Without --url, --context and PSERVER_URL a broker and hosts are started on a free port, and",
    "  stopped at the end; their data is removed after a success and kept after a failure.",
    "  For trainers on other machines the broker listens on all addresses. Only clients with a token",
    "  may use it: trainers get it in NATS_TOKEN, programs of this user on this machine find it.",
  ],
  "When it ends": [
    "  When all trainers have ended with exit code 0, or one has failed for good; then the others are",
    "  stopped. Ctrl-C stops all: SIGINT, after 10 s SIGTERM, after 5 s SIGKILL, to process groups.",
    "  The exit code is the highest of the trainers that ended by themselves (128 and the number of",
    "  a signal), 130 after Ctrl-C or the wall time, else one of pserver's own.",
  ],
  "With --json": [
    '  {"ready":true,"url","job","instances","launcher","directory","http"}, {"rank","stdout"} or',
    '  {"rank","stderr"} for each line of a trainer, {"saved":{…}}, and at the end {"stats":[…]} with',
    '  {"trainer","calls","failed","records","resent","clipped","setAside","reads","sentBytes","receivedBytes","reconnects"}',
    '  of each client that was closed in order, and {"trainers":[…]}',
    '  with {"rank","exitCode","restarts"} or {"rank","stopped"} for each.',
  ],
  Examples: [
    "  pserver run -n 4 -- python3 train.py --epochs 10",
    "  pserver run -n 4 --hosts 2 --save m.safetensors --restarts 10 -- node train.js",
    "  pserver run -n 2 --url nats://broker:4222 --job mnist -- ./train",
    "  pserver run -n 8 --launcher ssh --machines a,b,c,d -- python3 train.py",
    "  pserver run -n 16 --launcher slurm --walltime 12:00:00 --gpus 1 -- ./train",
  ],
} as const;

function addTrainersOptions(command: Command): void {
  command
    .option("-n, --instances <n>", "how many trainers", wholeNumber(1, INSTANCES_MAX), 1)
    .option("--trainer <prefix>", "prefix of the trainers' ids, before -RANK", parseId, "trainer")
    .option(
      "--restarts <n>",
      "restarts in a row of a trainer that fails, under the same id",
      wholeNumber(0, RESTARTS_MAX),
      RESTARTS_DEFAULT,
    )
    .option(
      "--env <name=value>",
      "a variable for the trainers, or NAME- for one that they shall not have; may be repeated",
      collectVariable,
    )
    .option(
      "--torch-env",
      "set what torch.distributed and accelerate read: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, …",
    )
    .option(
      "--devices <names>",
      "one device for each trainer, gpu0,gpu1,…: sets CUDA_VISIBLE_DEVICES and THEANO_FLAGS",
      (text) => text.split(/[,;]/).map((name) => name.trim()),
    )
    .option("--save <file>", "save the model at the end; the ending chooses the format")
    .option("--walltime <time>", "stop after this time: 12:00:00, 1-12:00:00", parseWallTime);
}

function addServerOptions(command: Command): void {
  command
    .option("--hosts <n>", "hosts of the server (default: 1)", wholeNumber(1, HOSTS_MAX))
    .option("--port <n>", "port of its broker (default: any free one)", wholeNumber(0, 65_535))
    .option(
      "--store <dir>",
      "directory for its data, which is kept (default: .pserver/run-TIME-PID)",
    );
  addHttpOptions(addBrokerOptions(command), "a free port");
}

function addLauncherOptions(command: Command): void {
  command
    .addOption(
      new Option("--launcher <kind>", "what starts the trainers")
        .choices(LAUNCHERS)
        .default("local"),
    )
    .option(
      "--machines <names>",
      "for ssh: machines, used in turn: a,b,c, or a file with one per line",
    )
    .option("--advertise <address>", "address of this machine for the others (default: its name)")
    .option("--account <name>", "for slurm and pbs: the account to charge")
    .option("--queue <name>", "for slurm and pbs: the partition or queue")
    .option("--constraint <features>", "for slurm and pbs: features that machines must have")
    .option("--gpus <n>", "for slurm and pbs: GPUs for each trainer", wholeNumber(1, GPUS_MAX))
    .option(
      "--max-simultaneous <n>",
      "for slurm and pbs: most trainers that run at the same time (default: all)",
      wholeNumber(1, INSTANCES_MAX),
    )
    .option("--dry-run", "print what would be started, and start nothing");
}

function collectVariable(
  text: string,
  before: NonNullable<RunFlags["env"]> = {},
): NonNullable<RunFlags["env"]> {
  const { name, value } = VARIABLE.exec(text)?.groups ?? {};
  if (name !== undefined) return { ...before, [name]: value };
  // The value may be a password.
  const shown = JSON.stringify(text.replace(/=.*/s, "=…"));
  throw new InvalidArgumentError(`expected NAME=VALUE or NAME-; received ${shown}`);
}
