import { PserverError, quoteName, WAITING_FOR_MAX } from "../../protocol/index.ts";
import type { Clock } from "../clock.ts";
import type { StepProgress } from "../fold/step-table.ts";
import { ANSWER, type Evaluation, type PendingRead, PendingReads, WAIT } from "./pending-reads.ts";

/** State of a shard's steps that a request needs. */
export interface WantedStep {
  /** Revision of the members that must be known. */
  readonly revision: number;
  /** Step that must have closed. */
  readonly step: number;
  /** The asker if it takes part in the steps; absent for one that only reads. */
  readonly trainer?: string;
}

/** Requests that are answered once a step of a shard has closed. Does no I/O. */
export class StepQueue {
  readonly #shard: number;
  readonly #reads: PendingReads<WantedStep & { readonly progress: StepProgress }>;

  constructor(shard: number, clock?: Clock) {
    this.#shard = shard;
    this.#reads = new PendingReads({
      shard,
      evaluate: (wanted) => evaluate(wanted, wanted.progress),
      timeout: (wanted, waitMs) => this.#timeout(wanted, waitMs),
      clock,
    });
  }

  /**
   * Runs `run` once the steps have progressed as wanted. Calls `refuse` with TIMEOUT after `waitMs`,
   * which names the trainers waited for, UNSUPPORTED in an `async` job, NOT_MEMBER if the trainer is
   * no member while its step is open, or BUSY if too many requests are pending.
   * `progress` is a live view.
   */
  at(progress: StepProgress, { wanted, ...read }: PendingRead<WantedStep>): void {
    this.#reads.add({ ...read, wanted: { ...wanted, progress } });
  }

  /** Answers or refuses requests after records have been folded. */
  advance(): void {
    this.#reads.evaluateAll();
  }

  /** Refuses all pending requests. */
  refuseAll(error: PserverError): void {
    this.#reads.refuseAll(error);
  }

  #timeout(wanted: WantedStep & { readonly progress: StepProgress }, waitMs: number): PserverError {
    const { revision, step, progress } = wanted;
    const waitingFor = progress.waitingFor(WAITING_FOR_MAX);
    return new PserverError(
      "TIMEOUT",
      `shard ${this.#shard}: ${reason(wanted, progress, waitingFor)}; waited ${waitMs} ms`,
      {
        shard: this.#shard,
        expected: { revision, step },
        received: { revision: progress.revision, step: progress.closed },
        waitingFor,
      },
    );
  }
}

function evaluate({ revision, step, trainer }: WantedStep, progress: StepProgress): Evaluation {
  if (progress.synchronization.mode === "async") {
    const text = "the trainers of this job do not keep step: it is async";
    const details = { expected: "sync or ssp", received: "async" };
    return { kind: "refuse", error: new PserverError("UNSUPPORTED", text, details) };
  }
  if (progress.revision < revision) return WAIT;
  if (progress.closed >= step) return ANSWER;
  if (trainer === undefined || progress.isMember(trainer)) return WAIT;
  // Nobody waits for a trainer that is no member, so the step might never close.
  const error = new PserverError(
    "NOT_MEMBER",
    `trainer ${quoteName(trainer)} is not a member of the job's steps: it has to enter before it ` +
      `waits for step ${step}`,
    { trainer, expected: step, received: progress.closed },
  );
  return { kind: "refuse", error };
}

function reason(
  { revision, step }: WantedStep,
  progress: StepProgress,
  waitingFor: readonly string[],
): string {
  const { synchronization, closed, memberCount } = progress;
  if (progress.revision < revision) {
    return `members of revision ${revision} are not known yet, only those of ${progress.revision}`;
  }
  const what = `step ${step} has not closed, the last one is ${closed}`;
  if (!progress.started) {
    const needed = synchronization.mode === "async" ? 0 : synchronization.trainers;
    return `${what}: ${memberCount} of ${needed} trainers have entered`;
  }
  if (memberCount === 0) return `${what}: no trainer is a member any more`;
  const names = waitingFor.map(quoteName).join(", ");
  const more = waitingFor.length < WAITING_FOR_MAX ? "" : ", perhaps others";
  return `${what}: step ${closed + 1} waits for ${names}${more}`;
}
