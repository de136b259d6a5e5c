import { type ListedShard } from "../../client/admin/participants.ts";
import type { CliContext } from "../context.ts";
import type { Output } from "../output/output.ts";
/** How much was done per second between two looks at a job. */
export interface Rates {
    readonly appliedPerSecond: number;
    readonly rejectedPerSecond: number;
    /** Records that were folded, of whatever kind. */
    readonly recordsPerSecond: number;
    /** Bytes that journals grew by; what was trimmed meanwhile is not counted. */
    readonly journalBytesPerSecond: number;
}
/** The shards of a job at one moment. */
export interface Look {
    readonly atMs: number;
    readonly shards: readonly ListedShard[];
}
/** Computes what was done between two looks. A shard that was taken over between them counts from then on. */
export declare function ratesBetween(before: Look, now: Look): Rates;
/** Describes rates for people. */
export declare function describeRates(rates: Rates): string;
/** Describes when a record was last folded in any shard; undefined if none was since the owners serve. */
export declare function describeActivity(shards: readonly ListedShard[], nowMs: number): string | undefined;
/**
 * Shows a job again and again until the command is interrupted, which is how it ends. On a terminal the lines are drawn
 * in place of those before, elsewhere they follow them; with `--json` each look is one value.
 * @param look looks at the job; returns what is seen as lines and as a value.
 */
export declare function watch({ stdout, signal }: Pick<CliContext, "stdout" | "signal">, output: Output, pauseMs: number, look: () => Promise<{
    readonly lines: readonly string[];
    readonly value: unknown;
}>): Promise<void>;
//# sourceMappingURL=watch-status.d.ts.map