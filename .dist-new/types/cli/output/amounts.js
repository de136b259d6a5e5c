const BYTE_UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];
/** Writes bytes for people: `512 B`, `1.5 KiB`, `12 MiB`. */
export function formatBytes(bytes) {
    if (bytes < 1024)
        return `${bytes} B`;
    let amount = bytes / 1024;
    let unit = 0;
    // From 1023.5 on the whole number shown would be 1024 of the smaller unit.
    while (amount >= 1023.5 && unit < BYTE_UNITS.length - 1) {
        amount /= 1024;
        unit++;
    }
    return `${oneDecimal(amount)} ${BYTE_UNITS[unit]}`;
}
/** Writes a duration for people: `850 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`. */
export function formatDuration(durationMs) {
    if (durationMs < 1000)
        return `${Math.round(durationMs)} ms`;
    if (durationMs < 59_950)
        return `${oneDecimal(durationMs / 1000)} s`;
    const seconds = Math.round(durationMs / 1000);
    if (seconds < 3600)
        return `${Math.floor(seconds / 60)} min${rest(seconds % 60, "s")}`;
    const minutes = Math.round(seconds / 60);
    return `${Math.floor(minutes / 60)} h${rest(minutes % 60, "min")}`;
}
/** Writes a whole number with its digits in groups: `12,345`. */
export function formatNumber(number) {
    return String(number).replace(/\B(?=(?:\d{3})+$)/g, ",");
}
/** Writes a count with its noun: `1 host`, `2 hosts`. */
export function formatCount(count, noun) {
    return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
/** Writes a number of records: `1 record`, `2 records`. */
export function formatRecords(count) {
    return formatCount(count, "record");
}
/** Writes whole numbers as ranges: `0-3, 7`. Sorts a copy. */
export function formatRanges(numbers) {
    const ranges = [];
    const sorted = [...numbers].sort((a, b) => a - b);
    let first = sorted[0];
    for (const [i, number] of sorted.entries()) {
        if (first === undefined || sorted[i + 1] === number + 1)
            continue;
        ranges.push(first === number ? String(number) : `${first}-${number}`);
        first = sorted[i + 1];
    }
    return ranges.join(", ");
}
/** Names shards, such as `shard 3` or `shards 0-2, 5`. */
export function nameShards(shards) {
    return `${shards.length === 1 ? "shard" : "shards"} ${formatRanges(shards)}`;
}
/** Names records, such as `record 3` or `records 3 to 7`. */
export function nameRecords({ from, to }) {
    return from === to ? `record ${from}` : `records ${from} to ${to}`;
}
/** Writes a number with one decimal below 100; without it above, or where it is zero. */
function oneDecimal(amount) {
    return amount < 99.95 ? amount.toFixed(1).replace(/\.0$/, "") : amount.toFixed(0);
}
function rest(amount, unit) {
    return amount === 0 ? "" : ` ${amount} ${unit}`;
}
/** Describes what a shard lost, as `records 11 to 20 of generation 1 are lost`. */
export function describeFallbacks(fallbacks) {
    const losses = fallbacks.filter(({ from, to }) => to >= from);
    const lost = losses.map(({ generation, from, to }) => {
        return `${nameRecords({ from, to })} of generation ${generation} ${from === to ? "is" : "are"} lost`;
    });
    return lost.length === 0 ? "no record is known to be lost" : lost.join("; ");
}
/** Describes what a shard lost with the journal that was replaced last. */
export function describeLastFallback(fallbacks) {
    const generation = fallbacks.at(-1)?.generation;
    return describeFallbacks(fallbacks.filter((fallback) => fallback.generation === generation));
}
//# sourceMappingURL=amounts.js.map