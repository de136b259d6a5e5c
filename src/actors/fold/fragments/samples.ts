import { sampledMembers } from "../../../protocol/sampling.ts";
import type { StepProgress } from "../step-table.ts";

interface Sample {
  readonly round: number;
  readonly revision: number;
  readonly trainers: ReadonlySet<string>;
}

/**
 * Knows which members may contribute to a round, in a job that draws samples of them. It remembers the last sample of each
 * fragment, because each contribution asks; that is no part of the state.
 */
export class Samples {
  readonly #job: string;
  readonly #last: Map<string, Sample> = new Map();

  constructor(job: string) {
    this.#job = job;
  }

  /** Returns who of the present members may contribute to a round; undefined in a job without samples. */
  of(
    fragment: string,
    round: number,
    { synchronization, revision, members }: StepProgress,
  ): ReadonlySet<string> | undefined {
    if (synchronization.mode !== "diloco" || synchronization.sample === undefined) return undefined;
    const last = this.#last.get(fragment);
    if (last?.round === round && last.revision === revision) return last.trainers;
    const named = { job: this.#job, fragment, round };
    const trainers = sampledMembers(named, members, synchronization.sample);
    this.#last.set(fragment, { round, revision, trainers });
    return trainers;
  }

  /** Forgets a fragment. */
  delete(fragment: string): void {
    this.#last.delete(fragment);
  }
}
