import { MEMBERS_MAX } from "../limits.ts";
import { badConfig, NOT_NEGATIVE, Settings, wholeRange } from "./read-settings.ts";

/**
 * How the trainers of a job keep step; set for the whole job and never changed.
 *
 * - `async`: each gradient is applied as it arrives.
 * - `sync`: a step applies the mean or sum of one gradient of each of `trainers` trainers; `backups`
 *   more may take part, whose gradients are left out where they are the last.
 * - `ssp` (stale synchronous parallel, Ho et al. 2013): gradients are applied when they come, but a
 *   pull waits while the slowest of `trainers` trainers is more than `staleness` steps behind.
 * - `diloco` (Decoupled DiLoCo, arXiv 2604.21428): trainers train by themselves and contribute what they have learned
 *   to fragments of the model, see {@link DilocoSettings}; gradients of parameters without a fragment are applied as
 *   they arrive.
 */
export type Synchronization =
  | { readonly mode: "async" }
  | {
      readonly mode: "sync";
      readonly trainers: number;
      readonly backups: number;
      readonly reduce: "mean" | "sum";
    }
  | { readonly mode: "ssp"; readonly trainers: number; readonly staleness: number }
  | ({ readonly mode: "diloco" } & DilocoSettings);

/** What a contribution to a fragment weighs. */
export const CONTRIBUTION_WEIGHTS = ["uniform", "steps", "tokens", "tokens2/steps"] as const;
/** One of {@link CONTRIBUTION_WEIGHTS}. */
export type ContributionWeights = (typeof CONTRIBUTION_WEIGHTS)[number];

/**
 * How the contributions of a round become one displacement of a tensor: the weighted mean, or the radial-directional
 * mean, which has the direction of the mean of the directions and the weighted mean of the lengths.
 */
export const MERGES = ["mean", "rda"] as const;
/** One of {@link MERGES}. */
export type Merge = (typeof MERGES)[number];

/** When the rounds of fragments close, and what becomes of the contributions. */
export interface DilocoSettings {
  /**
   * How many trainers must have contributed before a round closes, or all members if these are fewer. So many must have
   * been members at one time before the first round closes.
   */
  readonly quorum: number;
  /** Share of the time that trainers have left after a quorum for which a round waits for others, γ. */
  readonly graceMargin: number;
  /** Inner steps from a trainer's contribution to the adoption of the result, τ: what it may wait for. */
  readonly graceSteps: number;
  /** The longest grace, in milliseconds; also the grace while no trainer has told how long its steps take. */
  readonly graceCapMs: number;
  /** The least time from one close of a fragment to the next, in milliseconds. */
  readonly minIntervalMs: number;
  readonly weights: ContributionWeights;
  /** Merge of the parameters whose configurations name none. */
  readonly merge: Merge;
  /**
   * What becomes of a contribution that was made from an earlier version than the present one: it is left out, or
   * counts in the open round with its weight divided by 1 + `lateDecay` · versions behind.
   */
  readonly late: "drop" | "carry";
  /** λ; 0 unless late contributions are carried. */
  readonly lateDecay: number;
}

/** A synchronization as callers give it. Defaults: `async`, no backups, the mean; for `diloco` see the settings. */
export type SynchronizationInput =
  | "async"
  | { readonly mode?: "async" }
  | {
      readonly mode: "sync";
      readonly trainers: number;
      readonly backups?: number;
      readonly reduce?: "mean" | "sum";
    }
  | { readonly mode: "ssp"; readonly trainers: number; readonly staleness: number }
  | ({ readonly mode: "diloco" } & Partial<DilocoSettings>);

const WHAT = "synchronization";

/** What a synchronization of each mode has besides the mode. */
export const SYNCHRONIZATION_ENTRIES = {
  async: [],
  sync: ["trainers", "backups", "reduce"],
  ssp: ["trainers", "staleness"],
  diloco: [
    "quorum",
    "graceMargin",
    "graceSteps",
    "graceCapMs",
    "minIntervalMs",
    "weights",
    "merge",
    "late",
    "lateDecay",
  ],
} as const;

/** The longest grace and interval that a job can have: a day. */
export const ROUND_MS_MAX = 24 * 60 * 60 * 1000;

/** The most inner steps that a result can take to arrive. */
export const GRACE_STEPS_MAX = 1_000_000;

/**
 * Completes and checks a synchronization from a caller or a message.
 * @throws BAD_CONFIG for an unknown mode, an entry the mode does not have, or a number out of range:
 * trainers and backups together are 1 to `MEMBERS_MAX`, as is a quorum.
 */
export function toSynchronization(input: unknown = {}): Synchronization {
  const entries = typeof input === "string" ? { mode: input } : input;
  const every = ["mode", ...Object.values(SYNCHRONIZATION_ENTRIES).flat()];
  const modes = Object.keys(SYNCHRONIZATION_ENTRIES) as Synchronization["mode"][];
  const mode = new Settings(entries, WHAT, every).word("mode", modes, "async");
  const settings = new Settings(entries, `${WHAT} ${mode}`, [
    "mode",
    ...SYNCHRONIZATION_ENTRIES[mode],
  ]);
  if (mode === "async") return { mode };
  if (mode === "diloco") return { mode, ...toDiloco(settings) };
  const trainers = settings.number("trainers", wholeRange(1, MEMBERS_MAX));
  if (mode === "ssp") {
    return { mode, trainers, staleness: settings.number("staleness", wholeRange(0)) };
  }
  const backups = settings.number("backups", wholeRange(0, MEMBERS_MAX), 0);
  if (trainers + backups > MEMBERS_MAX) {
    const expected = `at most ${MEMBERS_MAX} trainers and backups together`;
    throw badConfig(WHAT, expected, trainers + backups);
  }
  return { mode, trainers, backups, reduce: settings.word("reduce", ["mean", "sum"], "mean") };
}

/** Completes the settings of `diloco` with the defaults of its authors, as far as these are known. */
function toDiloco(settings: Settings): DilocoSettings {
  const late = settings.word("late", ["drop", "carry"], "drop");
  const lateDecay = settings.number("lateDecay", NOT_NEGATIVE, late === "carry" ? 1 : 0);
  if (late === "drop" && lateDecay !== 0) {
    throw settings.refusal("lateDecay", "none unless late is carry", lateDecay);
  }
  return {
    quorum: settings.number("quorum", wholeRange(1, MEMBERS_MAX), 1),
    graceMargin: settings.number("graceMargin", NOT_NEGATIVE, 1),
    graceSteps: settings.number("graceSteps", wholeRange(0, GRACE_STEPS_MAX), 2),
    graceCapMs: settings.number("graceCapMs", wholeRange(0, ROUND_MS_MAX), 1_000),
    minIntervalMs: settings.number("minIntervalMs", wholeRange(0, ROUND_MS_MAX), 0),
    weights: settings.word("weights", CONTRIBUTION_WEIGHTS, "tokens2/steps"),
    merge: settings.word("merge", MERGES, "rda"),
    late,
    lateDecay,
  };
}

/**
 * Returns how many members a job's steps or rounds need at one time before the first closes; 0 in a job without
 * members.
 */
export function membersNeeded(synchronization: Synchronization): number {
  const { mode } = synchronization;
  if (mode === "async") return 0;
  return mode === "diloco" ? synchronization.quorum : synchronization.trainers;
}

/** Describes a synchronization: `sync of 4 trainers and 1 backup, mean`. */
export function synchronizationText(synchronization: Synchronization): string {
  const { mode } = synchronization;
  if (mode === "async") return mode;
  if (mode === "diloco") return dilocoText(synchronization);
  const trainers = counted(synchronization.trainers, "trainer");
  if (mode === "ssp") return `ssp of ${trainers}, staleness ${synchronization.staleness}`;
  const { backups, reduce } = synchronization;
  const backupsText = backups === 0 ? "" : ` and ${counted(backups, "backup")}`;
  return `sync of ${trainers}${backupsText}, ${reduce}`;
}

function dilocoText(settings: DilocoSettings): string {
  const { quorum, graceMargin, graceSteps, graceCapMs, minIntervalMs } = settings;
  const { weights, merge, late, lateDecay } = settings;
  const grace = `grace ${graceMargin} of ${graceSteps} steps, at most ${graceCapMs} ms`;
  const carried = late === "carry" ? `late carried with decay ${lateDecay}` : "late dropped";
  return `diloco with quorum ${quorum}, ${grace}, interval ${minIntervalMs} ms, weights ${weights}, ${merge}, ${carried}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
