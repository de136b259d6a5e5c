import { MEMBERS_MAX } from "../limits.ts";
import { DECAY, NOT_NEGATIVE, type Range, type Settings, wholeRange } from "./read-settings.ts";

/** What a contribution to a fragment weighs. */
export const CONTRIBUTION_WEIGHTS = ["uniform", "steps", "tokens", "tokens2/steps"] as const;
/** One of {@link CONTRIBUTION_WEIGHTS}. */
export type ContributionWeights = (typeof CONTRIBUTION_WEIGHTS)[number];

/**
 * How the contributions of a round become one displacement of a tensor:
 *
 * - `mean`: the weighted mean.
 * - `rda`: the radial-directional mean, which has the direction of the mean of the directions and the weighted mean of
 *   the lengths.
 * - `median`: element by element the median; of an even number the mean of the two in the middle.
 * - `trimmed-mean`: element by element the mean without the least and the largest, see {@link DilocoSettings.trim}.
 * - `krum`: the contribution that is nearest to its neighbours (Blanchard et al. 2017), or the mean of several such, see
 *   {@link DilocoSettings.krumKeep}.
 *
 * In the last three every contribution counts alike, whatever weight it claims, and a round keeps its contributions until
 * it closes.
 */
export const MERGES = ["mean", "rda", "median", "trimmed-mean", "krum"] as const;
/** One of {@link MERGES}. */
export type Merge = (typeof MERGES)[number];
/** The merges that a minority of contributions cannot move far. */
export type RobustMerge = Exclude<Merge, "mean" | "rda">;

/** Returns whether a merge needs every contribution until the round closes. */
export function isRobust(merge: Merge): merge is RobustMerge {
  return merge !== "mean" && merge !== "rda";
}

/** What becomes of contributions from an earlier version than the present one. */
export const LATE_RULES = ["drop", "carry", "rebase"] as const;
/** By what the weight of a late contribution is divided: 1 + λ · versions behind, or the root of that. */
export const LATE_DIVISORS = ["linear", "root"] as const;

/** When the rounds of fragments close, and what becomes of the contributions. */
export interface DilocoSettings {
  /**
   * How many trainers must have contributed before a round closes, or all that may contribute if these are fewer. So
   * many must have been members at one time before the first round closes.
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
  /** Share of the contributions that `trimmed-mean` leaves out at each end, rounded down; below a half. */
  readonly trim: number;
  /**
   * How many contributions of a round `krum` assumes to be arbitrary; absent for as many as it can bear: of *n*
   * contributions (*n* − 3) / 2.
   */
  readonly krumFaults?: number;
  /** How many contributions `krum` takes the mean of, those nearest to their neighbours: 1 is Krum, more is Multi-Krum. */
  readonly krumKeep: number;
  /**
   * How many members may contribute to a round: below 1 a share of them, rounded up, else a number. Absent for all. See
   * `sampledMembers`.
   */
  readonly sample?: number;
  /**
   * What becomes of a contribution that was made from an earlier version than the present one: it is left out, or counts
   * in the open round with a lower weight. With `rebase` also one of whole parameters, whose displacement is computed
   * from the values of the version that it began from.
   */
  readonly late: (typeof LATE_RULES)[number];
  /** λ; 0 if late contributions are left out. */
  readonly lateDecay: number;
  readonly lateDivisor: (typeof LATE_DIVISORS)[number];
  /** How many earlier versions' values `rebase` keeps; 0 without it. */
  readonly lateVersions: number;
}

/** The settings of well-known algorithms: each fills what a job does not say itself. */
const PRESETS = {
  /** McMahan et al. 2017. */
  fedavg: { graceCapMs: 0, weights: "tokens", merge: "mean" },
  /** Nguyen et al. 2022: buffered asynchronous aggregation. */
  fedbuff: {
    ...{ quorum: 10, graceCapMs: 0, weights: "tokens", merge: "mean" },
    ...{ late: "carry", lateDecay: 1, lateDivisor: "root" },
  },
} as const satisfies Record<string, Partial<DilocoSettings>>;

/** Names of the presets. */
export const DILOCO_PRESETS = Object.keys(PRESETS) as (keyof typeof PRESETS)[];
/** One of {@link DILOCO_PRESETS}. */
export type DilocoPreset = keyof typeof PRESETS;

/** Settings as callers give them: those that are absent are filled by the preset, or have their defaults. */
export type DilocoInput = Partial<DilocoSettings> & { readonly preset?: DilocoPreset };

/** The entries of {@link DilocoInput}. */
export const DILOCO_ENTRIES = [
  "preset",
  "quorum",
  "graceMargin",
  "graceSteps",
  "graceCapMs",
  "minIntervalMs",
  "weights",
  "merge",
  "trim",
  "krumFaults",
  "krumKeep",
  "sample",
  "late",
  "lateDecay",
  "lateDivisor",
  "lateVersions",
] as const satisfies readonly (keyof DilocoInput)[];

/** The longest grace and interval that a job can have: a day. */
export const ROUND_MS_MAX = 24 * 60 * 60 * 1000;

/** The most inner steps that a result can take to arrive. */
export const GRACE_STEPS_MAX = 1_000_000;

/** The most earlier versions whose values a job can keep: each takes the size of the model. */
export const LATE_VERSIONS_MAX = 16;

/** Shares that `trimmed-mean` can leave out at each end. */
export const TRIM: Range = {
  expected: "a number from 0 to below 0.5",
  holds: (value) => DECAY.holds(value) && value < 0.5,
};

const SAMPLE: Range = {
  expected: `a number above 0 and below 1, or ${wholeRange(1, MEMBERS_MAX).expected}`,
  holds: (value) => (value > 0 && value < 1) || wholeRange(1, MEMBERS_MAX).holds(value),
};

/**
 * Completes settings with those of a preset, and with the defaults of the authors of Decoupled DiLoCo, as far as these
 * are known.
 * @throws BAD_CONFIG for a number out of range, an unknown word, or settings that contradict each other.
 */
export function toDiloco(settings: Settings): DilocoSettings {
  const preset =
    settings.get("preset") === undefined ? undefined : settings.word("preset", DILOCO_PRESETS);
  const filled: Partial<DilocoSettings> = preset === undefined ? {} : PRESETS[preset];
  const sample = settings.optionalNumber("sample", SAMPLE);
  const krumFaults = settings.optionalNumber("krumFaults", wholeRange(0, MEMBERS_MAX));
  // Federated averaging waits for all that it has chosen, and nobody else knows how many there should be.
  const all = sample !== undefined && sample >= 1 ? sample : undefined;
  const quorum = preset === "fedavg" ? all : (filled.quorum ?? 1);
  return {
    quorum: settings.number("quorum", wholeRange(1, MEMBERS_MAX), quorum),
    graceMargin: settings.number("graceMargin", NOT_NEGATIVE, 1),
    graceSteps: settings.number("graceSteps", wholeRange(0, GRACE_STEPS_MAX), 2),
    graceCapMs: settings.number(
      "graceCapMs",
      wholeRange(0, ROUND_MS_MAX),
      filled.graceCapMs ?? 1_000,
    ),
    minIntervalMs: settings.number("minIntervalMs", wholeRange(0, ROUND_MS_MAX), 0),
    weights: settings.word("weights", CONTRIBUTION_WEIGHTS, filled.weights ?? "tokens2/steps"),
    merge: settings.word("merge", MERGES, filled.merge ?? "rda"),
    trim: settings.number("trim", TRIM, 0.1),
    ...(krumFaults === undefined ? {} : { krumFaults }),
    krumKeep: settings.number("krumKeep", wholeRange(1, MEMBERS_MAX), 1),
    ...(sample === undefined ? {} : { sample }),
    ...lateOf(settings, filled),
  };
}

/** What settings say of late contributions. */
type LateSettings = Pick<DilocoSettings, "late" | "lateDecay" | "lateDivisor" | "lateVersions">;

function lateOf(settings: Settings, filled: Partial<DilocoSettings>): LateSettings {
  const late = settings.word("late", LATE_RULES, filled.late ?? "drop");
  const counts = late !== "drop";
  const keeps = late === "rebase";
  const found: LateSettings = {
    late,
    lateDecay: settings.number("lateDecay", NOT_NEGATIVE, counts ? (filled.lateDecay ?? 1) : 0),
    lateDivisor: settings.word(
      "lateDivisor",
      LATE_DIVISORS,
      counts ? (filled.lateDivisor ?? "linear") : "linear",
    ),
    lateVersions: settings.number("lateVersions", wholeRange(0, LATE_VERSIONS_MAX), keeps ? 1 : 0),
  };
  if (!counts && found.lateDecay !== 0) {
    throw settings.refusal("lateDecay", "none where late is drop", found.lateDecay);
  }
  if (!counts && found.lateDivisor !== "linear") {
    throw settings.refusal("lateDivisor", "none where late is drop", found.lateDivisor);
  }
  if (keeps !== found.lateVersions > 0) {
    const expected = keeps
      ? wholeRange(1, LATE_VERSIONS_MAX).expected
      : "none unless late is rebase";
    throw settings.refusal("lateVersions", expected, found.lateVersions);
  }
  return found;
}

/** Describes settings: `quorum 2 of a sample of 10, grace …`. */
export function dilocoText(settings: DilocoSettings): string {
  const { quorum, graceMargin, graceSteps, graceCapMs, minIntervalMs } = settings;
  const { weights, sample } = settings;
  const grace = `grace ${graceMargin} of ${graceSteps} steps, at most ${graceCapMs} ms`;
  const sampled = sample === undefined ? "" : ` of a sample of ${sample}`;
  const times = `${grace}, interval ${minIntervalMs} ms`;
  return `quorum ${quorum}${sampled}, ${times}, weights ${weights}, ${mergeText(settings)}, ${lateText(settings)}`;
}

function mergeText({ merge, trim, krumFaults, krumKeep }: DilocoSettings): string {
  if (merge === "trimmed-mean") return `${merge} without ${trim} at each end`;
  if (merge !== "krum") return merge;
  const faults = krumFaults === undefined ? "" : ` with ${krumFaults} at fault`;
  return `${merge} keeping ${krumKeep}${faults}`;
}

function lateText({ late, lateDecay, lateDivisor, lateVersions }: DilocoSettings): string {
  if (late === "drop") return "late dropped";
  const decay = `decay ${lateDecay}${lateDivisor === "root" ? " under a root" : ""}`;
  if (late === "carry") return `late carried with ${decay}`;
  return `late rebased on ${lateVersions} earlier, with ${decay}`;
}
