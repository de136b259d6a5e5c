import type { Command } from "commander";
import type { UpdateEvent } from "../../actors/updates/update-event.ts";
import { formatPoint, formatTime, parsePoint } from "../../history/points/parse-point.ts";
import type { Cut, Point } from "../../history/points/point.ts";
import type { HistorySource } from "../../history/source.ts";
import type { UpdateQuery } from "../../history/updates/read-updates.ts";
import type { UpdateRange } from "../../history/updates/update-range.ts";
import type { Output } from "../output/output.ts";
import { showCut } from "./understood-point.ts";

/** Flags that choose updates. */
export interface RangeFlags {
  readonly param?: string;
  readonly trainer?: string;
  readonly since: string;
  readonly until: string;
}

/** A range of updates, with the points as they were understood. */
interface NamedRange extends UpdateRange {
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

/**
 * The updates that the flags choose, some at a time, after telling how their points were understood.
 * @throws as `parsePoint`, `resolveRange` and `readUpdates`.
 */
export async function chosenUpdates(
  output: Output,
  source: HistorySource,
  flags: RangeFlags,
  how: Pick<UpdateQuery, "signal" | "follow" | "last">,
): Promise<AsyncGenerator<readonly UpdateEvent[]>> {
  const range = await rangeOf(source, flags, how.signal);
  for (const line of describeRange(range)) output.message(line);
  // Loaded here, so that other commands start faster.
  const { readUpdates } = await import("../../history/updates/read-updates.ts");
  const filter = { parameter: flags.param, trainer: flags.trainer };
  return readUpdates(source, { ...filter, ...range, ...how });
}

/** The range that the flags name. @throws as `parsePoint` and `resolveRange`. */
async function rangeOf(
  source: HistorySource,
  flags: RangeFlags,
  signal: AbortSignal,
): Promise<NamedRange> {
  const { resolveRange } = await import("../../history/updates/update-range.ts");
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
function describeRange(range: NamedRange): string[] {
  const { sincePoint, untilPoint, since, sinceMs, until } = range;
  const lines: string[] = [];
  if (sincePoint.kind !== "start") {
    lines.push(`since ${describePoint(sincePoint, since, sinceMs)}`);
  }
  if (untilPoint.kind !== "now") lines.push(`until ${describePoint(untilPoint, until, undefined)}`);
  return lines;
}

function describePoint(point: Point, cut: Cut | undefined, timeMs: number | undefined): string {
  const time = timeMs && point.kind !== "time" ? `, at ${formatTime(timeMs)}` : "";
  const where =
    cut === undefined ? "before what the journals keep: from the tape" : `the cut ${showCut(cut)}`;
  return `${formatPoint(point)}${time}, ${where}`;
}
