import { setTimeout as delay } from "node:timers/promises";
import { PserverError } from "../../../protocol/errors.ts";
import { type ProgramAnswer, runProgram } from "../run-program.ts";
import type { RunningTrainers, TrainerEnd } from "../running-trainers.ts";
import type { TrainerOutput } from "../trainer-output.ts";
import type { BatchSystem } from "./batch-system.ts";
import { readEnds, silentEnds, type TaskFiles } from "./task-ends.ts";
import { TaskOutput } from "./task-output.ts";

/** A submitted job, and how to follow it. */
export interface BatchJobOptions extends TaskFiles {
  readonly system: BatchSystem;
  readonly jobId: string;
  readonly output: TrainerOutput;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onMessage: (text: string) => void;
}

const POLL_MS = 1_000;

/** The queue is asked less often than files are looked for: all users share one queue server. */
const POLLS_PER_QUEUE_QUERY = 10;
const QUERY_TIMEOUT_MS = 60_000;

/** How long a file that a task has written may take to appear here: NFS may look only once a minute. */
const FILES_TIMEOUT_MS = 70_000;

/** How long the reader may take for the rest of the output, which stays in the files. */
const OUTPUT_TIMEOUT_MS = 10_000;

/** How long the queue may fail to answer, and how long a cancelled job may stay in it. */
const SILENCE_MS_MAX = 3_600_000;
const CANCEL_TIMEOUT_MS = 120_000;

/** The trainers of a batch job, followed through the queue and the files with their output and exit codes. */
export class BatchJob implements RunningTrainers {
  readonly #options: BatchJobOptions;
  readonly #output: TaskOutput;
  readonly #stopping = new AbortController();
  #ends: readonly TrainerEnd[] = [];
  #ended: Promise<void> = Promise.resolve();

  private constructor(options: BatchJobOptions, output: TaskOutput) {
    this.#options = options;
    this.#output = output;
  }

  /** Follows a job that was submitted. */
  static follow(options: BatchJobOptions): BatchJob {
    const job = new BatchJob(options, TaskOutput.follow(options));
    job.#ended = job.#untilEnded();
    job.#ended.catch(() => {});
    return job;
  }

  get ended(): Promise<void> {
    return this.#ended;
  }

  ends(): readonly TrainerEnd[] {
    return this.#ends;
  }

  /** Cancels the job, waits until it has left the queue, and prints the rest of what its tasks wrote. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#ends.length < this.#options.instances) await this.#cancel();
    const isPrinted = this.#output.finish().then(() => true);
    const timer = new AbortController();
    const late = delay(OUTPUT_TIMEOUT_MS, false, { signal: timer.signal }).catch(() => false);
    const { logDirectory, onMessage } = this.#options;
    if (!(await Promise.race([isPrinted, late]).finally(() => timer.abort()))) {
      onMessage(`nobody reads what trainers printed; all of it is in ${logDirectory}`);
    }
  }

  async #cancel(): Promise<void> {
    const { system, jobId, onMessage } = this.#options;
    const { code, stderr } = await this.#run(system.cancelCommand(jobId));
    const deadlineMs = performance.now() + CANCEL_TIMEOUT_MS;
    while (performance.now() < deadlineMs) {
      if ((await this.#isQueued()) === false) return;
      await delay(POLL_MS);
    }
    const why = code === 0 ? "" : `: ${stderr.trim()}`;
    onMessage(`job ${jobId} was to be cancelled and is still in the queue${why}`);
  }

  async #untilEnded(): Promise<void> {
    const ends = await this.#watch();
    if (ends === undefined) return;
    this.#ends = ends;
    // The output of trainers is printed before the report of how they ended.
    await this.#output.printWritten();
  }

  /** How trainers ended, once all have or one has failed; undefined if the job is stopped before. */
  async #watch(): Promise<readonly TrainerEnd[] | undefined> {
    const { signal } = this.#stopping;
    let answeredMs = performance.now();
    for (let polls = 1; !signal.aborted; polls++) {
      const ends = await readEnds(this.#options);
      const failed = ends.some(({ exitCode }) => exitCode !== 0);
      if (failed || ends.length === this.#options.instances) return ends;
      if (polls % POLLS_PER_QUEUE_QUERY === 0) {
        const isQueued = await this.#isQueued();
        if (isQueued === false) return await this.#lastEnds();
        if (isQueued === true) answeredMs = performance.now();
        else if (performance.now() - answeredMs > SILENCE_MS_MAX) throw this.#silent();
      }
      await delay(POLL_MS, undefined, { signal }).catch(() => {});
    }
    return undefined;
  }

  /** How all have ended; one that has not told counts as failed. */
  async #lastEnds(): Promise<readonly TrainerEnd[]> {
    const { instances, jobId, onMessage, logDirectory } = this.#options;
    const deadlineMs = performance.now() + FILES_TIMEOUT_MS;
    let ends = await readEnds(this.#options);
    while (ends.length < instances && performance.now() < deadlineMs) {
      await delay(POLL_MS);
      ends = await readEnds(this.#options);
    }
    const silent = silentEnds(this.#options, ends);
    if (silent.length === 0) return ends;
    const names = silent.map(({ trainer }) => trainer).join(", ");
    onMessage(
      `job ${jobId} has ended, and ${names} did not tell how: see ${logDirectory}, a directory that all machines must share`,
    );
    return [...ends, ...silent];
  }

  async #isQueued(): Promise<boolean | undefined> {
    const { system, jobId } = this.#options;
    return system.isQueued(await this.#run(system.queueCommand(jobId)));
  }

  #run(command: readonly [program: string, ...args: string[]]): Promise<ProgramAnswer> {
    const { environment } = this.#options;
    return runProgram(command, { environment, timeoutMs: QUERY_TIMEOUT_MS });
  }

  #silent(): PserverError {
    const { system, jobId } = this.#options;
    const [program] = system.queueCommand(jobId);
    const message = `${program} has not said for ${SILENCE_MS_MAX / 60_000} minutes whether job ${jobId} runs`;
    return new PserverError("TIMEOUT", message, { jobId });
  }
}
