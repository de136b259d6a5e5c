import type { LearnerLog } from "./learner-log.ts";

/** What was done to a process or a link, when it was done. */
export type TimelineEvent = {
  /** In milliseconds since 1970. */
  readonly timeMs: number;
} & (
  | {
      readonly what: "started" | "killed" | "stopped" | "continued" | "cut" | "joined";
      /** Number of the learner, which it keeps when it gets a new id. */
      readonly learner: number;
      readonly trainer: string;
    }
  | { readonly what: "host killed" | "host started"; readonly host: number }
  | { readonly what: "broker killed" | "broker started" }
);

/** A time in which a learner could not take part. */
interface Absence {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Which learners were alive, connected and in possession of the job's values, and when. */
export class Presence {
  /** The number of the learner that has trained under an id. */
  readonly learnerOf: ReadonlyMap<string, number>;
  readonly #absences: ReadonlyMap<number, readonly Absence[]>;

  constructor(timeline: readonly TimelineEvent[], logs: readonly LearnerLog[]) {
    const own = timeline.flatMap((event) => ("learner" in event ? [event] : []));
    this.learnerOf = new Map(own.map(({ trainer, learner }) => [trainer, learner]));
    const absences = new Map<number, Absence[]>();
    for (const learner of this.learnerOf.values()) absences.set(learner, []);
    for (const { what, timeMs, learner, trainer } of own) {
      const ends = { killed: "started", stopped: "continued", cut: "joined" } as const;
      if (what === "started") {
        const beganMs = firstAdoption(logs, trainer, timeMs);
        absences.get(learner)?.push({ fromMs: timeMs, untilMs: beganMs });
      } else if (what === "killed" || what === "stopped" || what === "cut") {
        const end = own.find(
          (event) =>
            event.learner === learner && event.what === ends[what] && event.timeMs > timeMs,
        );
        const untilMs = end?.timeMs ?? Number.POSITIVE_INFINITY;
        absences.get(learner)?.push({ fromMs: timeMs, untilMs });
      }
    }
    this.#absences = absences;
  }

  /** The learners that could take part from one time to another without a break. */
  presentThroughout(fromMs: number, untilMs: number): number[] {
    return [...this.#absences].flatMap(([learner, absences]) =>
      absences.some((absence) => absence.fromMs < untilMs && absence.untilMs > fromMs)
        ? []
        : [learner],
    );
  }
}

/** When a process that was started had the job's values. */
function firstAdoption(logs: readonly LearnerLog[], trainer: string, startedMs: number): number {
  const lines = logs.find((log) => log.trainer === trainer)?.lines ?? [];
  const adopted = lines.find(({ event, timeMs }) => event === "adopted" && timeMs >= startedMs);
  return adopted?.timeMs ?? Number.POSITIVE_INFINITY;
}
