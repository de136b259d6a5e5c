import type { CliContext } from "../context.ts";
import type { HistoryFlags } from "../options/history-options.ts";
import { formatBytes, formatCount } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import { pointEntry, resolvePointText, withHistory, withReplays } from "./with-history.ts";
import { checkModelTarget, writeModel } from "./write-model.ts";

/** Flags of {@link saveAt}. */
export interface SaveAtFlags extends HistoryFlags {
  readonly at?: string;
  readonly withOptimizer?: boolean;
}

/**
 * Writes the model of one moment into a file on this machine, rebuilt from journals and snapshots: nobody waits for
 * it. It appears whole or not at all.
 * @throws BAD_VALUE for a name that goes with no format, or not with optimizer state; as `resolvePoint` and
 * `replayModel`; EMPTY if no parameter was initialized then; IO, DISK_FULL.
 */
export async function saveAt(
  context: CliContext,
  output: Output,
  path: string,
  flags: SaveAtFlags,
): Promise<void> {
  const { at = "now", withOptimizer = false } = flags;
  await checkModelTarget(path, { isOneParameter: false, withOptimizer });
  await withHistory(context, flags, async (history) => {
    const point = await resolvePointText(context, output, history.source, at);
    await withReplays(context, output, history, async (replay) => {
      const model = await replay(point);
      const parameters = model.parameters.filter(({ isComplete }) => isComplete);
      const partial = model.parameters.length - parameters.length;
      if (partial > 0) {
        const what = formatCount(partial, "parameter");
        output.warning(`${what} had not been initialized as a whole: left out`);
      }
      const { job } = history.source;
      const { formatPoint } = await import("../../history/points.ts");
      const named = { job, point: formatPoint(point.point) };
      const written = await output
        .progress("writing")
        .during(writeModel(path, { model, parameters, ...named, withOptimizer }, context.signal));
      const { file, bytes, format } = written;
      if (output.json) output.value({ point: await pointEntry(point), ...written });
      else output.message(`wrote ${formatBytes(bytes)} as ${format}: ${file}`);
    });
  });
}
