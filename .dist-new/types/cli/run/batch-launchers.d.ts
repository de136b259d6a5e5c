import { type BatchQueue } from "./batch-job.ts";
import { type Launcher } from "./launch.ts";
import { type RunFlags } from "./run-flags.ts";
/** Starts trainers as the tasks of one batch job. All machines must share this directory. */
export declare function launchBatch(system: BatchSystem): Launcher;
/** Commands of a batch system. */
export interface BatchSystem extends BatchQueue {
    /** The program that submits. */
    readonly submitProgram: string;
    /** Shell expression for the rank of a task. */
    readonly rank: string;
    /** Returns the lines of the script for the resources in the flags; `version` is the output of `--version`. */
    header(flags: RunFlags, version: string): string[];
    /** Returns the arguments that submit a script, with the whole environment of the submission. */
    submitArguments(script: string): string[];
    /** Finds the id of a job in the output of the submission; undefined if there is none. */
    jobId(printed: string): string | undefined;
}
/** PBS in both of its dialects, Torque's and OpenPBS's: `qsub`, `qstat`, `qdel`. */
export declare const pbs: BatchSystem;
/** Slurm: `sbatch`, `squeue`, `scancel`. */
export declare const slurm: BatchSystem;
//# sourceMappingURL=batch-launchers.d.ts.map