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
  readonly trainer: string;
  /** Whether it asks for values, for which one that is no member may wait, too. */
  readonly isRead: boolean;
}

/** Requests that are answered once a step of a shard has closed. Does no I/O. */
export class StepQueue {
  readonly #shard: number;
  readonly #reads: PendingReads<WantedStep & { readonly progress: StepProgress }>;

  constructor(shard: number, clock?: Clock) {
    this.#shard = shard;
    this.#reads = new PendingReads({
      shard,
      evaluate: (wanted) => evaluateStep(wanted, wanted.progress),
      timeout: (wanted, waitMs) => this.#timeout(wanted, waitMs),
      clock,
    });
  }

  /**
   * Runs `run` once the steps have progressed as wanted. Calls `refuse` with TIMEOUT after `waitMs`,
   * which names the trainers waited for, with what {@link evaluateStep} refuses, or with BUSY if too many
   * requests are pending. `progress` is a live view.
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

/**
 * Whether a request is answered, waits, or is refused: with UNSUPPORTED in an `async` job, or with NOT_MEMBER
 * if the step might never close because of the asker. A trainer waits only for steps that it has ended. If it
 * is no member, nobody waits for it. If the shard's clock of it is lower, it has been removed and has entered
 * again without its knowledge, by a request that came late: all others wait for it.
 */
export function evaluateStep(wanted: WantedStep, progress: StepProgress): Evaluation {
  const { revision, step, trainer, isRead } = wanted;
  if (progress.synchronization.mode === "async") {
    const text = "the trainers of this job do not keep step: it is async";
    const details = { expected: "sync or ssp", received: "async" };
    return { kind: "refuse", error: new PserverError("UNSUPPORTED", text, details) };
  }
  if (progress.revision < revision) return WAIT;
  if (progress.closed >= step) return ANSWER;
  const clock = progress.clockOf(trainer);
  if (clock === undefined ? isRead : clock >= step) return WAIT;
  const what =
    clock === undefined
      ? "is not a member of the job's steps"
      : `has become a member of the job's steps anew, in which it has ended step ${clock}`;
  const error = new PserverError(
    "NOT_MEMBER",
    `trainer ${quoteName(trainer)} ${what}: it has to enter before it waits for step ${step}`,
    { trainer, expected: step, received: clock ?? progress.closed },
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
