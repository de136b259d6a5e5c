import { showPosition } from "../../history/history-lost.ts";
import type { Cut, Point, ResolvedPoint } from "../../history/points/point.ts";
import type { HistorySource } from "../../history/source.ts";
import type { CliContext } from "../context.ts";
import { unlessAborted } from "../interrupts.ts";
import type { Output } from "../output/output.ts";

/** Positions of a cut that a message names; a job can have many shards. */
const POSITIONS_SHOWN = 16;

/**
 * The point that a text names, with its cut, after telling what was understood.
 * @throws BAD_VALUE, HISTORY_LOST as `parsePoint` and `resolvePoint` do.
 */
export async function understandPoint(
  context: CliContext,
  output: Output,
  source: HistorySource,
  text: string,
): Promise<ResolvedPoint> {
  // Loaded here, so that other commands start faster.
  const { parsePoint } = await import("../../history/points/parse-point.ts");
  return await understand(context, output, source, parsePoint(text, Date.now()));
}

/** The cut of a point, after telling what was understood. @throws as `resolvePoint` does. */
export async function understand(
  { signal }: CliContext,
  output: Output,
  source: HistorySource,
  point: Point,
): Promise<ResolvedPoint> {
  const { resolvePoint } = await import("../../history/points/resolve-point.ts");
  const resolved = await unlessAborted(signal, resolvePoint(source, point, signal));
  output.message(await describePoint(resolved));
  return resolved;
}

/** Such as `point: 2026-11-23T04:12:07.000Z, the cut 0:1200 1:1188 2:1201`. */
export async function describePoint({ point, cut, timeMs }: ResolvedPoint): Promise<string> {
  const { formatPoint, formatTime } = await import("../../history/points/parse-point.ts");
  const name = formatPoint(point);
  const time = timeMs === undefined || point.kind === "time" ? "" : `, at ${formatTime(timeMs)}`;
  return `point: ${name}${time}, the cut ${showCut(cut)}`;
}

/** The positions of a cut, such as `0:1200 1:1188 2:1201`. */
export function showCut(cut: Cut): string {
  const shown = cut
    .slice(0, POSITIONS_SHOWN)
    .map((position, shard) => showPosition(shard, position));
  const more = cut.length > shown.length ? ` and ${cut.length - shown.length} more` : "";
  return `${shown.join(" ")}${more}`;
}

/** A point as `--json` prints it. */
export async function pointEntry({ point, cut, timeMs }: ResolvedPoint): Promise<unknown> {
  const { formatPoint, formatTime } = await import("../../history/points/parse-point.ts");
  return {
    point: formatPoint(point),
    kind: point.kind,
    time: timeMs === undefined ? null : formatTime(timeMs),
    cut: cut.map((position, shard) => ({ shard, ...position })),
  };
}
