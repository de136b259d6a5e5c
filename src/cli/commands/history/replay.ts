import type { Command } from "commander";
import type { ResolvedPoint } from "../../../history/points.ts";
import type { ReplayedModel, ReplayedParameter } from "../../../history/replay/replayed-model.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import {
  pointEntry,
  resolvePointText,
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
import { formatBytes, formatCount } from "../../output/amounts.ts";
import type { Output } from "../../output/output.ts";

interface ReplayFlags extends HistoryFlags {
  readonly to: string;
  readonly param?: readonly string[];
  readonly out?: string;
}

/** A replayed model, its point, and the parameters of it that are shown or written. */
interface Replayed {
  readonly point: ResolvedPoint;
  readonly model: ReplayedModel;
  readonly parameters: readonly ReplayedParameter[];
}

/** Adds the command `pserver replay`, which rebuilds the model of a job as it was at a point of its history. */
export function registerReplay(program: Command, context: CliContext): void {
  const command = program
    .command("replay")
    .summary("rebuild the model as it was at a point")
    .description("rebuild the model as it was at a point, from the journal and its snapshots")
    .requiredOption("--to <point>", "the point: a time, a position, a step, an update, now")
    .option("--out <file>", "write the values to a file here; the ending chooses the format");
  addHistoryOptions(addParamOption(command)).action((flags: ReplayFlags) =>
    runReplay(context, flags),
  );
  addHelp(command, {
    "What it does": [
      "  Loads the newest snapshot before the point and folds the records after it by the code that",
      "  hosts use: the bytes are those that a trainer would have pulled then. Nothing is changed. If",
      "  the kept journal does not reach back it says from where it does.",
    ],
    Points: POINT_HELP,
    Formats: [
      "  *.safetensors, *.npz, *.tar (PaddlePaddle), or a directory, whose name ends in /; with one",
      "  --param also *.npy, *.json and *.bin. A file appears whole or not at all.",
    ],
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  {"point":{"point","kind","time","cut":[{"shard","generation","seq"}]},"parameters":[{"name",',
      '  "dtype","shape","bytes","blocks","version","updates","epoch","complete"}],"shards":[{"shard",',
      '  "digest"}]}, with "file", "bytes" and "format" if one was written.',
    ],
    Examples: [
      '  pserver replay --to "10m ago" --out before.safetensors',
      "  pserver replay --to 3:1200 --param w      # the values",
      "  pserver replay --to 2026-11-23T04:12:07Z --param w --out w.npy",
    ],
  });
}

async function runReplay(context: CliContext, flags: ReplayFlags): Promise<void> {
  const output = openOutput(context, flags);
  const { out, param } = flags;
  if (out !== undefined) {
    const { checkModelTarget } = await import("../../history/write-model.ts");
    await checkModelTarget(out, { isOneParameter: param?.length === 1 });
  }
  await withHistory(context, flags, async (history) => {
    const point = await resolvePointText(context, output, history.source, flags.to);
    await withReplays(context, output, history, async (replay) => {
      const model = await replay(point);
      const parameters = selectParameters(output, model, param);
      await showResult(context, output, flags, { point, model, parameters });
    });
  });
}

/**
 * Selects the parameters that were asked for, or all; leaves those that are not complete out of files, with a
 * warning.
 */
function selectParameters(
  output: Output,
  model: ReplayedModel,
  names: readonly string[] | undefined,
): ReplayedParameter[] {
  if (names !== undefined) return names.map((name) => model.parameter(name));
  const partial = model.parameters.filter(({ isComplete }) => !isComplete);
  if (partial.length > 0) {
    const what = formatCount(partial.length, "parameter");
    output.warning(`${what} had not been initialized as a whole: their values are left out`);
  }
  return model.parameters;
}

async function showResult(
  context: CliContext,
  output: Output,
  { out, param, job }: ReplayFlags,
  replayed: Replayed,
): Promise<void> {
  const { point, model, parameters } = replayed;
  const { describeModel, parameterEntry } = await import("../../history/describe-model.ts");
  const written = out === undefined ? undefined : await write(context, output, out, job, replayed);
  const [only] = parameters;
  if (output.json) {
    const shards = await Promise.all(
      model.shards.map(async (shard) => ({ shard: shard.shard, digest: await shard.digest() })),
    );
    const entries = { parameters: parameters.map(parameterEntry), shards, ...written };
    output.value({ point: await pointEntry(point), ...entries });
  } else if (written !== undefined) {
    const { file, bytes, format } = written;
    output.message(`wrote ${formatBytes(bytes)} as ${format}: ${file}`);
  } else if (param?.length === 1 && only !== undefined) {
    const { summarizeTensor } = await import("../../output/tensor-summary.ts");
    const { describeUpdates, describeVersion } = await import("../../output/tensor-summary.ts");
    const { versionsOf } = await import("../../../history/replay/replayed-model.ts");
    const versions = versionsOf(only);
    const facts = [`version ${describeVersion(versions)}`, `updates ${describeUpdates(versions)}`];
    const tensor = await model.tensor(only.name);
    output.lines(summarizeTensor(only.name, tensor, facts, output.width));
  } else if (parameters.length === 0) {
    output.message(`job ${job} had no parameters at that point`);
  } else {
    output.lines(describeModel(parameters, output));
  }
}

async function write(
  { signal }: CliContext,
  output: Output,
  out: string,
  job: string,
  { point, model, parameters }: Replayed,
) {
  const { writeModel } = await import("../../history/write-model.ts");
  const { formatPoint } = await import("../../../history/points.ts");
  const complete = parameters.filter(({ isComplete }) => isComplete);
  const toWrite = { model, parameters: complete, job, point: formatPoint(point.point) };
  return await output.progress("writing").during(writeModel(out, toWrite, signal));
}
