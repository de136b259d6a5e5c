import type { RunFlags } from "../run-flags.ts";
import { formatWallTime } from "../wall-time.ts";
import { arrayRange, type BatchSystem, optionValue } from "./batch-system.ts";

/** Slurm: `sbatch`, `squeue`, `scancel`. */
export const slurm: BatchSystem = {
  submitProgram: "sbatch",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
  rank: "${SLURM_ARRAY_TASK_ID:-0}",
  header,
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

function header(flags: RunFlags): string[] {
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
