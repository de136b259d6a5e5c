import { STEADY_MS } from "../../up/restarts.ts";
import type { TrainerCommand } from "../command-line.ts";
import type { RunFlags } from "../run-flags.ts";
import { exportLines, shellCommand, shellWord } from "../shell-words.ts";
import { FREE_PORT_PROGRAM, OUTER_TORCHRUN } from "../torch-rendezvous.ts";
import { logNames } from "./log-names.ts";

/** How long a task waits for that of rank 0: the batch system may start them at different times. */
const MEETING_SECONDS_MAX = 3_600;

/** Contents of a batch script. */
export interface BatchScript {
  /** Lines that request resources from the batch system. */
  readonly header: readonly string[];
  /** Shell expression for the rank. */
  readonly rank: string;
  readonly flags: RunFlags;
  readonly command: TrainerCommand;
  /** Variables of every trainer besides those of `--env`. Others may read the script, so none is secret. */
  readonly variables: Readonly<Record<string, string>>;
  /** Where trainers run. */
  readonly directory: string;
  /** Directory of the trainers' output and exit codes. */
  readonly logDirectory: string;
}

/**
 * The script of a batch job: each task runs one trainer, starts it again when it fails, passes SIGTERM on to it,
 * and leaves a file that tells how it ended.
 */
export function batchScript(script: BatchScript): string {
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

/** Variables of torch.distributed but the address: each task counts as a machine with one trainer. */
function torchLines({ instances }: RunFlags): string[] {
  return [
    `export RANK="$rank" WORLD_SIZE=${instances} LOCAL_RANK=0 LOCAL_WORLD_SIZE=1`,
    `export GROUP_RANK="$rank" GROUP_WORLD_SIZE=${instances}`,
    ...exportLines(OUTER_TORCHRUN),
  ];
}

/** Lines that write where trainers meet, in the task of rank 0, or wait until that task has. */
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
