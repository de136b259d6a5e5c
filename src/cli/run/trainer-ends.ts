import { formatCount, formatRanges } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import { inWords } from "./exit-code.ts";
import type { TrainerEnd } from "./running-trainers.ts";

/** Prints which trainer's failure ends the run. */
export function tellFailure(output: Output, end: TrainerEnd, instances: number): void {
  const others = instances === 1 ? "" : "; stopping the others";
  output.warning(`${end.trainer} ${fate(end)}${others}`);
}

/** Prints how each trainer ended; those that were stopped are not among `ends`. */
export function tellEnds(output: Output, ends: readonly TrainerEnd[], instances: number): void {
  if (output.json) output.value({ trainers: asJson(ends, instances) });
  else for (const line of endLines(ends, instances)) output.message(line);
}

/** One line for each way of ending, with the ranks that ended so. */
export function endLines(ends: readonly TrainerEnd[], instances: number): string[] {
  const ranksByFate = new Map<string, number[]>();
  for (const [rank, end] of byRank(ends, instances).entries()) {
    const words = fate(end);
    ranksByFate.set(words, [...(ranksByFate.get(words) ?? []), rank]);
  }
  const rows = [...ranksByFate].map(([words, ranks]) => {
    return [`${ranks.length === 1 ? "rank" : "ranks"} ${formatRanges(ranks)}`, words] as const;
  });
  const width = Math.max(...rows.map(([ranks]) => ranks.length));
  return rows.map(([ranks, words]) => `${ranks.padEnd(width)}  ${words}`);
}

function asJson(ends: readonly TrainerEnd[], instances: number): unknown[] {
  return byRank(ends, instances).map((end, rank) => {
    return end === undefined
      ? { rank, stopped: true }
      : { rank, exitCode: end.exitCode, restarts: end.restarts };
  });
}

function byRank(ends: readonly TrainerEnd[], instances: number): (TrainerEnd | undefined)[] {
  const known = new Map(ends.map((end) => [end.rank, end]));
  return Array.from({ length: instances }, (_, rank) => known.get(rank));
}

function fate(end: TrainerEnd | undefined): string {
  if (end === undefined) return "stopped";
  const { exitCode, restarts } = end;
  const again = restarts === 0 ? "" : `; it was started again ${formatCount(restarts, "time")}`;
  return `${exitCode === 0 ? "ended well" : `ended ${inWords(exitCode)}`}${again}`;
}
