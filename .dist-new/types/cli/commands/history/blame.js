import { addHelp, openOutput } from "../../context.js";
import { resolvePointText, withHistory } from "../../history/with-history.js";
import { addHistoryOptions, HISTORY_PERMISSIONS, POINT_HELP, } from "../../options/history-options.js";
import { wholeNumber } from "../../options/parse-values.js";
import { formatCount, formatRecords } from "../../output/amounts.js";
/** Number of changes that are printed by default. */
const MOST_DEFAULT = 50;
/** Adds the command `pserver blame`, which shows which updates moved an element, and by how much. */
export function registerBlame(program, context) {
    const command = program
        .command("blame")
        .summary("show which updates moved an element, how much")
        .description("show which updates moved one element of a parameter, and by how much")
        .argument("<element>", "such as 'w[3,4]', or 's' for a scalar")
        .option("--since <point>", "only changes after this point (default: start)")
        .option("--until <point>", "only changes up to this point", "now")
        .option("--most <n>", "print no more changes than this: the largest, in order", wholeNumber(1, 1_000_000), MOST_DEFAULT);
    addHistoryOptions(command).action((element, flags) => runBlame(context, element, flags));
    addHelp(command, {
        "What it shows": [
            "  Every record that changed the element, in order, with the value before and after it, and the",
            "  sums of the changes of each trainer. In a sync job a step changes the element, so the sums are",
            "  those of steps, and of each step what every trainer's gradient added. The sums add up to the",
            "  difference of the values at both ends.",
        ],
        Points: POINT_HELP,
        Permissions: HISTORY_PERMISSIONS,
        "With --json": [
            '  A line for every change: {"time","shard","generation","seq","kind","trainer","session","n","step",',
            '  "shares":[{"trainer","gradient"}],"before","after","change"}; a kind is init, push, set, step or',
            '  drop. Then one line {"from","to","first","last","changes","nonFinite","trainers":[{"trainer",',
            '  "changes","sum"}],"steps":[…],"sum"}. 64-bit integers, NaN and infinities are strings.',
        ],
        Examples: ["  pserver blame 'w[3,4]'", `  pserver blame 'emb[1042,0]' --since "1h ago" --json`],
    });
}
async function runBlame(context, text, flags) {
    const output = openOutput(context, flags);
    const { parseElement } = await import("../../../history/blame.js");
    const { TopChanges } = await import("../../history/blame-table.js");
    const name = parseElement(text);
    await withHistory(context, flags, async (history) => {
        const { source } = history;
        const since = flags.since === undefined
            ? undefined
            : await resolvePointText(context, output, source, flags.since);
        const until = await resolvePointText(context, output, source, flags.until);
        const largest = new TopChanges(flags.most);
        const tell = await teller(output);
        const blame = await lookThrough(context, output, history, { name, since, until }, (change) => {
            if (output.json)
                tell(change);
            else
                largest.add(change);
        });
        await showResult(output, text, blame, largest.changes, largest.leftOut);
        if (since === undefined && !output.json)
            await tellGeneration(output, source, blame);
    });
}
/** Says that there may be earlier changes, in the journal that a rewind or a recovery has left behind. */
async function tellGeneration(output, source, { shard, from: { generation } }) {
    const spans = await source.shard(shard).spans();
    if (!spans.some((span) => span.generation === generation - 1))
        return;
    const earlier = `for those before it: --until ${shard}:SEQ@${generation - 1}`;
    output.message(`the changes are of generation ${generation} of shard ${shard}; ${earlier}`);
}
async function teller(output) {
    const { changeEntry } = await import("../../history/blame-table.js");
    return (change) => output.value(changeEntry(change));
}
async function lookThrough({ signal }, output, { source }, { name, since, until }, onChange) {
    const { locateElement } = await import("../../../history/blame.js");
    const { blameElement } = await import("../../../history/blame.js");
    const place = await locateElement(source, until.cut, name, signal);
    const options = { since: since?.cut, until: until.cut, signal, onChange };
    return await output
        .progress("folding", formatRecords)
        .reported((onProgress) => blameElement(source, place, { ...options, onProgress }));
}
async function showResult(output, text, blame, changes, leftOut) {
    const { blameEntry, describeChanges, describeTotals, valueText } = await import("../../history/blame-table.js");
    if (output.json) {
        output.value(blameEntry(blame));
        return;
    }
    output.lines(describeChanges(changes, output));
    if (leftOut > 0)
        output.message(`and ${formatCount(leftOut, "smaller change")}: see --most`);
    output.lines(["", ...describeTotals(blame, output)]);
    const { first, last, sum, changes: count, nonFinite } = blame;
    const ends = `${valueText(first)} → ${valueText(last)}`;
    output.message(`${text}: ${ends}, ${formatCount(count, "change")}, sum ${valueText(sum)}`);
    if (nonFinite > 0) {
        output.warning(`${formatCount(nonFinite, "change")} to or from NaN or an infinity: in no sum`);
    }
}
//# sourceMappingURL=blame.js.map