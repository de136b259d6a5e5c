import type { GuardMark, UpdateEvent } from "../actors/journal/describe-record.ts";

/** Kinds of findings that can be searched for. */
export const FINDING_KINDS = ["nan", "spike", "guarded", "stale", "rejected", "repeat"] as const;
/** One of {@link FINDING_KINDS}. */
export type FindingKind = (typeof FINDING_KINDS)[number];

/** An update that was found, with the reason why it is remarkable. */
export type Finding =
  | { readonly kind: "nan"; readonly event: UpdateEvent; readonly nonFinite: number }
  | {
      readonly kind: "spike";
      readonly event: UpdateEvent;
      readonly norm: number;
      /** Mean of the earlier norms of the same trainer and block. */
      readonly mean: number;
      /** Difference from the mean, in standard deviations of these norms. */
      readonly deviations: number;
    }
  | { readonly kind: "guarded"; readonly event: UpdateEvent; readonly mark: GuardMark }
  | { readonly kind: "stale"; readonly event: UpdateEvent; readonly behind: number }
  | { readonly kind: "rejected"; readonly event: UpdateEvent; readonly reason: string }
  | { readonly kind: "repeat"; readonly event: UpdateEvent; readonly firstSeq: number };

/** Bounds beyond which an update is remarkable. */
export interface FindingBounds {
  /** Difference from the mean of a trainer's own norms, in standard deviations. */
  readonly deviations: number;
  /** Versions by which a block went on while a gradient was computed from older values. */
  readonly behind: number;
}

/** Checks the updates of a job, in order, one after the other. */
export type Detector = (event: UpdateEvent) => Finding | undefined;

/** Number of norms of a trainer and block before any of them can be remarkable. */
const NORMS_MIN = 8;

/** The least deviation, as a share of the mean: norms that hardly differ have no spikes. */
const DEVIATION_MIN = 0.01;

/** Limit of the trainers and blocks whose norms are remembered. */
const HISTORIES_MAX = 100_000;

/** Makes the detector of a kind of findings. A detector of spikes remembers the norms that it has seen. */
export function detectorOf(kind: FindingKind, bounds: FindingBounds): Detector {
  switch (kind) {
    case "nan":
      return nonFiniteIn;
    case "spike":
      return spikeDetector(bounds.deviations);
    case "guarded":
      return (event) => event.guard && { kind: "guarded", event, mark: event.guard };
    case "stale":
      return (event) => {
        const behind = event.block?.behind ?? 0;
        return behind > bounds.behind ? { kind: "stale", event, behind } : undefined;
      };
    case "rejected":
      return rejectionOf;
    case "repeat":
      return ({ outcome, ...event }) =>
        outcome.kind === "repeated"
          ? { kind: "repeat", event: { ...event, outcome }, firstSeq: outcome.seq }
          : undefined;
  }
}

function nonFiniteIn(event: UpdateEvent): Finding | undefined {
  const nonFinite = event.block?.statistics?.nonFinite ?? 0;
  return nonFinite > 0 ? { kind: "nan", event, nonFinite } : undefined;
}

function rejectionOf(event: UpdateEvent): Finding | undefined {
  const { verb, outcome } = event;
  if (verb === "left-out") return undefined;
  if (outcome.kind === "unreadable") return { kind: "rejected", event, reason: "unreadable" };
  if (outcome.kind !== "rejected") return undefined;
  return { kind: "rejected", event, reason: `${outcome.code}: ${outcome.message}` };
}

/** Number, mean and sum of squared deviations of norms so far. */
interface NormHistory {
  count: number;
  mean: number;
  squares: number;
}

function spikeDetector(deviations: number): Detector {
  const histories = new Map<string, NormHistory>();
  return (event) => {
    const { block, outcome } = event;
    const norm = block?.statistics?.norm;
    const isUpdate = block?.operation.op === "grad" || block?.operation.op === "mix";
    if (norm === undefined || !isUpdate || outcome.kind !== "applied" || !Number.isFinite(norm)) {
      return undefined;
    }
    const key = `${event.trainer} ${block.operation.op} ${block.index} ${block.parameter}`;
    const history = histories.get(key) ?? { count: 0, mean: 0, squares: 0 };
    if (history.count === 0 && histories.size < HISTORIES_MAX) histories.set(key, history);
    const { count, mean } = history;
    const deviation = Math.max(
      Math.sqrt(history.squares / Math.max(1, count - 1)),
      DEVIATION_MIN * mean,
    );
    const away = deviation === 0 ? 0 : Math.abs(norm - mean) / deviation;
    if (count >= NORMS_MIN && away > deviations) {
      // Not remembered, so that one spike does not hide the next.
      return { kind: "spike", event, norm, mean, deviations: away };
    }
    history.count += 1;
    history.mean += (norm - mean) / history.count;
    history.squares += (norm - mean) * (norm - history.mean);
    return undefined;
  };
}
