import { PserverError } from "../errors.ts";
import { badConfig, POSITIVE, type Range, Settings, wholeRange } from "./read-settings.ts";

/**
 * What becomes of a gradient or contribution whose norm is above the limit: it is rejected, applied scaled down to the
 * limit, or acknowledged and not applied, so that an operator can look at it.
 */
export const GUARD_ACTIONS = ["reject", "clip", "set-aside"] as const;
/** One of {@link GUARD_ACTIONS}. */
export type GuardAction = (typeof GUARD_ACTIONS)[number];

/** Whose norms a norm is compared with: those of the same trainer, or those of all trainers. */
export const GUARD_HISTORIES = ["trainer", "cohort"] as const;
/** One of {@link GUARD_HISTORIES}. */
export type GuardHistory = (typeof GUARD_HISTORIES)[number];

/**
 * A limit for the norms of gradients and contributions that follows the norms before. Normalized: it has one of
 * `deviations` and `factor`.
 */
export interface Guard {
  readonly action: GuardAction;
  readonly history: GuardHistory;
  /** How many norms back the history reaches. */
  readonly window: number;
  /** Norms that a history must have before the guard judges by it; 1 to `window`. */
  readonly warmup: number;
  /**
   * The limit is the median times exp(`deviations` · σ). σ is the robust deviation of the norms' logarithms, 1.4826 times
   * the median of their distances from their median, and at least ln 1.05.
   */
  readonly deviations?: number;
  /** The limit is `factor` times the median. */
  readonly factor?: number;
}

/** A guard as callers give it; for the defaults see {@link toGuard}. */
export type GuardInput = Partial<Guard>;

/** A parameter's guard, or that it has none although its job has one. */
export type GuardSetting = Guard | "off";

/** The longest history of norms. */
export const GUARD_WINDOW_MAX = 256;

const WINDOW = 32;
/** The least history from which a median and a deviation mean something, if nobody says otherwise. */
const WARMUP = 16;
/** Norms of gradients have heavier tails than the normal distribution, for which 3.5 is usual. */
const DEVIATIONS = 6;

const FACTOR: Range = {
  expected: "a finite number from 1 on",
  holds: (value) => Number.isFinite(value) && value >= 1,
};

/**
 * Completes and checks a guard from a caller or a message: by default it rejects what is more than 6 deviations above the
 * last 32 norms of its trainer, of which there must be 16.
 * @throws BAD_CONFIG for an unknown entry, a number out of its range, or both a factor and deviations.
 */
export function toGuard(input: unknown, what: string = "config.guard"): Guard {
  const keys = ["action", "history", "window", "warmup", "deviations", "factor"];
  const settings = new Settings(input, what, keys);
  const window = settings.number("window", wholeRange(1, GUARD_WINDOW_MAX), WINDOW);
  const factor = settings.optionalNumber("factor", FACTOR);
  const deviations = settings.optionalNumber("deviations", POSITIVE);
  if (factor !== undefined && deviations !== undefined) {
    throw badConfig(what, "deviations or factor", "both");
  }
  return {
    action: settings.word("action", GUARD_ACTIONS, "reject"),
    history: settings.word("history", GUARD_HISTORIES, "trainer"),
    window,
    warmup: settings.number("warmup", wholeRange(1, window), Math.min(WARMUP, window)),
    ...(factor === undefined ? { deviations: deviations ?? DEVIATIONS } : { factor }),
  };
}

/** As {@link toGuard}, for a parameter: `off` says that the job's guard is not for it. */
export function toGuardSetting(input: unknown, what?: string): GuardSetting {
  return input === "off" ? "off" : toGuard(input, what);
}

/** Describes a guard: `reject above 6 deviations of the last 32 norms of the trainer, from 16 on`. */
export function guardText({ action, history, window, warmup, deviations, factor }: Guard): string {
  const limit = factor === undefined ? `${deviations} deviations` : `${factor} times the median`;
  const of = history === "trainer" ? "the trainer" : "all trainers";
  return `${action} above ${limit} of the last ${window} norms of ${of}, from ${warmup} on`;
}

/** What a guard has decided about a gradient or contribution. */
export interface GuardDecision {
  readonly action: GuardAction;
  /** L2 norm of the gradient or contribution. */
  readonly norm: number;
  /** What the norm may be at most. */
  readonly limit: number;
}

/** Reads an action. @throws BAD_MESSAGE for any other word. */
export function toGuardAction(word: unknown): GuardAction {
  const action = GUARD_ACTIONS.find((known) => known === word);
  if (action !== undefined) return action;
  throw new PserverError("BAD_MESSAGE", "guard: expected an action");
}
