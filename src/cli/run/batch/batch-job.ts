import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { PserverError } from "../../../protocol/errors.ts";
import { errnoCode, fileError } from "../../../protocol/file-errors.ts";
import type { TrainerEnd } from "../kept-trainer.ts";
import type { RunningTrainers } from "../trainer-team.ts";
import { logNames } from "./batch-script.ts";
import type { BatchSystem, QueueAnswer } from "./batch-system.ts";
import { runProgram } from "./run-program.ts";

/** A job that was submitted. */
export interface BatchJobOptions {
  readonly system: BatchSystem;
  readonly jobId: string;
  readonly instances: number;
  readonly logDirectory: string;
  readonly trainerId: (rank: number) => string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onMessage: (text: string) => void;
}

const POLL_MS = 1_000;

/** The queue is asked less often than files are looked for: that is one server for everybody. */
const POLLS_PER_QUEUE_QUERY = 10;
const QUERY_TIMEOUT_MS = 60_000;

/** How long a file may take to appear on another machine after the task that wrote it is gone. */
const FILES_TIMEOUT_MS = 30_000;

/** How long the queue may not answer, and how long a job that was cancelled may take to go. */
const SILENCE_MS_MAX = 3_600_000;
const CANCEL_TIMEOUT_MS = 120_000;

/** The trainers of a batch job, seen by the files in which they tell how they ended, and by the queue. */
export class BatchJob implements RunningTrainers {
  readonly ended: Promise<readonly TrainerEnd[]>;
  readonly #options: BatchJobOptions;
  readonly #stopping = new AbortController();
  #isGone = false;

  constructor(options: BatchJobOptions) {
    this.#options = options;
    this.ended = this.#watch();
    this.ended.catch(() => {});
  }

  /** Cancels the job and waits until the queue has it no more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#isGone) return;
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

  async #watch(): Promise<readonly TrainerEnd[]> {
    const { signal } = this.#stopping;
    let answeredMs = performance.now();
    for (let polls = 1; !signal.aborted; polls++) {
      const ends = await this.#readEnds();
      const failed = ends.some(({ exitCode }) => exitCode !== 0);
      if (failed || ends.length === this.#options.instances) return this.#over(ends);
      if (polls % POLLS_PER_QUEUE_QUERY === 0) {
        const isQueued = await this.#isQueued();
        if (isQueued === false) return this.#over(await this.#lastEnds());
        if (isQueued === true) answeredMs = performance.now();
        else if (performance.now() - answeredMs > SILENCE_MS_MAX) throw this.#silent();
      }
      await delay(POLL_MS, undefined, { signal }).catch(() => {});
    }
    return [];
  }

  #over(ends: readonly TrainerEnd[]): readonly TrainerEnd[] {
    this.#isGone = ends.length === this.#options.instances;
    return ends;
  }

  /** How all have ended: one that has not told has failed. */
  async #lastEnds(): Promise<readonly TrainerEnd[]> {
    const { instances, jobId, trainerId, onMessage, logDirectory } = this.#options;
    const deadlineMs = performance.now() + FILES_TIMEOUT_MS;
    let ends = await this.#readEnds();
    while (ends.length < instances && performance.now() < deadlineMs) {
      await delay(POLL_MS);
      ends = await this.#readEnds();
    }
    const told = new Set(ends.map(({ rank }) => rank));
    const silent = Array.from({ length: instances }, (_, rank) => rank).filter(
      (rank) => !told.has(rank),
    );
    if (silent.length === 0) return ends;
    const names = silent.map(trainerId).join(", ");
    onMessage(`job ${jobId} has ended, and ${names} did not tell how: see ${logDirectory}`);
    const lost = silent.map((rank) => ({
      rank,
      trainer: trainerId(rank),
      exitCode: 1,
      restarts: 0,
    }));
    return [...ends, ...lost];
  }

  async #readEnds(): Promise<TrainerEnd[]> {
    const ranks = Array.from({ length: this.#options.instances }, (_, rank) => rank);
    const ends = await Promise.all(ranks.map((rank) => this.#readEnd(rank)));
    return ends.filter((end) => end !== undefined);
  }

  async #readEnd(rank: number): Promise<TrainerEnd | undefined> {
    const { logDirectory, trainerId } = this.#options;
    const path = join(logDirectory, logNames.end(rank));
    try {
      const match = /^(\d{1,3}) (\d{1,9})$/.exec((await readFile(path, "utf8")).trim());
      if (match === null) throw new PserverError("BAD_FILE", `${path}: expected an exit code`);
      const [exitCode = 1, restarts = 0] = match.slice(1).map(Number);
      return { rank, trainer: trainerId(rank), exitCode, restarts };
    } catch (error) {
      if (errnoCode(error) === "ENOENT") return undefined;
      throw fileError("read", path, error);
    }
  }

  async #isQueued(): Promise<boolean | undefined> {
    const { system, jobId } = this.#options;
    return system.isQueued(await this.#run(system.queueCommand(jobId)));
  }

  #run(command: readonly [program: string, ...args: string[]]): Promise<QueueAnswer> {
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
