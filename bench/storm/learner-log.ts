/** What a contribution is in the log of its learner. Its elements are not in the log. */
export interface LoggedContribution {
  readonly fragment: string;
  /** The version that it was made from. */
  readonly base: number;
  readonly steps: number;
  readonly tokens: number;
}

/**
 * What a learner has written down; `at` is how many inner steps it had made by then. Checksums are the SHA-256 of a
 * fragment's elements, in the order of the names.
 */
export type LearnerEvent =
  /** Its first values, which it gives to the job only if it is the first of all learners. */
  | { readonly event: "own"; readonly sums: Readonly<Record<string, string>> }
  /** A contribution is about to be sent, or to be sent again. */
  | ({ readonly event: "begun"; readonly at: number } & LoggedContribution)
  /** A contribution was answered: with the round that it counts in, or null if it came too late. */
  | ({ readonly event: "acknowledged"; readonly round: number | null } & LoggedContribution)
  /** Training goes on with a version of a fragment. */
  | {
      readonly event: "adopted";
      readonly fragment: string;
      readonly version: number;
      readonly sum: string;
      readonly at: number;
    }
  /** It has made so many steps. */
  | { readonly event: "steps"; readonly steps: number }
  /** What the job says of its contributions, at its end. */
  | { readonly event: "account" };

/** A line of the log of a learner. */
export type LearnerLine = LearnerEvent & {
  /** Number of the process: a learner has a new life each time that it is started. */
  readonly life: number;
  /** When it was written, in milliseconds since 1970. */
  readonly timeMs: number;
};

/** The log of all that has trained under an id. */
export interface LearnerLog {
  readonly trainer: string;
  readonly lines: readonly LearnerLine[];
}

/** Reads a log. A last line without an end was cut off by a kill, and is left out. */
export function parseLearnerLog(trainer: string, text: string): LearnerLog {
  const lines = text.split("\n").slice(0, -1);
  return { trainer, lines: lines.map((line) => JSON.parse(line) as LearnerLine) };
}
