import type { Command } from "commander";
import type { ResolvedPoint } from "../../../history/points.ts";
import type { ReplayedModel } from "../../../history/replay/replayed-model.ts";
import type { Replayer } from "../../../history/replay/replayer.ts";
import type { ChangeCounts, FoldChanges } from "../../../history/what-if.ts";
import type { GuardSetting } from "../../../protocol/config/index.ts";
import { mismatch, PserverError } from "../../../protocol/errors.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import {
  type OpenedHistory,
  pointEntry,
  resolvePointText,
  withHistory,
  withPool,
} from "../../history/with-history.ts";
import type { WrittenModel } from "../../history/write-model.ts";
import {
  addHistoryOptions,
  addParamOption,
  HISTORY_PERMISSIONS,
  type HistoryFlags,
  POINT_HELP,
} from "../../options/history-options.ts";
import { finiteNumber, parseGuard, positiveNumber } from "../../options/parse-values.ts";
import { formatBytes, formatRecords } from "../../output/amounts.ts";
import type { Output } from "../../output/output.ts";

interface WhatIfFlags extends HistoryFlags {
  readonly to: string;
  readonly from?: string;
  readonly without?: readonly string[];
  readonly learningRate?: number;
  readonly clipNorm?: number;
  readonly guard?: GuardSetting;
  readonly withoutGuard?: readonly string[];
  readonly param?: readonly string[];
  readonly out?: string;
}

/** The warning with every result: a person may take it for that of a training that never happened. */
const CAUTION =
  "the gradients are those that trainers computed from the values that they really had: a training " +
  "without what was left out would have computed others";

/** Adds the command `pserver what-if`, which computes the model as it would have been with other updates. */
export function registerWhatIf(program: Command, context: CliContext): void {
  const command = program
    .command("what-if")
    .summary("fold again without some updates, and compare")
    .description("fold the journal again without some updates, or otherwise, and show what differs")
    .requiredOption("--to <point>", "the end: the model as it would have been then")
    .option("--from <point>", "change only records after this point (default: start)")
    .option(
      "--without <sender>",
      "a trainer, or an update as TRAINER/SESSION:NUMBER; may be repeated",
      (text: string, before: readonly string[] = []) => [...before, text],
    )
    .option("--learning-rate <x>", "the rate of every gradient", finiteNumber)
    .option("--clip-norm <x>", "scale gradients of a larger L2 norm down to it", positiveNumber)
    .option(
      "--without-guard <update>",
      "apply an update that a guard has rejected, clipped or set aside: TRAINER/SESSION:NUMBER or SHARD:SEQ; may be repeated",
      (text: string, before: readonly string[] = []) => [...before, text],
    )
    .option(
      "--guard <settings>",
      'the guard of every parameter: settings as {"factor":3,"action":"clip"}, or off',
      parseGuard,
    )
    .option("--out <file>", "write the model to a file here instead of comparing it");
  addHistoryOptions(addParamOption(command)).action((flags: WhatIfFlags) =>
    runWhatIf(context, flags),
  );
  addHelp(command, {
    "What it does": [
      "  Folds the records after --from again by the code that hosts use, without those of the trainers",
      "  and updates that are left out, or with another learning rate or clipping, and compares the model",
      "  with the real one: A is real, B what would have been. Nothing is changed. The gradients stay",
      "  those that trainers computed from the values that they really had, so the result says what an",
      "  update did, not where a training without it would have gone. Inits and clocks of a trainer stay.",
      "  A norm is that which the update carries, else that of its elements in one shard.",
      "  --without-guard applies one update whose norm was above the limit of a guard, as it was sent;",
      "  --guard decides about all updates after --from by other numbers, or with off by none.",
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
      "  pserver what-if --without-guard trainer-2/8:1042 --to now",
      '  pserver what-if --from "1h ago" --learning-rate 0.01 --to now --param w',
    ],
  });
}

async function runWhatIf(context: CliContext, flags: WhatIfFlags): Promise<void> {
  checkFlags(flags);
  const output = openOutput(context, flags);
  const { out, param } = flags;
  if (out !== undefined) {
    const { checkModelTarget } = await import("../../history/write-model.ts");
    await checkModelTarget(out, { isOneParameter: param?.length === 1 });
  }
  await withHistory(context, flags, async (history) => {
    const { source } = history;
    const to = await resolvePointText(context, output, source, flags.to);
    const from =
      flags.from === undefined
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
function checkFlags(flags: WhatIfFlags): void {
  const { without, learningRate, clipNorm, guard, withoutGuard } = flags;
  const given = [without, learningRate, clipNorm, guard, withoutGuard];
  if (given.some((flag) => flag !== undefined)) return;
  throw new PserverError(
    "BAD_VALUE",
    "expected --without, --learning-rate, --clip-norm, --without-guard or --guard; received none of them",
  );
}

/** Reads from the flags what to change in the fold; looks for the updates that are to be left out. */
async function changesOf(
  { signal }: CliContext,
  output: Output,
  { source }: OpenedHistory,
  { without = [], learningRate, clipNorm, guard, withoutGuard: undone = [] }: WhatIfFlags,
): Promise<FoldChanges> {
  const { parsePoint } = await import("../../../history/points.ts");
  const { findUpdate } = await import("../../../history/resolve-point.ts");
  const withoutTrainers: string[] = [];
  const withoutRecords: FoldChanges["withoutRecords"][number][] = [];
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
  const withoutGuard: FoldChanges["withoutRecords"][number][] = [];
  for (const text of undone) {
    const point = parsePoint(text, Date.now());
    if (point.kind !== "position" && point.kind !== "update") {
      const expected = "one update, TRAINER/SESSION:NUMBER or SHARD:SEQ";
      throw mismatch("BAD_VALUE", "--without-guard", expected, JSON.stringify(text));
    }
    const { findRecord } = await import("../../../history/examine-record.ts");
    const { shard, position } = await output
      .progress(`looking for ${text}`)
      .during(findRecord(source, point, signal));
    withoutGuard.push({ shard, ...position });
  }
  return { withoutTrainers, withoutRecords, learningRate, clipNorm, guard, withoutGuard };
}

/** Matches texts that end as an update's name does; a trainer's id may hold a slash. */
const UPDATE = /\/\d+:\d+(?:@\d+)?$/;

async function foldWhatIf(
  output: Output,
  pool: Replayer,
  { from, to }: { readonly from: ResolvedPoint | undefined; readonly to: ResolvedPoint },
  changes: FoldChanges,
): Promise<{ model: ReplayedModel; counts: ChangeCounts }> {
  const { modelWhatIf } = await import("../../../history/replay/replayer.ts");
  const span = { from: from?.cut, to: to.cut };
  return await output
    .progress("folding", formatRecords)
    .reported((onProgress) => modelWhatIf(pool, span, changes, onProgress));
}

/** The model of a what-if fold, with its span and the numbers of records that were changed. */
interface WhatIfResult {
  readonly pool: Replayer;
  readonly from: ResolvedPoint | undefined;
  readonly to: ResolvedPoint;
  readonly model: ReplayedModel;
  readonly counts: ChangeCounts;
}

async function showResult(
  context: CliContext,
  output: Output,
  flags: WhatIfFlags,
  result: WhatIfResult,
): Promise<void> {
  const { from, to, counts } = result;
  const { leftOut, changed } = counts;
  output.message(`left out ${formatRecords(leftOut)}, changed ${formatRecords(changed)}`);
  const isGuarded = flags.guard !== undefined || flags.withoutGuard !== undefined;
  if (leftOut + changed === 0 && !isGuarded)
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
    if (output.json) output.value({ ...common, ...written });
    else output.message(`wrote ${formatBytes(bytes)} as ${format}: ${file}`);
    return;
  }
  const { describeDifferences, differenceEntry } = await import(
    "../../history/model-differences.ts"
  );
  const differences = await compareWithReal(context, output, flags, result);
  if (output.json) output.value({ ...common, parameters: differences.map(differenceEntry) });
  else output.lines(describeDifferences(differences, output));
}

async function write(
  { signal }: CliContext,
  out: string,
  { param, job }: WhatIfFlags,
  { model, to }: WhatIfResult,
): Promise<WrittenModel> {
  const { writeModel } = await import("../../history/write-model.ts");
  const { formatPoint } = await import("../../../history/points.ts");
  const parameters =
    param === undefined
      ? model.parameters.filter(({ isComplete }) => isComplete)
      : param.map((name) => model.parameter(name));
  return await writeModel(
    out,
    { model, parameters, job, point: `what-if ${formatPoint(to.point)}` },
    signal,
  );
}

async function compareWithReal(
  { signal }: CliContext,
  output: Output,
  { param }: WhatIfFlags,
  { pool, to, model }: WhatIfResult,
) {
  const { replayModel } = await import("../../../history/replay/replayer.ts");
  const { compareSides } = await import("../../history/model-differences.ts");
  const real = await output.progress("replaying").during(replayModel(pool, to.cut));
  const sides = [real, model].map((each) => ({ kind: "point", point: to, model: each }) as const);
  return await compareSides(output, sides, { names: param, asSaved: false }, signal);
}
