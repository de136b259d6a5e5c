import { setTimeout as delay } from "node:timers/promises";
import { PserverError } from "../../../protocol/errors.ts";
import { type ProgramAnswer, runProgram } from "../run-program.ts";
import type { RunningTrainers, TrainerEnd } from "../running-trainers.ts";
import type { TrainerOutput } from "../trainer-output.ts";
import type { BatchSystem } from "./batch-system.ts";
import { readEnds, silentEnds, type TaskFiles } from "./task-ends.ts";
import { TaskOutput } from "./task-output.ts";

/** A job that was submitted. */
export interface BatchJobOptions extends TaskFiles {
  readonly system: BatchSystem;
  readonly jobId: string;
  readonly output: TrainerOutput;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onMessage: (text: string) => void;
}

const POLL_MS = 1_000;

/** The queue is asked less often than files are looked for: that is one server for everybody. */
const POLLS_PER_QUEUE_QUERY = 10;
const QUERY_TIMEOUT_MS = 60_000;

/** How long a file may take to appear here that a task has written elsewhere: NFS may look only once a minute. */
const FILES_TIMEOUT_MS = 70_000;

/** How long the rest of the output may take whoever reads it; it stays in the files. */
const OUTPUT_TIMEOUT_MS = 10_000;

/** How long the queue may not answer, and how long a job that was cancelled may take to go. */
const SILENCE_MS_MAX = 3_600_000;
const CANCEL_TIMEOUT_MS = 120_000;

/**
 * The trainers of a batch job, seen by the queue and by the files in which they tell what they print and how they
 * ended.
 */
export class BatchJob implements RunningTrainers {
  readonly ended: Promise<void>;
  readonly #options: BatchJobOptions;
  readonly #output: TaskOutput;
  readonly #stopping = new AbortController();
  #ends: readonly TrainerEnd[] = [];

  constructor(options: BatchJobOptions) {
    this.#options = options;
    this.#output = new TaskOutput(options);
    this.ended = this.#untilEnded();
    this.ended.catch(() => {});
  }

  ends(): readonly TrainerEnd[] {
    return this.#ends;
  }

  /** Cancels the job, waits until the queue has it no more, and prints the rest of what its tasks wrote. */
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
    // What a trainer has said comes before what is said of it.
    await this.#output.printWritten();
  }

  /** How trainers ended, once the run is over by that; undefined if it is stopped before. */
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

  /** How all have ended: one that has not told has failed. */
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
