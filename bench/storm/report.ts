import { spread } from "../statistics.ts";
import { tableText } from "../table.ts";
import type { RunFigures } from "./figures.ts";
import type { StormOptions } from "./options.ts";

/** What is aimed for. */
const AIMS = { rounds: 0.977, participation: 0.95, recoveryMs: 15_000 };

/** A run, and whether the checker found nothing. */
interface CheckedRun {
  readonly figures: RunFigures;
  readonly isRight: boolean;
}

/** Writes the figures of a storm beside those of a run without faults, and which aims were met. */
export function reportRun(
  machine: string,
  { minutes, learners, hosts, seed }: StormOptions,
  calm: CheckedRun,
  storm: CheckedRun,
): string {
  const [a, b] = [calm.figures, storm.figures];
  const ratio = b.rounds / a.rounds;
  const recovery = spread(b.recoveryMs);
  const resumption = spread(b.resumptionMs);
  const rows = [
    ["figure", "fault-free", "storm", "aim", ""],
    [
      "closed rounds",
      `${a.rounds}`,
      `${b.rounds} (${percent(ratio)})`,
      `≥ ${percent(AIMS.rounds)}`,
      met(ratio >= AIMS.rounds),
    ],
    [
      "live learners in a round, mean",
      percent(a.participation),
      percent(b.participation),
      `≥ ${percent(AIMS.participation)}`,
      met(b.participation >= AIMS.participation),
    ],
    [
      "live learners in a round, least",
      percent(a.leastParticipation),
      percent(b.leastParticipation),
      "",
      "",
    ],
    [
      "restart to next contribution that counts, median and longest",
      "",
      `${seconds(recovery.median)}, ${seconds(recovery.max)}`,
      `< ${seconds(AIMS.recoveryMs)}`,
      met(recovery.max < AIMS.recoveryMs),
    ],
    [
      "the same after a pause or partition",
      "",
      `${seconds(resumption.median)}, ${seconds(resumption.max)}`,
      "",
      "",
    ],
    ["longest time without a close", seconds(a.longestGapMs), seconds(b.longestGapMs), "", ""],
    [
      "inner steps that were dropped as late",
      percent(a.droppedShare),
      percent(b.droppedShare),
      "",
      "",
    ],
    ["inner steps in a contribution, least to most", range(a), range(b), "", ""],
    ["checks", right(calm), right(storm), "passed", met(calm.isRight && storm.isRight)],
  ];
  const title = `${learners} learners, ${hosts} hosts, ${minutes} min each, seed ${seed}; ${machine}`;
  return `${title}\n\n${tableText(rows)}`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function range({ stepsEach: { median, min, max } }: RunFigures): string {
  return `${min} to ${max}, median ${median}`;
}

function met(isMet: boolean): string {
  return isMet ? "met" : "missed";
}

function right({ isRight }: CheckedRun): string {
  return isRight ? "passed" : "failed";
}
