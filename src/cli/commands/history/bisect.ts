import type { Command } from "commander";
import type { BisectResult, Judge, OrderedRecord, Verdict } from "../../../history/bisect.ts";
import type { Cut, ResolvedPoint } from "../../../history/points.ts";
import type { RecordParameters } from "../../../history/record-parameters.ts";
import type { ReplayedModel } from "../../../history/replay/replayed-model.ts";
import type { HistorySource } from "../../../history/source.ts";
import { PserverError } from "../../../protocol/errors.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import {
  type OpenedHistory,
  pointEntry,
  type Replay,
  resolvePointText,
  showCut,
  withHistory,
  withReplays,
} from "../../history/with-history.ts";
import {
  addHistoryOptions,
  addParamOption,
  HISTORY_PERMISSIONS,
  type HistoryFlags,
  POINT_HELP,
} from "../../options/history-options.ts";
import { formatCount, formatRecords } from "../../output/amounts.ts";
import type { Output } from "../../output/output.ts";
import { EXIT } from "../../report-error.ts";

interface BisectFlags extends HistoryFlags {
  readonly good: string;
  readonly bad: string;
  readonly nan?: boolean;
  readonly param?: readonly string[];
}

/** The two points between which is searched. */
interface Ends {
  readonly good: ResolvedPoint;
  readonly bad: ResolvedPoint;
}

/** Adds the command `pserver bisect`, which finds the update that made a model bad. */
export function registerBisect(program: Command, context: CliContext): void {
  const command = program
    .command("bisect")
    .summary("find the first bad update, by running a command")
    .description("find the first bad update by running a command on models between two points")
    .argument("[command...]", "after --: the command, with {} for the model's file")
    .requiredOption("--good <point>", "a point at which the model was good")
    .option("--bad <point>", "a later point at which it was bad", "now")
    .option("--nan", "instead of a command: bad is a model with a NaN or an infinity");
  addHistoryOptions(addParamOption(command)).action((words: string[], flags: BisectFlags) =>
    runBisect(context, words, flags),
  );
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

async function runBisect(
  context: CliContext,
  words: readonly string[],
  flags: BisectFlags,
): Promise<void> {
  checkFlags(words, flags);
  const output = openOutput(context, flags);
  await withHistory(context, flags, async (history) => {
    const { source } = history;
    const good = await resolvePointText(context, output, source, flags.good);
    const bad = await resolvePointText(context, output, source, flags.bad);
    await withReplays(context, output, history, async (replay) => {
      const { judge, judged } = judgeOf(context, output, history, replay, words, flags);
      const { bisect } = await import("../../../history/bisect.ts");
      const ends = { good: good.cut, bad: bad.cut };
      const result = await bisect(source, ends, judge, context.signal);
      await showResult(context, output, source, { good, bad }, result, judged());
    });
  });
}

/** @throws BAD_VALUE unless there is either a command or `--nan`. */
function checkFlags(words: readonly string[], { nan, param }: BisectFlags): void {
  if (words.length > 0 === (nan === true)) {
    const received = nan === true ? "both" : "neither";
    throw new PserverError(
      "BAD_VALUE",
      `expected a command after --, or --nan; received ${received}`,
    );
  }
  if (nan === true || param === undefined) return;
  throw new PserverError(
    "BAD_VALUE",
    "--param: expected --nan with it; a command gets all parameters",
  );
}

/**
 * Makes the judge that the flags ask for, which prints each verdict, and a function that returns how often it
 * has judged.
 */
function judgeOf(
  context: CliContext,
  output: Output,
  { source }: OpenedHistory,
  replay: Replay,
  words: readonly string[],
  { nan, param }: BisectFlags,
): { judge: Judge; judged: () => number } {
  let count = 0;
  const judge: Judge = async (cut, leftRecords) => {
    const model = await replay({ cut });
    const verdict =
      nan === true
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

async function judgeFinite(
  model: ReplayedModel,
  names: readonly string[] | undefined,
): Promise<Verdict> {
  const { isFiniteModel } = await import("../../../history/bisect.ts");
  return (await isFiniteModel(model, names)) ? "good" : "bad";
}

async function judgeFile(
  context: CliContext,
  { job }: HistorySource,
  model: ReplayedModel,
  cut: Cut,
  words: readonly string[],
): Promise<Verdict> {
  const { judgeByCommand } = await import("../../history/judge-by-command.ts");
  const { writeModel } = await import("../../history/write-model.ts");
  const parameters = model.parameters.filter(({ isComplete }) => isComplete);
  // Before the job was initialized there is no model that a command could judge.
  if (parameters.length === 0) return "skip";
  const point = showCut(cut);
  const write = (path: string) =>
    writeModel(path, { model, parameters, job, point }, context.signal);
  return await judgeByCommand(context, words, { write, point });
}

async function showResult(
  context: CliContext,
  output: Output,
  source: HistorySource,
  ends: Ends,
  { records }: BisectResult,
  judged: number,
): Promise<void> {
  const [first] = records;
  const { RecordParameters } = await import("../../../history/record-parameters.ts");
  const parameters = new RecordParameters(source, ends.bad.cut, context.signal);
  const named: NamedSource = { source, parameters };
  if (output.json) {
    const [good, bad] = await Promise.all([pointEntry(ends.good), pointEntry(ends.bad)]);
    const found = await Promise.all(
      records.slice(0, RECORDS_SHOWN).map((record) => recordEntry(context, named, record)),
    );
    output.value({ good, bad, judged, records: found });
  } else if (records.length === 1 && first !== undefined) {
    output.lines([`first bad: ${await describeRecord(context, named, first)}`]);
  } else {
    const count = formatCount(records.length, "record");
    output.lines([`the first bad one is among ${count}, between which nothing could be judged:`]);
    for (const record of records.slice(0, RECORDS_SHOWN)) {
      output.lines([`  ${await describeRecord(context, named, record)}`]);
    }
  }
  if (records.length !== 1) context.setExitCode(EXIT.failure);
}

/** Records that are named where skips leave several. */
const RECORDS_SHOWN = 100;

/** Where records are, and what tells their parameters. */
interface NamedSource {
  readonly source: HistorySource;
  readonly parameters: RecordParameters;
}

async function describeRecord(
  { signal }: CliContext,
  { source, parameters }: NamedSource,
  { shard, position, timeMs }: OrderedRecord,
): Promise<string> {
  const { recordAt, summarizeRecord } = await import("../../../history/source.ts");
  const { formatTime } = await import("../../../history/points.ts");
  const { showPosition } = await import("../../../protocol/messages/position.ts");
  const record = await recordAt(source.shard(shard), position, signal);
  const summary = record && summarizeRecord(source.job, record);
  const { sender, verb = "" } = summary ?? {};
  const from = sender === undefined ? "a host" : `${sender.trainer}/${sender.session}:${sender.n}`;
  const names = record === undefined ? [] : await parameters.of(shard, record);
  const of = names.length === 0 ? "" : ` of ${names.join(", ")}`;
  return `${from}, ${verb}${of}, at ${showPosition(shard, position)}, ${formatTime(timeMs)}`;
}

async function recordEntry(
  { signal }: CliContext,
  { source, parameters }: NamedSource,
  { shard, position, timeMs }: OrderedRecord,
): Promise<unknown> {
  const { recordAt, summarizeRecord } = await import("../../../history/source.ts");
  const { formatTime } = await import("../../../history/points.ts");
  const record = await recordAt(source.shard(shard), position, signal);
  const { sender, verb } = (record && summarizeRecord(source.job, record)) ?? {};
  const names = record === undefined ? [] : await parameters.of(shard, record);
  return { time: formatTime(timeMs), shard, ...position, ...sender, verb, parameters: names };
}
