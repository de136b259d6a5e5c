import type { UpdateEvent } from "../actors/journal/describe-record.ts";
/** Kinds of findings that can be searched for. */
export declare const FINDING_KINDS: readonly ["nan", "spike", "stale", "rejected", "repeat"];
/** One of {@link FINDING_KINDS}. */
export type FindingKind = (typeof FINDING_KINDS)[number];
/** An update that was found, with the reason why it is remarkable. */
export type Finding = {
    readonly kind: "nan";
    readonly event: UpdateEvent;
    readonly nonFinite: number;
} | {
    readonly kind: "spike";
    readonly event: UpdateEvent;
    readonly norm: number;
    /** Mean of the earlier norms of the same trainer and block. */
    readonly mean: number;
    /** Difference from the mean, in standard deviations of these norms. */
    readonly deviations: number;
} | {
    readonly kind: "stale";
    readonly event: UpdateEvent;
    readonly behind: number;
} | {
    readonly kind: "rejected";
    readonly event: UpdateEvent;
    readonly reason: string;
} | {
    readonly kind: "repeat";
    readonly event: UpdateEvent;
    readonly firstSeq: number;
};
/** Bounds beyond which an update is remarkable. */
export interface FindingBounds {
    /** Difference from the mean of a trainer's own norms, in standard deviations. */
    readonly deviations: number;
    /** Versions by which a block went on while a gradient was computed from older values. */
    readonly behind: number;
}
/** Checks the updates of a job, in order, one after the other. */
export type Detector = (event: UpdateEvent) => Finding | undefined;
/** Makes the detector of a kind of findings. A detector of spikes remembers the norms that it has seen. */
export declare function detectorOf(kind: FindingKind, bounds: FindingBounds): Detector;
//# sourceMappingURL=update-findings.d.ts.map