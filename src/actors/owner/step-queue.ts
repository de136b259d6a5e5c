import { PserverError, quoteName, WAITING_FOR_MAX } from "../../protocol/index.ts";
import type { StepProgress } from "../fold/step-table.ts";
import { type Verdict, type Visit, WaitingRoom } from "./waiting-room.ts";

/** What a request needs of the steps of a shard. */
export interface WantedStep {
  /** The revision of the members that must be known. */
  readonly revision: number;
  /** The step that must have closed. */
  readonly step: number;
  /** Who keeps step and waits for the others; absent for one who only looks on. */
  readonly trainer?: string;
}

/** Requests that are answered once a step of a shard has closed. */
export class StepQueue {
  readonly #shard: number;
  readonly #room: WaitingRoom<WantedStep & { readonly progress: StepProgress }>;

  constructor(shard: number) {
    this.#shard = shard;
    this.#room = new WaitingRoom({
      shard,
      judge: (wanted) => judge(wanted, wanted.progress),
      tooLate: (wanted, waitMs) => this.#tooLate(wanted, waitMs),
    });
  }

  /**
   * Runs `run` now if the steps are as far as wanted, else when {@link advance} finds them so; calls
   * `refuse` after `waitMs` with TIMEOUT, which names who is waited for; at once with UNSUPPORTED in a
   * job without steps, with NOT_MEMBER if the trainer waits for a step although it keeps none.
   * `progress` is a live view.
   */
  at(progress: StepProgress, { wanted, ...visit }: Visit<WantedStep>): void {
    this.#room.enter({ ...visit, wanted: { ...wanted, progress } });
  }

  /** Looks at all that wait, after records have been folded. */
  advance(): void {
    this.#room.review();
  }

  /** Refuses all that wait. */
  refuseAll(error: PserverError): void {
    this.#room.refuseAll(error);
  }

  #tooLate(wanted: WantedStep & { readonly progress: StepProgress }, waitMs: number): PserverError {
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

function judge({ revision, step, trainer }: WantedStep, progress: StepProgress): Verdict {
  if (progress.synchronization.mode === "async") {
    const text = "the trainers of this job do not keep step: it is async";
    return new PserverError("UNSUPPORTED", text, { expected: "sync or ssp", received: "async" });
  }
  if (progress.revision < revision) return "wait";
  if (progress.closed >= step) return "answer";
  if (trainer === undefined || progress.isMember(trainer)) return "wait";
  // The others may wait for nobody any more, or be gone: to wait could be for ever.
  return new PserverError(
    "NOT_MEMBER",
    `trainer ${quoteName(trainer)} is not a member of the job's steps: it has to enter before it ` +
      `waits for step ${step}`,
    { trainer, expected: step, received: progress.closed },
  );
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
