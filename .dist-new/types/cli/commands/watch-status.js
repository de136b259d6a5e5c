import { setTimeout as delay } from "node:timers/promises";
import { updatesOf } from "../../client/admin/participants.js";
import { integerField } from "../../protocol/fields.js";
import { formatBytes, formatDuration, formatNumber } from "../output/amounts.js";
/** Computes what was done between two looks. A shard that was taken over between them counts from then on. */
export function ratesBetween(before, now) {
    const seconds = Math.max(1, now.atMs - before.atMs) / 1_000;
    const earlier = new Map(before.shards.map((each) => [each.shard, each]));
    const perSecond = (of) => now.shards.reduce((sum, shard) => {
        const known = earlier.get(shard.shard);
        return sum + (known === undefined ? 0 : Math.max(0, of(shard) - of(known)));
    }, 0) / seconds;
    return {
        appliedPerSecond: perSecond((shard) => updatesOf([shard]).applied),
        rejectedPerSecond: perSecond((shard) => updatesOf([shard]).rejected),
        recordsPerSecond: perSecond((shard) => integerField(shard, "seq")),
        journalBytesPerSecond: perSecond((shard) => integerField(shard, "journalBytes")),
    };
}
/** Describes rates for people. */
export function describeRates(rates) {
    const { appliedPerSecond, rejectedPerSecond, recordsPerSecond, journalBytesPerSecond } = rates;
    const whole = (value) => formatNumber(Math.round(value));
    return [
        `${whole(appliedPerSecond)} applied/s`,
        `${whole(rejectedPerSecond)} rejected/s`,
        `${whole(recordsPerSecond)} records/s`,
        `${formatBytes(Math.round(journalBytesPerSecond))}/s`,
    ].join(", ");
}
/** Describes when a record was last folded in any shard; undefined if none was since the owners serve. */
export function describeActivity(shards, nowMs) {
    const times = shards.flatMap(({ lastRecordMs }) => typeof lastRecordMs === "number" ? [lastRecordMs] : []);
    if (times.length === 0)
        return undefined;
    return `last record ${formatDuration(Math.max(0, nowMs - Math.max(...times)))} ago`;
}
/** Moves the cursor up so many lines and clears what is below. */
const up = (lines) => (lines === 0 ? "" : `\u001b[${lines}A\u001b[J`);
/**
 * Shows a job again and again until the command is interrupted, which is how it ends. On a terminal the lines are drawn
 * in place of those before, elsewhere they follow them; with `--json` each look is one value.
 * @param look looks at the job; returns what is seen as lines and as a value.
 */
export async function watch({ stdout, signal }, output, pauseMs, look) {
    let drawn = 0;
    try {
        for (;;) {
            const { lines, value } = await look();
            if (output.json) {
                output.value(value);
            }
            else {
                if (stdout.isTTY === true)
                    stdout.write(up(drawn));
                output.lines(stdout.isTTY === true ? lines : [...lines, ""]);
                drawn = lines.length;
            }
            await delay(pauseMs, undefined, { signal });
        }
    }
    catch (error) {
        if (!signal.aborted)
            throw error;
    }
}
//# sourceMappingURL=watch-status.js.map