import type { Command } from "commander";
import type { ParameterDifference } from "../../../history/compare-models.ts";
import type { Point } from "../../../history/points.ts";
import { openModel } from "../../../model-files/index.ts";
import { ensureError } from "../../../protocol/errors.ts";
import { addHelp, type CliContext, openOutput } from "../../context.ts";
import type { ComparedSide } from "../../history/model-differences.ts";
import {
  pointEntry,
  resolveAndShow,
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
import { formatCount } from "../../output/amounts.ts";
import { tellConversions } from "../../output/left-out.ts";
import type { Output } from "../../output/output.ts";
import { EXIT } from "../../report-error.ts";

interface DiffFlags extends HistoryFlags {
  readonly param?: readonly string[];
}

/** Adds the command `pserver diff`, which shows how two models differ, at points of the history or in files. */
export function registerDiff(program: Command, context: CliContext): void {
  const command = program
    .command("diff")
    .summary("compare two points, or a point and a file")
    .description("compare the model at two points, or at a point with a model file")
    .argument("<a>", "a point, or a model file; ./now is a file")
    .argument("<b>", "another one");
  addHistoryOptions(addParamOption(command)).action((a: string, b: string, flags: DiffFlags) =>
    runDiff(context, [a, b], flags),
  );
  addHelp(command, {
    "What it shows": [
      "  For each parameter how many elements changed, the largest and the mean change (of all",
      "  elements), both L2 norms and their ratio, and the first element that differs with both values.",
      "  Values are compared bit by bit, but for NaNs, which are equal.",
    ],
    Points: POINT_HELP,
    "Exit code": ["  0 if all parameters are equal, 1 if not; others as for every command."],
    Permissions: HISTORY_PERMISSIONS,
    "With --json": [
      '  {"a","b","equal","parameters":[{"name","kind","equal","dtype","shape","differing","elements",',
      '  "largest","mean","normA","normB","ratio","first":{"index","element","a","b"}}]}; a and b are points,',
      '  as for replay, or {"file"}; a kind is compared, only-a, only-b or other-form.',
    ],
    Examples: [
      '  pserver diff "1h ago" now',
      "  pserver diff 3:1200 3:1201 --param w   # what record 1201 of shard 3 did",
      "  pserver diff step:100 checkpoint.safetensors && echo equal",
    ],
  });
}

async function runDiff(
  context: CliContext,
  texts: readonly [string, string],
  flags: DiffFlags,
): Promise<void> {
  const output = openOutput(context, flags);
  const { param } = flags;
  const points = await Promise.all(texts.map((text) => pointOf(text)));
  const asSaved = points.includes(undefined);
  await withHistory(context, flags, (history) =>
    withReplays(context, output, history, async (replay) => {
      const sides: ComparedSide[] = [];
      try {
        for (const [i, text] of texts.entries()) {
          const point = points[i];
          if (point === undefined) {
            const model = await openModel(text, context.signal);
            sides.push({ kind: "file", path: text, model });
            tellConversions(output, model);
          } else {
            const resolved = await resolveAndShow(context, output, history.source, point);
            sides.push({ kind: "point", point: resolved, model: await replay(resolved) });
          }
        }
        const { compareSides } = await import("../../history/model-differences.ts");
        const parts = { names: param, asSaved };
        const found = await compareSides(output, sides, parts, context.signal);
        await showResult(context, output, sides, found);
      } finally {
        for (const side of sides) if (side.kind === "file") await side.model.close();
      }
    }),
  );
}

/** Parses the point that a text names; undefined if it names none, so that it is a file's name. */
async function pointOf(text: string): Promise<Point | undefined> {
  const { parsePoint } = await import("../../../history/points.ts");
  try {
    return parsePoint(text, Date.now());
  } catch (error) {
    if (ensureError(error).code !== "BAD_VALUE") throw error;
    return undefined;
  }
}

async function showResult(
  context: CliContext,
  output: Output,
  sides: readonly ComparedSide[],
  found: readonly ParameterDifference[],
): Promise<void> {
  const { isEqual } = await import("../../../history/compare-models.ts");
  const { describeDifferences, differenceEntry } = await import(
    "../../history/model-differences.ts"
  );
  const different = found.filter((each) => !isEqual(each));
  if (output.json) {
    const [a, b] = await Promise.all(
      sides.map((side) => (side.kind === "file" ? { file: side.path } : pointEntry(side.point))),
    );
    output.value({ a, b, equal: different.length === 0, parameters: found.map(differenceEntry) });
  } else {
    output.lines(describeDifferences(found, output));
    const count = formatCount(found.length, "parameter");
    output.message(
      different.length === 0 ? `${count}, all equal` : `${different.length} of ${count} differ`,
    );
  }
  if (different.length > 0) context.setExitCode(EXIT.failure);
}
