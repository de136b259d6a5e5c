import { type Command, Option } from "commander";
import {
  type Chart,
  ChartCollector,
  chartEntry,
  POINTS_MAX,
} from "../../../history/reports/chart.ts";
import { FILE_MODES, writeFileAtomically } from "../../../model-files/atomic-write.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import { htmlPage, svgChart } from "../../history/svg-chart.ts";
import { terminalChart } from "../../history/terminal-chart.ts";
import {
  addRangeOptions,
  type RangeFlags,
  selectUpdates,
  withHistory,
} from "../../history/with-history.ts";
import { addHistoryOptions, type HistoryFlags, POINT_HELP } from "../../options/history-options.ts";
import { parseJobs, wholeNumber } from "../../options/parse-values.ts";
import { formatBytes } from "../../output/amounts.ts";
import { makePaintRank, wantsColor } from "../../output/colors.ts";
import type { Output } from "../../output/output.ts";

/** Flags of `pserver plot`. */
interface PlotFlags extends HistoryFlags, RangeFlags {
  readonly by: "time" | "elapsed" | "step";
  /** Other jobs to compare with. */
  readonly against?: readonly string[];
  readonly log?: boolean;
  readonly points: number;
  readonly out?: string;
}

/** Adds the command `pserver plot`, which draws a number of the notes, or the norms of updates, over time. */
export function registerPlot(program: Command, context: CliContext): void {
  const command = program
    .command("plot")
    .summary("draw losses, other notes, or norms of updates")
    .description("draw a number of the trainers' notes, or norms, in the terminal, as SVG or HTML")
    .argument("[value]", '"norm", or the name of an entry of notes', "loss");
  addRangeOptions(command)
    .addOption(
      new Option(
        "--by <axis>",
        "what stands below: the time, the time since the job's first value, or the step that notes name",
      )
        .choices(["time", "elapsed", "step"])
        .default("time"),
    )
    .option(
      "--against <jobs>",
      "also draw these jobs, with commas; then there is one line for each job",
      parseJobs,
    )
    .option(
      "--points <n>",
      "most points of a line, so that neighbours are joined",
      wholeNumber(2, POINTS_MAX),
      POINTS_MAX,
    )
    .option("--log", "a logarithmic scale; values of 0 or less are left out, and counted")
    .option("-o, --out <file>", "write a picture instead: .svg, or one page of its own: .html");
  addHistoryOptions(command).action((value: string, flags: PlotFlags) =>
    runPlot(context, value, flags),
  );
  addHelp(command, {
    "What it draws": [
      "  One line for each trainer; of norms, for each trainer and parameter. With --against, a line for each",
      "  job, of the values of all its trainers. Notes with an entry mark are drawn as upright lines with",
      "  their names. Of more values than --points allows, neighbours are joined: the line is their mean, with",
      "  least and largest around it. A value that is NaN or an infinity, or a norm of a gradient with such",
      "  elements, is a cross at the upper edge.",
    ],
    Points: POINT_HELP,
    "With --json": [
      '  {"title","by","scale","series":[{"name","points":[{"x","min","max","mean","count"}]}],"marks":[…],',
      '  "notFinite":[{"x","name"}],"notFiniteCount","leftOut","x","y"};',
      "  x in milliseconds since 1970 or the first value, or steps.",
    ],
    Examples: [
      "  pserver plot loss --since '1h ago'",
      "  pserver plot norm --log --param fc1 --out norms.svg",
      "  pserver plot accuracy --by step --out run.html",
      "  pserver plot loss --job new --against old,older --by elapsed --points 200",
    ],
  });
}

async function runPlot(context: CliContext, value: string, flags: PlotFlags): Promise<void> {
  const output = openOutput(context, flags);
  const write = flags.out === undefined ? undefined : pictureOf(flags.out, flags);
  const { signal } = context;
  const scale = flags.log === true ? "log" : "linear";
  const collector = new ChartCollector({ title: value, by: flags.by, scale }, flags.points);
  const against = otherJobs(flags);
  const jobs: string[] = [];
  for (const job of [flags.job, ...against]) {
    await withHistory(context, { ...flags, job }, async ({ source }) => {
      jobs.push(source.job);
      const updates = await selectUpdates(context, output, source, flags, { signal });
      const series = against.length > 0 ? source.job : undefined;
      for await (const events of updates) {
        for (const event of events) collector.add(event, series);
      }
    });
  }
  const chart = collector.chart();
  if (chart.series.length === 0) throw nothingToDraw(value, flags, chart.leftOut);
  if (chart.leftOut > 0) output.message(`left out ${leftOutText(chart.leftOut)}`);
  if (flags.out !== undefined && write !== undefined) {
    await savePicture(output, flags.out, write(chart, jobs));
  } else if (output.json) output.value(chartEntry(chart));
  else await draw(context, output, chart, flags);
}

/**
 * Returns a function that writes a chart in the format of the file's ending.
 * @throws BAD_VALUE for another ending.
 */
function pictureOf(
  file: string,
  flags: PlotFlags,
): (chart: Chart, jobs: readonly string[]) => string {
  if (file.endsWith(".svg")) return svgChart;
  if (/\.html?$/.test(file)) {
    return (chart, jobs) => htmlPage(chart, { jobs, source: originOf(flags), madeMs: Date.now() });
  }
  throw new PserverError(
    "BAD_VALUE",
    `--out: expected a name that ends in .svg or .html; received ${JSON.stringify(file)}`,
    { received: file },
  );
}

/**
 * Returns the jobs to compare with.
 * @throws BAD_VALUE if the history is that of one job.
 */
function otherJobs({ against = [], archive, fromFile }: PlotFlags): readonly string[] {
  if (against.length === 0 || (archive === undefined && fromFile === undefined)) return against;
  const flag = archive === undefined ? "--from-file" : "--archive";
  throw new PserverError("BAD_VALUE", `--against: expected no ${flag} with it, which has one job`);
}

/** Describes for people where the history is that the flags name. */
function originOf({ archive, broker, fromFile }: PlotFlags): string {
  if (fromFile !== undefined) return fromFile;
  return [...(archive === undefined ? [] : [archive]), ...(broker ? ["the broker"] : [])].join(
    " and ",
  );
}

async function savePicture(output: Output, file: string, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  await writeFileAtomically(file, (handle) => handle.writeFile(bytes), FILE_MODES.byUmask);
  if (output.json) output.value({ file, bytes: bytes.length });
  else output.message(`wrote ${formatBytes(bytes.length)}: ${file}`);
}

async function draw(
  { stdout, environment, signal }: CliContext,
  output: Output,
  chart: Chart,
  flags: PlotFlags,
): Promise<void> {
  const isColored = wantsColor(stdout.isTTY === true, environment, flags.color === false);
  const lines = terminalChart(chart, output, makePaintRank(isColored), isColored);
  await output.stream([`${lines.join("\n")}\n`], signal);
}

function leftOutText(count: number): string {
  return `${count} ${count === 1 ? "value" : "values"} of 0 or less`;
}

function nothingToDraw(value: string, { by }: PlotFlags, leftOut: number): PserverError {
  const what = value === "norm" ? "updates with norms" : `notes with a number ${value}`;
  const where = by === "step" ? " and a step" : "";
  const except = leftOut > 0 ? ` but ${leftOutText(leftOut)}` : "";
  return new PserverError("EMPTY", `nothing to draw: found no ${what}${where}${except}`, {
    received: value,
  });
}
