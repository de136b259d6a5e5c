import type { Fallback } from "../../protocol/messages/position.ts";
/** Writes bytes for people: `512 B`, `1.5 KiB`, `12 MiB`. */
export declare function formatBytes(bytes: number): string;
/** Writes a duration for people: `850 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`. */
export declare function formatDuration(durationMs: number): string;
/** Writes a whole number with its digits in groups: `12,345`. */
export declare function formatNumber(number: number): string;
/** Writes a count with its noun: `1 host`, `2 hosts`. */
export declare function formatCount(count: number, noun: string): string;
/** Writes a number of records: `1 record`, `2 records`. */
export declare function formatRecords(count: number): string;
/** Writes whole numbers as ranges: `0-3, 7`. Sorts a copy. */
export declare function formatRanges(numbers: readonly number[]): string;
/** Names shards, such as `shard 3` or `shards 0-2, 5`. */
export declare function nameShards(shards: readonly number[]): string;
/** Names records, such as `record 3` or `records 3 to 7`. */
export declare function nameRecords({ from, to }: {
    from: number;
    to: number;
}): string;
/** Describes what a shard lost, as `records 11 to 20 of generation 1 are lost`. */
export declare function describeFallbacks(fallbacks: readonly Fallback[]): string;
/** Describes what a shard lost with the journal that was replaced last. */
export declare function describeLastFallback(fallbacks: readonly Fallback[]): string;
//# sourceMappingURL=amounts.d.ts.map