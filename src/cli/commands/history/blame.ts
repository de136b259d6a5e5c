import type { Command } from "commander";
import type { ElementBlame, ElementChange, ElementName } from "../../../history/blame.ts";
import type { ResolvedPoint } from "../../../history/points.ts";
import type { HistorySource } from "../../../history/source.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import { type OpenedHistory, resolvePointText, withHistory } from "../../history/with-history.ts";
import {
  addHistoryOptions,
  HISTORY_PERMISSIONS,
  type HistoryFlags,
  POINT_HELP,
} from "../../options/history-options.ts";
import { wholeNumber } from "../../options/parse-values.ts";
import { formatCount, formatRecords } from "../../output/amounts.ts";
import type { Output } from "../../output/output.ts";

interface BlameFlags extends HistoryFlags {
  readonly since?: string;
  readonly until: string;
  readonly most: number;
}

/** Number of changes that are printed by default. */
const MOST_DEFAULT = 50;

/** Adds the command `pserver blame`, which shows which updates moved an element, and by how much. */
export function registerBlame(program: Command, context: CliContext): void {
  const command = program
    .command("blame")
    .summary("show which updates moved an element, how much")
    .description("show which updates moved one element of a parameter, and by how much")
    .argument("<element>", "such as 'w[3,4]', or 's' for a scalar")
    .option("--since <point>", "only changes after this point (default: start)")
    .option("--until <point>", "only changes up to this point", "now")
    .option(
      "--most <n>",
      "print no more changes than this: the largest, in order",
      wholeNumber(1, 1_000_000),
      MOST_DEFAULT,
    );
  addHistoryOptions(command).action((element: string, flags: BlameFlags) =>
    runBlame(context, element, flags),
  );
  addHelp(command, {
    "What it shows": [
      "  Every record that changed the element, in order, with the value before and after it, and the",
      "  sums of the changes of each trainer. In a sync job a step changes the element, so the sums are",
      "  those of steps, and of each step what every trainer's gradient added; likewise in a diloco job of",
      "  rounds what every contribution added to their mean. The sums add up to the difference of the",
      "  values at both ends.",
    ],
    Points: POINT_HELP,
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  A line for every change: {"time","shard","generation","seq","kind","trainer","session","n","step",',
      '  "shares":[{"trainer","gradient"}],"before","after","change"}; a kind is init, push, set, step,',
      '  round or drop; step is the number of a step or round. Then one line {"from","to","first",',
      '  "last","changes","nonFinite","trainers":[{"trainer","changes","sum"}],"steps":[…],"sum"}.',
      "  64-bit integers, NaN and infinities are strings.",
    ],
    Examples: ["  pserver blame 'w[3,4]'", `  pserver blame 'emb[1042,0]' --since "1h ago" --json`],
  });
}

async function runBlame(context: CliContext, text: string, flags: BlameFlags): Promise<void> {
  const output = openOutput(context, flags);
  const { parseElement } = await import("../../../history/blame.ts");
  const { TopChanges } = await import("../../history/blame-table.ts");
  const name = parseElement(text);
  await withHistory(context, flags, async (history) => {
    const { source } = history;
    const since =
      flags.since === undefined
        ? undefined
        : await resolvePointText(context, output, source, flags.since);
    const until = await resolvePointText(context, output, source, flags.until);
    const largest = new TopChanges(flags.most);
    const tell = await teller(output);
    const blame = await lookThrough(context, output, history, { name, since, until }, (change) => {
      if (output.json) tell(change);
      else largest.add(change);
    });
    await showResult(output, text, blame, largest.changes, largest.leftOut);
    if (since === undefined && !output.json) await tellGeneration(output, source, blame);
  });
}

/** Says that there may be earlier changes, in the journal that a rewind or a recovery has left behind. */
async function tellGeneration(
  output: Output,
  source: HistorySource,
  { shard, from: { generation } }: ElementBlame,
): Promise<void> {
  const spans = await source.shard(shard).spans();
  if (!spans.some((span) => span.generation === generation - 1)) return;
  const earlier = `for those before it: --until ${shard}:SEQ@${generation - 1}`;
  output.message(`the changes are of generation ${generation} of shard ${shard}; ${earlier}`);
}

async function teller(output: Output): Promise<(change: ElementChange) => void> {
  const { changeEntry } = await import("../../../history/reports/json-entries.ts");
  return (change) => output.value(changeEntry(change));
}

/** The element that is looked for, and the points between which it is. */
interface BlameSpan {
  readonly name: ElementName;
  readonly since: ResolvedPoint | undefined;
  readonly until: ResolvedPoint;
}

async function lookThrough(
  { signal }: CliContext,
  output: Output,
  { source }: OpenedHistory,
  { name, since, until }: BlameSpan,
  onChange: (change: ElementChange) => void,
): Promise<ElementBlame> {
  const { locateElement } = await import("../../../history/blame.ts");
  const { blameElement } = await import("../../../history/blame.ts");
  const place = await locateElement(source, until.cut, name, signal);
  const options = { since: since?.cut, until: until.cut, signal, onChange };
  return await output
    .progress("folding", formatRecords)
    .reported((onProgress) => blameElement(source, place, { ...options, onProgress }));
}

async function showResult(
  output: Output,
  text: string,
  blame: ElementBlame,
  changes: readonly ElementChange[],
  leftOut: number,
): Promise<void> {
  const { blameEntry } = await import("../../../history/reports/json-entries.ts");
  const { describeChanges, describeTotals, valueText } = await import(
    "../../history/blame-table.ts"
  );
  if (output.json) {
    output.value(blameEntry(blame));
    return;
  }
  output.lines(describeChanges(changes, output));
  if (leftOut > 0) output.message(`and ${formatCount(leftOut, "smaller change")}: see --most`);
  output.lines(["", ...describeTotals(blame, output)]);
  const { first, last, sum, changes: count, nonFinite } = blame;
  const ends = `${valueText(first)} → ${valueText(last)}`;
  output.message(`${text}: ${ends}, ${formatCount(count, "change")}, sum ${valueText(sum)}`);
  if (nonFinite > 0) {
    output.warning(`${formatCount(nonFinite, "change")} to or from NaN or an infinity: in no sum`);
  }
}
