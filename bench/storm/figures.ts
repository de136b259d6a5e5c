import { type Spread, spread } from "../statistics.ts";
import type { JournalFacts } from "./journal-facts.ts";
import type { LearnerLog } from "./learner-log.ts";
import { Presence, type TimelineEvent } from "./timeline.ts";

/** All that is known of a run. */
export interface RunRecord {
  /** The time that counts, in milliseconds since 1970. */
  readonly fromMs: number;
  readonly untilMs: number;
  readonly timeline: readonly TimelineEvent[];
  readonly logs: readonly LearnerLog[];
  readonly facts: JournalFacts;
}

/** Figures of a run. Times are in milliseconds. */
export interface RunFigures {
  /** Rounds of all fragments that closed in the time that counts. */
  readonly rounds: number;
  /** Mean share of the live learners that take part in a round, and the least; NaN without rounds. */
  readonly participation: number;
  readonly leastParticipation: number;
  /** Share of the inner steps in contributions that were dropped because they came too late. */
  readonly droppedShare: number;
  /** From each start after a kill to the learner's next contribution that counts; infinite if none came. */
  readonly recoveryMs: readonly number[];
  /** The same from each end of a pause or a partition. */
  readonly resumptionMs: readonly number[];
  /** The longest time without a close of any fragment. */
  readonly longestGapMs: number;
  /** Inner steps in one contribution. */
  readonly stepsEach: Spread;
}

/** Measures a run. */
export function measureRun({ fromMs, untilMs, timeline, logs, facts }: RunRecord): RunFigures {
  const presence = new Presence(timeline, logs);
  const closed = facts.rounds.flatMap(({ closedMs, ...round }) =>
    closedMs === undefined ? [] : [{ ...round, closedMs }],
  );
  const counted = closed
    .filter(({ closedMs }) => closedMs >= fromMs && closedMs < untilMs)
    .sort((a, b) => a.closedMs - b.closedMs);
  const shares = counted.flatMap(({ fragment, round, closedMs, merged }) => {
    const before = closed.find((each) => each.fragment === fragment && each.round === round - 1);
    const live = presence.presentThroughout(before?.closedMs ?? fromMs, closedMs);
    const part = new Set(merged.map(({ trainer }) => presence.learnerOf.get(trainer)));
    const present = live.filter((learner) => part.has(learner)).length;
    return live.length === 0 ? [] : [present / live.length];
  });
  const sent = facts.contributions.filter((each) => each.timeMs >= fromMs && each.timeMs < untilMs);
  const steps = (list: readonly { steps: number }[]): number =>
    list.reduce((sum, each) => sum + each.steps, 0);
  const nextCounted = (trainer: string, sinceMs: number): number => {
    const times = facts.contributions.flatMap((each) =>
      each.trainer === trainer && each.round !== undefined && each.timeMs > sinceMs
        ? [each.timeMs]
        : [],
    );
    return Math.min(...times) - sinceMs;
  };
  const after = (...names: readonly TimelineEvent["what"][]): number[] =>
    timeline.flatMap((event) =>
      "learner" in event && names.includes(event.what) && event.timeMs >= fromMs
        ? [nextCounted(event.trainer, event.timeMs)]
        : [],
    );
  const times = [fromMs, ...counted.map(({ closedMs }) => closedMs), untilMs];
  return {
    rounds: counted.length,
    participation: shares.reduce((sum, share) => sum + share, 0) / shares.length,
    leastParticipation: Math.min(...shares),
    droppedShare: steps(sent.filter(({ code }) => code === "LATE")) / steps(sent),
    recoveryMs: after("started"),
    resumptionMs: after("continued", "joined"),
    longestGapMs: Math.max(...times.slice(1).map((timeMs, i) => timeMs - (times[i] ?? timeMs))),
    stepsEach: spread(sent.map((each) => each.steps)),
  };
}
