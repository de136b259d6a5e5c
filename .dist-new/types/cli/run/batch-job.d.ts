import type { RunningTrainers, TrainerEnd } from "./launch.ts";
import { type ProgramAnswer } from "./trainer-command.ts";
import type { TrainerOutput } from "./trainer-output.ts";
/** Names of a trainer's files in the log directory. The rank may be a shell expression. */
export declare const logNames: {
    stdout: (rank: number | string) => string;
    stderr: (rank: number | string) => string;
    /** Exit code and number of restarts; written when the trainer has ended for good. */
    end: (rank: number | string) => string;
    /** The file that says where torch's trainers meet: the address of rank 0's machine, and a port. */
    meeting: string;
};
/** The trainers of a batch job, and where they write how they ended. */
interface TaskFiles {
    readonly instances: number;
    readonly logDirectory: string;
    readonly trainerId: (rank: number) => string;
}
/** A file that another process appends to, possibly on another machine. */
export declare class GrowingFile {
    #private;
    constructor(path: string);
    /**
     * Passes on the bytes since the last call, up to the present size; none if the file does not exist yet. A
     * file that has become shorter was replaced, and is read from its start.
     * @throws what the file system says.
     */
    readNew(take: (bytes: Buffer) => Promise<void>): Promise<void>;
}
/** Dependencies of {@link TaskOutput}. */
export interface TaskOutputOptions {
    readonly logDirectory: string;
    readonly instances: number;
    readonly output: TrainerOutput;
    readonly onMessage: (text: string) => void;
}
/** Prints the files of a batch job's tasks while they are written. Memory holds one chunk of one file. */
export declare class TaskOutput {
    #private;
    private constructor();
    /** Prints from now on what the tasks write. */
    static follow({ logDirectory, instances, output, onMessage }: TaskOutputOptions): TaskOutput;
    /** Settles when everything written so far is printed. */
    printWritten(): Promise<void>;
    /** Prints the rest, including last lines without an end, after all tasks have ended. */
    finish(): Promise<void>;
}
/** How a batch system is asked about a job. */
export interface BatchQueue {
    cancelCommand(jobId: string): readonly [program: string, ...args: string[]];
    queueCommand(jobId: string): readonly [program: string, ...args: string[]];
    /** Whether a job still waits or runs; undefined if the answer of `queueCommand` does not say. */
    isQueued(answer: ProgramAnswer): boolean | undefined;
}
/** A submitted job, and how to follow it. */
export interface BatchJobOptions extends TaskFiles {
    readonly system: BatchQueue;
    readonly jobId: string;
    readonly output: TrainerOutput;
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly onMessage: (text: string) => void;
}
/** The trainers of a batch job, followed through the queue and the files with their output and exit codes. */
export declare class BatchJob implements RunningTrainers {
    #private;
    private constructor();
    /** Follows a job that was submitted. */
    static follow(options: BatchJobOptions): BatchJob;
    get ended(): Promise<void>;
    ends(): readonly TrainerEnd[];
    /** Cancels the job, waits until it has left the queue, and prints the rest of what its tasks wrote. */
    stop(): Promise<void>;
}
export {};
//# sourceMappingURL=batch-job.d.ts.map