import type { RunFlags } from "../run-flags.ts";
import { formatWallTime } from "../wall-time.ts";
import { arrayRange, type BatchSystem, optionValue } from "./batch-system.ts";

/** The longest name that every PBS takes. */
const NAME_LENGTH_MAX = 15;

/** States of tasks that have ended: completed, finished, expired. */
const OVER = new Set(["C", "F", "X"]);

/** PBS in both of its dialects, Torque's and OpenPBS's: `qsub`, `qstat`, `qdel`. */
export const pbs: BatchSystem = {
  submitProgram: "qsub",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
  rank: "${PBS_ARRAY_INDEX:-${PBS_ARRAYID:-0}}",
  header,
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

function header(flags: RunFlags, version: string): string[] {
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
