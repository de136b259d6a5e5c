import { Option } from "commander";
import { FILE_MODES, writeFileAtomically } from "../../../model-files/atomic-write.js";
import { PserverError } from "../../../protocol/errors.js";
import { addHelp, openOutput } from "../../context.js";
import { ChartCollector, chartEntry } from "../../history/chart.js";
import { htmlPage, svgChart } from "../../history/svg-chart.js";
import { terminalChart } from "../../history/terminal-chart.js";
import { addRangeOptions, selectUpdates, withHistory, } from "../../history/with-history.js";
import { addHistoryOptions, POINT_HELP } from "../../options/history-options.js";
import { formatBytes } from "../../output/amounts.js";
import { makePaintRank, wantsColor } from "../../output/colors.js";
/** Adds the command `pserver plot`, which draws a number of the notes, or the norms of updates, over time. */
export function registerPlot(program, context) {
    const command = program
        .command("plot")
        .summary("draw losses, other notes, or norms of updates")
        .description("draw a number of the trainers' notes, or norms, in the terminal, as SVG or HTML")
        .argument("[value]", '"norm", or the name of an entry of notes', "loss");
    addRangeOptions(command)
        .addOption(new Option("--by <axis>", "what stands below: the time, or the step that notes name")
        .choices(["time", "step"])
        .default("time"))
        .option("--log", "a logarithmic scale; values of 0 or less are left out, and counted")
        .option("-o, --out <file>", "write a picture instead: .svg, or one page of its own: .html");
    addHistoryOptions(command).action((value, flags) => runPlot(context, value, flags));
    addHelp(command, {
        "What it draws": [
            "  One line for each trainer; of norms, for each trainer and parameter. Notes with an entry mark are",
            "  drawn as upright lines with their names. Of more than 4,096 values of a trainer, neighbours are",
            "  joined: the line is their mean, with least and largest around it. A value that is NaN or an",
            "infinity, or a norm of a gradient with such elements, is a cross at the upper edge.",
        ],
        Points: POINT_HELP,
        "With --json": [
            '  {"title","by","scale","series":[{"name","points":[{"x","min","max","mean","count"}]}],"marks":[…],',
            '  "notFinite":[{"x","name"}],"notFiniteCount","leftOut","x","y"};',
            "  x in milliseconds since 1970, or steps.",
        ],
        Examples: [
            "  pserver plot loss --since '1h ago'",
            "  pserver plot norm --log --param fc1 --out norms.svg",
            "  pserver plot accuracy --by step --out run.html",
        ],
    });
}
async function runPlot(context, value, flags) {
    const output = openOutput(context, flags);
    const write = flags.out === undefined ? undefined : pictureOf(flags.out, flags);
    const { signal } = context;
    const scale = flags.log === true ? "log" : "linear";
    const collector = new ChartCollector({ title: value, by: flags.by, scale });
    const { chart, job } = await withHistory(context, flags, async ({ source }) => {
        const updates = await selectUpdates(context, output, source, flags, { signal });
        for await (const events of updates) {
            for (const event of events)
                collector.add(event);
        }
        return { chart: collector.chart(), job: source.job };
    });
    if (chart.series.length === 0)
        throw nothingToDraw(value, flags, chart.leftOut);
    if (chart.leftOut > 0)
        output.message(`left out ${leftOutText(chart.leftOut)}`);
    if (flags.out !== undefined && write !== undefined) {
        await savePicture(output, flags.out, write(chart, job));
    }
    else if (output.json)
        output.value(chartEntry(chart));
    else
        await draw(context, output, chart, flags);
}
/**
 * Returns a function that writes a chart in the format of the file's ending.
 * @throws BAD_VALUE for another ending.
 */
function pictureOf(file, flags) {
    if (file.endsWith(".svg"))
        return svgChart;
    if (/\.html?$/.test(file)) {
        return (chart, job) => htmlPage(chart, { job, source: originOf(flags), madeMs: Date.now() });
    }
    throw new PserverError("BAD_VALUE", `--out: expected a name that ends in .svg or .html; received ${JSON.stringify(file)}`, { received: file });
}
/** Describes for people where the history is that the flags name. */
function originOf({ archive, broker, fromFile }) {
    if (fromFile !== undefined)
        return fromFile;
    return [...(archive === undefined ? [] : [archive]), ...(broker ? ["the broker"] : [])].join(" and ");
}
async function savePicture(output, file, text) {
    const bytes = Buffer.from(text);
    await writeFileAtomically(file, (handle) => handle.writeFile(bytes), FILE_MODES.byUmask);
    if (output.json)
        output.value({ file, bytes: bytes.length });
    else
        output.message(`wrote ${formatBytes(bytes.length)}: ${file}`);
}
async function draw({ stdout, environment, signal }, output, chart, flags) {
    const isColored = wantsColor(stdout.isTTY === true, environment, flags.color === false);
    const lines = terminalChart(chart, output, makePaintRank(isColored), isColored);
    await output.stream([`${lines.join("\n")}\n`], signal);
}
function leftOutText(count) {
    return `${count} ${count === 1 ? "value" : "values"} of 0 or less`;
}
function nothingToDraw(value, { by }, leftOut) {
    const what = value === "norm" ? "updates with norms" : `notes with a number ${value}`;
    const where = by === "step" ? " and a step" : "";
    const except = leftOut > 0 ? ` but ${leftOutText(leftOut)}` : "";
    return new PserverError("EMPTY", `nothing to draw: found no ${what}${where}${except}`, {
        received: value,
    });
}
//# sourceMappingURL=plot.js.map