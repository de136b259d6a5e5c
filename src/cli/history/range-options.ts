import type { Command } from "commander";
import { formatPoint, formatTime, parsePoint } from "../../history/points/parse-point.ts";
import type { Cut, Point } from "../../history/points/point.ts";
import type { HistorySource } from "../../history/source.ts";
import { resolveRange, type UpdateRange } from "../../history/updates/update-range.ts";

/** Most shards whose positions are named. */
const SHARDS_MAX = 4;

/** Flags that choose updates. */
export interface RangeFlags {
  readonly param?: string;
  readonly trainer?: string;
  readonly since: string;
  readonly until: string;
}

/** A range of updates, with the points as they were understood. */
export interface NamedRange extends UpdateRange {
  readonly sincePoint: Point;
  readonly untilPoint: Point;
}

/** Adds the flags that choose updates. */
export function addRangeOptions(command: Command): Command {
  return command
    .option("-p, --param <name>", "updates of this parameter only")
    .option("-t, --trainer <id>", "updates and notes of this trainer only")
    .option("--since <point>", "what came after this point", "start")
    .option("--until <point>", "what came up to this point", "now");
}

/** The range that the flags name. @throws as `parsePoint` and `resolveRange`. */
export async function rangeOf(
  source: HistorySource,
  flags: RangeFlags,
  signal: AbortSignal,
): Promise<NamedRange> {
  const nowMs = Date.now();
  const sincePoint = parsePoint(flags.since, nowMs);
  const untilPoint = parsePoint(flags.until, nowMs);
  return {
    ...(await resolveRange(source, sincePoint, untilPoint, signal)),
    sincePoint,
    untilPoint,
  };
}

/** How the points were understood, for people; nothing about the defaults. */
export function describeRange(range: NamedRange): string[] {
  const { sincePoint, untilPoint, since, sinceMs, until } = range;
  const lines: string[] = [];
  if (sincePoint.kind !== "start") {
    lines.push(`since ${describePoint(sincePoint, since, sinceMs)}`);
  }
  if (untilPoint.kind !== "now") lines.push(`until ${describePoint(untilPoint, until, undefined)}`);
  return lines;
}

function describePoint(point: Point, cut: Cut | undefined, timeMs: number | undefined): string {
  const shown = cut?.slice(0, SHARDS_MAX).map(({ generation, seq }, shard) => {
    return `${shard}:${seq}${generation === 1 ? "" : `@${generation}`}`;
  });
  const isLong = cut !== undefined && cut.length > SHARDS_MAX;
  const more = isLong ? ` and ${cut.length - SHARDS_MAX} more` : "";
  const time = timeMs && point.kind !== "time" ? `, stored at ${formatTime(timeMs)}` : "";
  const where =
    shown === undefined
      ? "before what the journals keep: from the tape"
      : `the cut ${shown.join(", ")}${more}`;
  return `${formatPoint(point)}${time}: ${where}`;
}
