import { type Position } from "../protocol/index.ts";
import type { Cut } from "./points.ts";
import type { ReplayedModel } from "./replay/replayed-model.ts";
import { type HistorySource } from "./source.ts";
/** Two cuts between which a model went bad: good at the first, bad at the other. */
export interface Suspects {
    readonly good: Cut;
    readonly bad: Cut;
}
/** Returns the number of records between two cuts. */
export declare function recordsBetween({ good, bad }: Suspects): number;
/**
 * Divides a span by time until at most so many records are left, or until time divides it no further.
 * @throws errors of the judge and the source; the reason of the signal.
 */
export declare function narrowByTime(source: HistorySource, suspects: Suspects, judge: Judge, recordsMax: number, signal: AbortSignal): Promise<Suspects>;
/** A record between the two cuts: where it is, and when the broker stored it. */
export interface OrderedRecord {
    readonly shard: number;
    readonly position: Position;
    readonly timeMs: number;
}
/**
 * Result of a search: the first bad record, or several of which one is the first bad one, if they could not be told
 * apart.
 */
export type BisectResult = Suspects & {
    readonly records: readonly OrderedRecord[];
};
/**
 * Searches for the record that made a model bad, by judging models between a good and a bad cut. Records of all
 * shards count in the order in which the broker stored them.
 * @throws BAD_VALUE if the cuts are not in order or of two generations of a journal, or if the judge finds the good
 * one bad or the bad one good; errors of the judge and the source.
 */
export declare function bisect(source: HistorySource, suspects: Suspects, judge: Judge, signal: AbortSignal): Promise<BisectResult>;
/** Whether a model's float parameters hold finite values only. With `names`, only these parameters are checked. */
export declare function isFiniteModel(model: ReplayedModel, names: readonly string[] | undefined): Promise<boolean>;
/** Whether the model at a cut is as it should be; `skip` if the judge cannot tell. */
export type Verdict = "good" | "bad" | "skip";
/** Judges the model at a cut. `leftRecords`: records that are still in question. */
export type Judge = (cut: Cut, leftRecords: number) => Promise<Verdict>;
//# sourceMappingURL=bisect.d.ts.map