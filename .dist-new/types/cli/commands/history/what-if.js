import { PserverError } from "../../../protocol/errors.js";
import { addHelp, openOutput } from "../../context.js";
import { pointEntry, resolvePointText, withHistory, withPool, } from "../../history/with-history.js";
import { addHistoryOptions, addParamOption, HISTORY_PERMISSIONS, POINT_HELP, } from "../../options/history-options.js";
import { finiteNumber, positiveNumber } from "../../options/parse-values.js";
import { formatBytes, formatRecords } from "../../output/amounts.js";
/** The warning with every result: a person may take it for that of a training that never happened. */
const CAUTION = "the gradients are those that trainers computed from the values that they really had: a training " +
    "without what was left out would have computed others";
/** Adds the command `pserver what-if`, which computes the model as it would have been with other updates. */
export function registerWhatIf(program, context) {
    const command = program
        .command("what-if")
        .summary("fold again without some updates, and compare")
        .description("fold the journal again without some updates, or otherwise, and show what differs")
        .requiredOption("--to <point>", "the end: the model as it would have been then")
        .option("--from <point>", "change only records after this point (default: start)")
        .option("--without <sender>", "a trainer, or an update as TRAINER/SESSION:NUMBER; may be repeated", (text, before = []) => [...before, text])
        .option("--learning-rate <x>", "the rate of every gradient", finiteNumber)
        .option("--clip-norm <x>", "scale gradients of a larger L2 norm down to it", positiveNumber)
        .option("--out <file>", "write the model to a file here instead of comparing it");
    addHistoryOptions(addParamOption(command)).action((flags) => runWhatIf(context, flags));
    addHelp(command, {
        "What it does": [
            "  Folds the records after --from again by the code that hosts use, without those of the trainers",
            "  and updates that are left out, or with another learning rate or clipping, and compares the model",
            "  with the real one: A is real, B what would have been. Nothing is changed. The gradients stay",
            "  those that trainers computed from the values that they really had, so the result says what an",
            "  update did, not where a training without it would have gone. Inits and clocks of a trainer stay.",
            "  A norm is that which the update carries, else that of its elements in one shard.",
        ],
        Points: POINT_HELP,
        Permissions: HISTORY_PERMISSIONS,
        "With --json": [
            '  {"from","to","leftOut","changed","caution","parameters":[…]} as diff prints them, or with --out',
            '  {…,"file","bytes","format"}; leftOut and changed are numbers of records.',
        ],
        Examples: [
            "  pserver what-if --without trainer-2 --to now",
            "  pserver what-if --without trainer-2/8:1042 --to now --out without.safetensors",
            '  pserver what-if --from "1h ago" --learning-rate 0.01 --to now --param w',
        ],
    });
}
async function runWhatIf(context, flags) {
    checkFlags(flags);
    const output = openOutput(context, flags);
    const { out, param } = flags;
    if (out !== undefined) {
        const { checkModelTarget } = await import("../../history/write-model.js");
        await checkModelTarget(out, param?.length === 1);
    }
    await withHistory(context, flags, async (history) => {
        const { source } = history;
        const to = await resolvePointText(context, output, source, flags.to);
        const from = flags.from === undefined
            ? undefined
            : await resolvePointText(context, output, source, flags.from);
        const changes = await changesOf(context, output, history, flags);
        await withPool(context, history, async (pool) => {
            const found = await foldWhatIf(output, pool, { from, to }, changes);
            await showResult(context, output, flags, { pool, from, to, ...found });
        });
    });
}
/** @throws BAD_VALUE if nothing is to be changed. */
function checkFlags({ without, learningRate, clipNorm }) {
    if (without !== undefined || learningRate !== undefined || clipNorm !== undefined)
        return;
    throw new PserverError("BAD_VALUE", "expected --without, --learning-rate or --clip-norm; received none of them");
}
/** Reads from the flags what to change in the fold; looks for the updates that are to be left out. */
async function changesOf({ signal }, output, { source }, { without = [], learningRate, clipNorm }) {
    const { parsePoint } = await import("../../../history/points.js");
    const { findUpdate } = await import("../../../history/resolve-point.js");
    const withoutTrainers = [];
    const withoutRecords = [];
    for (const text of without) {
        const point = UPDATE.test(text) ? parsePoint(text, Date.now()) : undefined;
        if (point?.kind !== "update") {
            withoutTrainers.push(text);
            continue;
        }
        const { shard, position } = await output
            .progress(`looking for ${text}`)
            .during(findUpdate(source, point, signal));
        withoutRecords.push({ shard, ...position });
    }
    return { withoutTrainers, withoutRecords, learningRate, clipNorm };
}
/** Matches texts that end as an update's name does; a trainer's id may hold a slash. */
const UPDATE = /\/\d+:\d+(?:@\d+)?$/;
async function foldWhatIf(output, pool, { from, to }, changes) {
    const { modelWhatIf } = await import("../../../history/replay/replayer.js");
    const span = { from: from?.cut, to: to.cut };
    return await output
        .progress("folding", formatRecords)
        .reported((onProgress) => modelWhatIf(pool, span, changes, onProgress));
}
async function showResult(context, output, flags, result) {
    const { from, to, counts } = result;
    const { leftOut, changed } = counts;
    output.message(`left out ${formatRecords(leftOut)}, changed ${formatRecords(changed)}`);
    if (leftOut + changed === 0)
        output.warning("no record was to be changed: check the names");
    output.message(`note: ${CAUTION}`);
    const common = {
        from: from === undefined ? null : await pointEntry(from),
        to: await pointEntry(to),
        ...counts,
        caution: CAUTION,
    };
    if (flags.out !== undefined) {
        const written = await write(context, flags.out, flags, result);
        const { file, bytes, format } = written;
        if (output.json)
            output.value({ ...common, ...written });
        else
            output.message(`wrote ${formatBytes(bytes)} as ${format}: ${file}`);
        return;
    }
    const { describeDifferences, differenceEntry } = await import("../../history/model-differences.js");
    const differences = await compareWithReal(context, output, flags, result);
    if (output.json)
        output.value({ ...common, parameters: differences.map(differenceEntry) });
    else
        output.lines(describeDifferences(differences, output));
}
async function write({ signal }, out, { param, job }, { model, to }) {
    const { writeModel } = await import("../../history/write-model.js");
    const { formatPoint } = await import("../../../history/points.js");
    const parameters = param === undefined
        ? model.parameters.filter(({ isComplete }) => isComplete)
        : param.map((name) => model.parameter(name));
    return await writeModel(out, { model, parameters, job, point: `what-if ${formatPoint(to.point)}` }, signal);
}
async function compareWithReal({ signal }, output, { param }, { pool, to, model }) {
    const { replayModel } = await import("../../../history/replay/replayer.js");
    const { compareSides } = await import("../../history/model-differences.js");
    const real = await output.progress("replaying").during(replayModel(pool, to.cut));
    const sides = [real, model].map((each) => ({ kind: "point", point: to, model: each }));
    return await compareSides(output, sides, { names: param, asSaved: false }, signal);
}
//# sourceMappingURL=what-if.js.map