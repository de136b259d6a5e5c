import { PserverError } from "../../../protocol/errors.js";
import { addHelp, openOutput } from "../../context.js";
import { pointEntry, resolvePointText, showCut, withHistory, withReplays, } from "../../history/with-history.js";
import { addHistoryOptions, addParamOption, HISTORY_PERMISSIONS, POINT_HELP, } from "../../options/history-options.js";
import { formatCount, formatRecords } from "../../output/amounts.js";
import { EXIT } from "../../report-error.js";
/** Adds the command `pserver bisect`, which finds the update that made a model bad. */
export function registerBisect(program, context) {
    const command = program
        .command("bisect")
        .summary("find the first bad update, by running a command")
        .description("find the first bad update by running a command on models between two points")
        .argument("[command...]", "after --: the command, with {} for the model's file")
        .requiredOption("--good <point>", "a point at which the model was good")
        .option("--bad <point>", "a later point at which it was bad", "now")
        .option("--nan", "instead of a command: bad is a model with a NaN or an infinity");
    addHistoryOptions(addParamOption(command)).action((words, flags) => runBisect(context, words, flags));
    addHelp(command, {
        "The command": [
            "  It gets the model in a file *.safetensors, whose path replaces every {} and is in PSERVER_MODEL;",
            "  PSERVER_POINT is the cut. Its exit code tells, as for git bisect run: 0 good, 125 skip, another",
            "  one up to 127 bad; a higher one ends the search. What it prints goes to stderr.",
        ],
        "What it does": [
            "  Rebuilds models between the points and halves the records between them, in the order in which",
            "  the broker stored those of all shards, until one is left: the first bad update. Both ends are",
            "  judged first.",
        ],
        Points: POINT_HELP,
        "Exit code": [
            "  0 if one update was found, 1 if skips left several; others as for every command.",
        ],
        Permissions: HISTORY_PERMISSIONS,
        "With --json": [
            '  {"good","bad","judged","records":[{"time","shard","generation","seq","trainer","session","n",',
            '  "verb","parameters"}]}: the first bad record, or those of which it is one.',
        ],
        Examples: [
            "  pserver bisect --good start --bad now --nan",
            '  pserver bisect --good "2h ago" -- python3 test.py {} --at-least 0.9',
        ],
    });
}
async function runBisect(context, words, flags) {
    checkFlags(words, flags);
    const output = openOutput(context, flags);
    await withHistory(context, flags, async (history) => {
        const { source } = history;
        const good = await resolvePointText(context, output, source, flags.good);
        const bad = await resolvePointText(context, output, source, flags.bad);
        await withReplays(context, output, history, async (replay) => {
            const { judge, judged } = judgeOf(context, output, history, replay, words, flags);
            const { bisect } = await import("../../../history/bisect.js");
            const ends = { good: good.cut, bad: bad.cut };
            const result = await bisect(source, ends, judge, context.signal);
            await showResult(context, output, source, { good, bad }, result, judged());
        });
    });
}
/** @throws BAD_VALUE unless there is either a command or `--nan`. */
function checkFlags(words, { nan, param }) {
    if (words.length > 0 === (nan === true)) {
        const received = nan === true ? "both" : "neither";
        throw new PserverError("BAD_VALUE", `expected a command after --, or --nan; received ${received}`);
    }
    if (nan === true || param === undefined)
        return;
    throw new PserverError("BAD_VALUE", "--param: expected --nan with it; a command gets all parameters");
}
/**
 * Makes the judge that the flags ask for, which prints each verdict, and a function that returns how often it
 * has judged.
 */
function judgeOf(context, output, { source }, replay, words, { nan, param }) {
    let count = 0;
    const judge = async (cut, leftRecords) => {
        const model = await replay({ cut });
        const verdict = nan === true
            ? await judgeFinite(model, param)
            : await judgeFile(context, source, model, cut, words);
        count += 1;
        output.message(`${verdict}: ${showCut(cut)} (${formatRecords(leftRecords)} in question)`);
        // Its memory is needed for the next one.
        await model.free();
        return verdict;
    };
    return { judge, judged: () => count };
}
async function judgeFinite(model, names) {
    const { isFiniteModel } = await import("../../../history/bisect.js");
    return (await isFiniteModel(model, names)) ? "good" : "bad";
}
async function judgeFile(context, { job }, model, cut, words) {
    const { judgeByCommand } = await import("../../history/judge-by-command.js");
    const { writeModel } = await import("../../history/write-model.js");
    const parameters = model.parameters.filter(({ isComplete }) => isComplete);
    // Before the job was initialized there is no model that a command could judge.
    if (parameters.length === 0)
        return "skip";
    const point = showCut(cut);
    const write = (path) => writeModel(path, { model, parameters, job, point }, context.signal);
    return await judgeByCommand(context, words, { write, point });
}
async function showResult(context, output, source, ends, { records }, judged) {
    const [first] = records;
    const { RecordParameters } = await import("../../../history/record-parameters.js");
    const parameters = new RecordParameters(source, ends.bad.cut, context.signal);
    const named = { source, parameters };
    if (output.json) {
        const [good, bad] = await Promise.all([pointEntry(ends.good), pointEntry(ends.bad)]);
        const found = await Promise.all(records.slice(0, RECORDS_SHOWN).map((record) => recordEntry(context, named, record)));
        output.value({ good, bad, judged, records: found });
    }
    else if (records.length === 1 && first !== undefined) {
        output.lines([`first bad: ${await describeRecord(context, named, first)}`]);
    }
    else {
        const count = formatCount(records.length, "record");
        output.lines([`the first bad one is among ${count}, between which nothing could be judged:`]);
        for (const record of records.slice(0, RECORDS_SHOWN)) {
            output.lines([`  ${await describeRecord(context, named, record)}`]);
        }
    }
    if (records.length !== 1)
        context.setExitCode(EXIT.failure);
}
/** Records that are named where skips leave several. */
const RECORDS_SHOWN = 100;
async function describeRecord({ signal }, { source, parameters }, { shard, position, timeMs }) {
    const { recordAt, summarizeRecord } = await import("../../../history/source.js");
    const { formatTime } = await import("../../../history/points.js");
    const { showPosition } = await import("../../../protocol/messages/position.js");
    const record = await recordAt(source.shard(shard), position, signal);
    const summary = record && summarizeRecord(source.job, record);
    const { sender, verb = "" } = summary ?? {};
    const from = sender === undefined ? "a host" : `${sender.trainer}/${sender.session}:${sender.n}`;
    const names = record === undefined ? [] : await parameters.of(shard, record);
    const of = names.length === 0 ? "" : ` of ${names.join(", ")}`;
    return `${from}, ${verb}${of}, at ${showPosition(shard, position)}, ${formatTime(timeMs)}`;
}
async function recordEntry({ signal }, { source, parameters }, { shard, position, timeMs }) {
    const { recordAt, summarizeRecord } = await import("../../../history/source.js");
    const { formatTime } = await import("../../../history/points.js");
    const record = await recordAt(source.shard(shard), position, signal);
    const { sender, verb } = (record && summarizeRecord(source.job, record)) ?? {};
    const names = record === undefined ? [] : await parameters.of(shard, record);
    return { time: formatTime(timeMs), shard, ...position, ...sender, verb, parameters: names };
}
//# sourceMappingURL=bisect.js.map