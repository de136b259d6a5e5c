import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { mismatch, PserverError } from "../../protocol/errors.ts";
import { io } from "../../system/file-errors.ts";
import { shellWord } from "../../system/shell-word.ts";
import type { CliContext } from "../context.ts";
import { STEADY_MS } from "../supervise.ts";
import { BatchJob, type BatchQueue, logNames, removeCredentials } from "./batch-job.ts";
import { usesRunningServer } from "./job-server.ts";
import {
  accessOf,
  exportLines,
  FREE_PORT_PROGRAM,
  inheritedEnvironment,
  type Launch,
  type Launcher,
  OUTER_TORCHRUN,
  reachableAddress,
  sharedVariables,
  shellCommand,
  trainerId,
  trainerOutput,
} from "./launch.ts";
import { formatWallTime, type RunFlags, refuseFlags } from "./run-flags.ts";
import { checkProgram, runProgram, type TrainerCommand } from "./trainer-command.ts";

/** How long a task waits for that of rank 0: the batch system may start them at different times. */
const MEETING_SECONDS_MAX = 3_600;

/** Contents of a batch script. */
interface BatchScript {
  /** Lines that request resources from the batch system. */
  readonly header: readonly string[];
  /** Shell expression for the rank. */
  readonly rank: string;
  readonly flags: RunFlags;
  readonly command: TrainerCommand;
  /** Variables of every trainer besides those of `--env` and credentials. Others may read the script. */
  readonly variables: Readonly<Record<string, string>>;
  /** Where trainers run. */
  readonly directory: string;
  /** Directory of the trainers' output and exit codes. */
  readonly logDirectory: string;
}

/**
 * Writes the script of a batch job: each task runs one trainer, starts it again when it fails, passes SIGTERM
 * on to it, and leaves a file that tells how it ended.
 */
function batchScript(script: BatchScript): string {
  const { header, rank, flags, command, variables, directory, logDirectory } = script;
  const log = `${shellWord(logDirectory)}/`;
  const ended = `${log}${logNames.end('"$rank"')}`;
  const meets = flags.torchEnv === true;
  return [
    "#!/bin/sh",
    ...header,
    "",
    `rank=${rank}`,
    ...exportLines(variables),
    'export PSERVER_RANK="$rank" PSERVER_LOCAL_RANK=0',
    `export PSERVER_TRAINER=${shellWord(flags.trainer)}-"$rank"`,
    "# What scripts of Legion's seed from.",
    'export MOAB_JOBARRAYINDEX="$rank"',
    ...(meets ? torchLines(flags) : []),
    "",
    `exec >${log}${logNames.stdout('"$rank"')} 2>${log}${logNames.stderr('"$rank"')}`,
    "end() {",
    `  echo "$1 $restarts" >${ended}.new && mv ${ended}.new ${ended}`,
    '  exit "$1"',
    "}",
    "restarts=0 failures=0 stopped= trainer=",
    `trap 'stopped=1; [ -z "$trainer" ] || kill -s TERM "$trainer"' TERM INT`,
    `[ -r ${log}${logNames.credentials} ] || { echo "the credentials cannot be read here" >&2; end 125; }`,
    `. ${log}${logNames.credentials}`,
    `cd ${shellWord(directory)} || end 125`,
    ...(meets ? meetingLines(log) : []),
    "while :; do",
    ...(meets
      ? [
          `  read -r MASTER_ADDR MASTER_PORT <${log}${logNames.meeting}`,
          "  export MASTER_ADDR MASTER_PORT",
        ]
      : []),
    ...exportLines(flags.env ?? {}).map((line) => `  ${line}`),
    "  started=$(date +%s)",
    `  ${shellCommand(command)} </dev/null &`,
    "  trainer=$!",
    '  wait "$trainer"',
    "  code=$?",
    "  # A signal has ended the wait, not the trainer.",
    '  while kill -s 0 "$trainer" 2>/dev/null; do wait "$trainer"; code=$?; done',
    `  [ $(($(date +%s) - started)) -lt ${STEADY_MS / 1000} ] || failures=0`,
    '  [ -z "$stopped" ] || break',
    '  case "$code" in 0 | 126 | 127) break ;; esac',
    `  [ "$failures" -lt ${flags.restarts} ] || break`,
    "  failures=$((failures + 1)) restarts=$((restarts + 1))",
    `  echo "the trainer ended with exit code $code; starting it again ($failures of ${flags.restarts})" >&2`,
    '  sleep "$failures"',
    '  [ -z "$stopped" ] || break',
    "done",
    'end "$code"',
    "",
  ].join("\n");
}

/**
 * Writes lines that set the variables of torch.distributed but the address: each task counts as a machine with
 * one trainer.
 */
function torchLines({ instances }: RunFlags): string[] {
  return [
    `export RANK="$rank" WORLD_SIZE=${instances} LOCAL_RANK=0 LOCAL_WORLD_SIZE=1`,
    `export GROUP_RANK="$rank" GROUP_WORLD_SIZE=${instances}`,
    ...exportLines(OUTER_TORCHRUN),
  ];
}

/** Writes lines that write where trainers meet, in the task of rank 0, or wait until that task has. */
function meetingLines(log: string): string[] {
  const meeting = `${log}${logNames.meeting}`;
  return [
    'if [ "$rank" = 0 ]; then',
    `  ${FREE_PORT_PROGRAM}`,
    "  machine=$(uname -n)",
    "  # Where a machine's name has no address, its own address must do.",
    '  getent hosts "$machine" >/dev/null || for machine in $(hostname -I) 127.0.0.1; do break; done',
    `  echo "$machine $port" >${meeting}.new && mv ${meeting}.new ${meeting} || end 125`,
    "fi",
    "waited=0",
    `while [ ! -e ${meeting} ]; do`,
    `  if [ -n "$stopped" ] || [ -e ${log}${logNames.end(0)} ] || [ "$waited" -ge ${MEETING_SECONDS_MAX} ]; then`,
    `    echo "rank 0 has not said within $waited s where trainers meet" >&2`,
    "    end 125",
    "  fi",
    "  sleep 1",
    "  waited=$((waited + 1))",
    "done",
  ];
}

const SUBMIT_TIMEOUT_MS = 120_000;
const VERSION_TIMEOUT_MS = 10_000;
const SCRIPT = "run.sh";

/** Starts trainers as the tasks of one batch job. All machines must share this directory. */
export function launchBatch(system: BatchSystem): Launcher {
  return {
    isCommandHere: true,
    check(context, flags) {
      refuseFlags(flags, ["machines", "devices", "noToken"]);
      checkProgram(flags, system.submitProgram, context.environment);
      // Throws for values that cannot be written into a script.
      system.header(flags, "");
    },
    describe: (context, flags, command) => describe(system, context, flags, command),
    start: (launch) => submit(system, launch),
  };
}

async function describe(
  system: BatchSystem,
  context: CliContext,
  flags: RunFlags,
  command: TrainerCommand,
): Promise<string> {
  const url = await plannedUrl(context, flags);
  const logDirectory = resolve(flags.store ?? join(".pserver", "run-TIME-PID"), "batch");
  const script = await scriptFor(system, { context, flags, command }, url, logDirectory);
  const submission = [system.submitProgram, ...system.submitArguments(SCRIPT)];
  return `${script}# ${shellCommand(submission)}\n`;
}

/** Returns the broker's address for trainers. Before the broker starts, its port may be unknown: `PORT`. */
async function plannedUrl(context: CliContext, flags: RunFlags): Promise<string> {
  if (usesRunningServer(flags, context.environment))
    return accessOf(flags, context.environment).url;
  const { advertised } = await reachableAddress(flags.advertise);
  const host = advertised.includes(":") ? `[${advertised}]` : advertised;
  return `nats://${host}:${flags.port ?? "PORT"}`;
}

async function submit(system: BatchSystem, launch: Launch): Promise<BatchJob> {
  const { context, flags, server, output } = launch;
  const { environment } = context;
  const logDirectory = join(server.directory, `batch-${process.pid}-${Date.now()}`);
  await io("make", logDirectory, mkdir(logDirectory, { recursive: true }));
  const text = await scriptFor(system, launch, server.access.url, logDirectory);
  const script = join(logDirectory, SCRIPT);
  await io("write", script, writeFile(script, text, { mode: 0o700 }));
  await io("write", script, chmod(script, 0o700));
  await writeCredentials(logDirectory, server.access.credentials);
  const submission = [system.submitProgram, ...system.submitArguments(script)] as const;
  const answer = await runProgram(submission, {
    environment: inheritedEnvironment(launch),
    // The batch system writes its own messages beside the script.
    directory: logDirectory,
    timeoutMs: SUBMIT_TIMEOUT_MS,
  });
  const jobId = answer.code === 0 ? system.jobId(answer.stdout) : undefined;
  if (jobId === undefined) {
    await removeCredentials(logDirectory);
    const said = `${answer.stderr} ${answer.stdout}`.trim();
    const message = `${system.submitProgram} did not take the job: ${said || `exit code ${answer.code}`}`;
    throw new PserverError("UNSUPPORTED", message, { exitCode: answer.code });
  }
  output.message(`submitted as job ${jobId}; what trainers print is also in ${logDirectory}`);
  return BatchJob.follow({
    system,
    jobId,
    instances: flags.instances,
    logDirectory,
    trainerId: (rank) => trainerId(flags, rank),
    output: trainerOutput(launch),
    environment,
    onMessage: (message) => output.warning(message),
  });
}

/**
 * Writes the credentials into a file that only this user can read. Others may read the script, as a file and in
 * the queue, and the environment of a submission: `qstat -f` shows what `qsub -V` has taken from it.
 */
async function writeCredentials(
  logDirectory: string,
  credentials: Readonly<Record<string, string>>,
): Promise<void> {
  const path = join(logDirectory, logNames.credentials);
  const text = exportLines(credentials)
    .map((line) => `${line}\n`)
    .join("");
  await io("write", path, writeFile(path, text, { mode: 0o600, flag: "wx" }));
}

async function scriptFor(
  system: BatchSystem,
  { context, flags, command }: Pick<Launch, "context" | "flags" | "command">,
  url: string,
  logDirectory: string,
): Promise<string> {
  const options = { environment: context.environment, timeoutMs: VERSION_TIMEOUT_MS };
  const { stdout, stderr } = await runProgram([system.submitProgram, "--version"], options);
  return batchScript({
    header: system.header(flags, `${stdout}${stderr}`),
    rank: system.rank,
    flags,
    command,
    variables: sharedVariables(flags, command, url),
    directory: process.cwd(),
    logDirectory,
  });
}

/** Commands of a batch system. */
export interface BatchSystem extends BatchQueue {
  /** The program that submits. */
  readonly submitProgram: string;
  /** Shell expression for the rank of a task. */
  readonly rank: string;
  /** Returns the lines of the script for the resources in the flags; `version` is the output of `--version`. */
  header(flags: RunFlags, version: string): string[];
  /** Returns the arguments that submit a script, with the whole environment of the submission, without secrets. */
  submitArguments(script: string): string[];
  /** Finds the id of a job in the output of the submission; undefined if there is none. */
  jobId(printed: string): string | undefined;
}

const OPTION_VALUE = /^[A-Za-z0-9_.,:=@&|*()+-]{1,200}$/;

/**
 * Checks a value for a line of options, where quoting differs between the systems.
 * @throws BAD_VALUE for anything that could be read as more than one value.
 */
function optionValue(flag: string, value: string): string {
  if (OPTION_VALUE.test(value)) return value;
  const expected = "letters, digits and _ . , : = @ & | * ( ) + -";
  throw mismatch("BAD_VALUE", flag, expected, JSON.stringify(value));
}

/** Writes the tasks of the array, `0-3%2` with a throttle; undefined for a single one, which needs no array. */
function arrayRange({ instances, maxSimultaneous }: RunFlags): string | undefined {
  if (instances === 1) return undefined;
  const throttle = maxSimultaneous === undefined ? "" : `%${maxSimultaneous}`;
  return `0-${instances - 1}${throttle}`;
}

/** The longest name that every PBS takes. */
const NAME_LENGTH_MAX = 15;

/** States of tasks that have ended: completed, finished, expired. */
const OVER = new Set(["C", "F", "X"]);

/** PBS in both of its dialects, Torque's and OpenPBS's: `qsub`, `qstat`, `qdel`. */
export const pbs: BatchSystem = {
  submitProgram: "qsub",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
  rank: "${PBS_ARRAY_INDEX:-${PBS_ARRAYID:-0}}",
  header: pbsHeader,
  submitArguments: (script) => ["-V", script],
  jobId: (printed) => /^(\d+(?:\[\])?\S*)$/m.exec(printed.trim())?.[1],
  cancelCommand: (jobId) => ["qdel", jobId],
  queueCommand: (jobId) => ["qstat", "-t", jobId],
  isQueued({ code, stdout, stderr }) {
    if (code !== 0) return /Unknown Job|has finished/i.test(stderr) ? false : undefined;
    const states = stdout
      .split("\n")
      .filter((line) => /^\d/.test(line))
      .map((line) => line.trim().split(/\s+/).at(-2) ?? "");
    return states.some((state) => !OVER.has(state));
  },
};

function pbsHeader(flags: RunFlags, version: string): string[] {
  const isOpenPbs = /pbs_version/i.test(version);
  const { job, walltime, account, queue } = flags;
  const array = arrayRange(flags);
  const options: readonly (string | undefined)[] = [
    `-N ${`pserver-${job}`.slice(0, NAME_LENGTH_MAX)}`,
    "-S /bin/sh",
    array && `${isOpenPbs ? "-J" : "-t"} ${array}`,
    walltime === undefined ? undefined : `-l walltime=${formatWallTime(walltime)}`,
    account && `-A ${optionValue("--account", account)}`,
    queue && `-q ${optionValue("--queue", queue)}`,
    ...(isOpenPbs ? [openPbsNode(flags)] : torqueNode(flags)),
  ];
  return options.filter((option) => option !== undefined).map((option) => `#PBS ${option}`);
}

function openPbsNode({ gpus, constraint }: RunFlags): string {
  const devices = gpus === undefined ? "" : `:ngpus=${gpus}`;
  const kind = constraint === undefined ? "" : `:${optionValue("--constraint", constraint)}`;
  return `-l select=1${devices}${kind}`;
}

function torqueNode({ gpus, constraint }: RunFlags): string[] {
  const devices = gpus === undefined ? "" : `:gpus=${gpus}`;
  const kind =
    constraint === undefined ? [] : [`-l feature=${optionValue("--constraint", constraint)}`];
  return [`-l nodes=1${devices}`, ...kind];
}

/** Slurm: `sbatch`, `squeue`, `scancel`. */
export const slurm: BatchSystem = {
  submitProgram: "sbatch",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
  rank: "${SLURM_ARRAY_TASK_ID:-0}",
  header: slurmHeader,
  // The command line overrides SBATCH_EXPORT and the site's default.
  submitArguments: (script) => ["--parsable", "--export=ALL", script],
  jobId: (printed) => /^(\d+)(?:;|$)/m.exec(printed)?.[1],
  cancelCommand: (jobId) => ["scancel", jobId],
  queueCommand: (jobId) => ["squeue", "--noheader", "--jobs", jobId, "--format", "%T"],
  isQueued({ code, stdout, stderr }) {
    if (code === 0) return stdout.trim() !== "";
    // Slurm forgets a job some minutes after its end.
    return /Invalid job id/i.test(stderr) ? false : undefined;
  },
};

function slurmHeader(flags: RunFlags): string[] {
  const { job, walltime, account, queue, constraint, gpus } = flags;
  const array = arrayRange(flags);
  const options: readonly (string | undefined)[] = [
    `--job-name=pserver-${job}`,
    array && `--array=${array}`,
    "--nodes=1",
    "--ntasks=1",
    walltime === undefined ? undefined : `--time=${formatWallTime(walltime)}`,
    account && `--account=${optionValue("--account", account)}`,
    queue && `--partition=${optionValue("--queue", queue)}`,
    gpus === undefined ? undefined : `--gres=gpu:${gpus}`,
    constraint && `--constraint=${optionValue("--constraint", constraint)}`,
  ];
  return options.filter((option) => option !== undefined).map((option) => `#SBATCH ${option}`);
}
