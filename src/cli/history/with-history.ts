import type { Command } from "commander";
import type { UpdateEvent } from "../../actors/journal/describe-record.ts";
import { resolveSettings } from "../../client/wire/broker-settings.ts";
import type { Rebuild } from "../../history/continue/fork-job.ts";
import {
  type Cut,
  formatPoint,
  formatTime,
  type Point,
  parsePoint,
  type ResolvedPoint,
} from "../../history/points.ts";
import type { UpdateQuery, UpdateRange } from "../../history/read-updates.ts";
import type { ReplayedModel } from "../../history/replay/replayed-model.ts";
import type { Replayer } from "../../history/replay/replayer.ts";
import type { HistoryPlace, HistorySource } from "../../history/source.ts";
import { PserverError } from "../../protocol/errors.ts";
import { defined } from "../../protocol/fields.ts";
import { showPosition } from "../../protocol/messages/position.ts";
import type { CliContext } from "../context.ts";
import { toOverrides } from "../options/connection-options.ts";
import type { HistoryFlags } from "../options/history-options.ts";
import { formatRecords } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import { EXIT } from "../report-error.ts";
import { unlessAborted } from "../signals.ts";

/** The history that a command reads. */
export interface OpenedHistory {
  readonly source: HistorySource;
  /** Where it is, for threads that open it again. */
  readonly place: HistoryPlace;
}

/**
 * Runs `use` with the history that the flags name.
 * @throws as `openHistory` does; what `use` throws; the reason of the context's signal.
 */
export async function withHistory<T>(
  context: CliContext,
  flags: HistoryFlags,
  use: (history: OpenedHistory) => Promise<T>,
): Promise<T> {
  // Loaded here, so that other commands start faster.
  const { openHistory } = await import("../../history/open-journal.ts");
  const place = historyPlace(context, flags);
  const source = await unlessAborted(context.signal, openHistory(place));
  try {
    return await use({ source, place });
  } finally {
    await source.close();
  }
}

/**
 * Finds where the history is that the flags name.
 * @throws BAD_VALUE for flags that do not go together.
 */
function historyPlace(context: CliContext, flags: HistoryFlags): HistoryPlace {
  const { archive, fromFile: file, broker } = flags;
  if (file !== undefined && archive !== undefined) {
    throw new PserverError("BAD_VALUE", "--from-file: expected no --archive with it");
  }
  if (!broker && archive === undefined && file === undefined) {
    throw new PserverError("BAD_VALUE", "--no-broker: expected --archive with it; received none");
  }
  if (file !== undefined) return { kind: "archive", archive: file };
  if (!broker && archive !== undefined) return { kind: "archive", archive };
  const settings = resolveSettings(toOverrides(flags), context.environment);
  const connection = { ...settings, ...defined({ timeoutMs: flags.timeout }) };
  return { kind: "broker", connection, job: flags.job, ...defined({ archive }) };
}

/** Rebuilds the model at a point, and shows the progress. */
export type Replay = (point: Pick<ResolvedPoint, "cut">) => Promise<ReplayedModel>;

/**
 * Runs `use` with threads that rebuild shards; they end with it.
 * @throws what `use` throws.
 */
export async function withPool<T>(
  { signal }: CliContext,
  { source, place }: OpenedHistory,
  use: (pool: Replayer) => Promise<T>,
): Promise<T> {
  // Loaded here, so that other commands start faster.
  const { ThreadPool } = await import("../../history/replay/thread-pool.ts");
  const pool = ThreadPool.start(place, source.shards, signal);
  try {
    return await use(pool);
  } finally {
    await pool.close();
  }
}

/**
 * Runs `use` with replays on threads; the models that it gets are freed when it ends.
 * @throws what `use` throws; a replay throws as `replayModel` does.
 */
export async function withReplays<T>(
  context: CliContext,
  output: Output,
  history: OpenedHistory,
  use: (replay: Replay) => Promise<T>,
): Promise<T> {
  const { replayModel } = await import("../../history/replay/replayer.ts");
  return await withPool(context, history, (pool) =>
    use(({ cut }) =>
      output
        .progress("replaying", formatRecords)
        .reported((onProgress) => replayModel(pool, cut, { onProgress })),
    ),
  );
}

/** Returns a function that rebuilds shards of a history, with a line of progress for each. */
export async function rebuildWithProgress(
  output: Output,
  source: HistorySource,
  signal: AbortSignal,
): Promise<Rebuild> {
  // Loaded here, so that other commands start faster.
  const { rebuildFrom } = await import("../../history/continue/fork-job.ts");
  return (shard, at) =>
    output.progress(`rebuilding shard ${shard}`, formatRecords).reported((onProgress) => {
      const rebuild = rebuildFrom(source, signal, (_, done, total) => onProgress(done, total));
      return rebuild(shard, at);
    });
}

/** Number of positions of a cut that a message names; a job can have many shards. */
const POSITIONS_SHOWN = 16;

/**
 * Resolves the point that a text names, and shows how it was understood.
 * @throws BAD_VALUE, HISTORY_LOST as `parsePoint` and `resolvePoint` do.
 */
export async function resolvePointText(
  context: CliContext,
  output: Output,
  source: HistorySource,
  text: string,
): Promise<ResolvedPoint> {
  // Loaded here, so that other commands start faster.
  const { parsePoint } = await import("../../history/points.ts");
  return await resolveAndShow(context, output, source, parsePoint(text, Date.now()));
}

/**
 * Resolves a point, and shows how it was understood.
 * @throws as `resolvePoint` does.
 */
export async function resolveAndShow(
  { signal }: CliContext,
  output: Output,
  source: HistorySource,
  point: Point,
): Promise<ResolvedPoint> {
  const { resolvePoint } = await import("../../history/resolve-point.ts");
  const resolved = await unlessAborted(signal, resolvePoint(source, point, signal));
  output.message(await describePoint(resolved));
  return resolved;
}

/** Describes a point, such as `point: 2026-11-23T04:12:07.000Z, the cut 0:1200 1:1188 2:1201`. */
async function describePoint({ point, cut, timeMs }: ResolvedPoint): Promise<string> {
  const { formatPoint, formatTime } = await import("../../history/points.ts");
  const name = formatPoint(point);
  const time = timeMs === undefined || point.kind === "time" ? "" : `, at ${formatTime(timeMs)}`;
  return `point: ${name}${time}, the cut ${showCut(cut)}`;
}

/** Writes the positions of a cut, such as `0:1200 1:1188 2:1201`. */
export function showCut(cut: Cut): string {
  const shown = cut
    .slice(0, POSITIONS_SHOWN)
    .map((position, shard) => showPosition(shard, position));
  const more = cut.length > shown.length ? ` and ${cut.length - shown.length} more` : "";
  return `${shown.join(" ")}${more}`;
}

/** Returns a point as `--json` prints it. */
export async function pointEntry(point: ResolvedPoint): Promise<unknown> {
  // Loaded here, so that other commands start faster.
  const entries = await import("../../history/reports/json-entries.ts");
  return entries.pointEntry(point);
}

/** Flags that choose updates. */
export interface RangeFlags {
  readonly param?: string;
  readonly trainer?: string;
  readonly since: string;
  readonly until: string;
}

/** A range of updates, with the points that the user named for it. */
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
 * Reads the updates that the flags choose, some at a time, after showing how their points were understood. Warns of
 * records of which nothing says what happened, and lets the command end with 1 then.
 * @throws as `parsePoint`, `resolveRange` and `readUpdates`.
 */
export async function selectUpdates(
  context: CliContext,
  output: Output,
  source: HistorySource,
  flags: RangeFlags,
  how: Pick<UpdateQuery, "signal" | "follow" | "last">,
): Promise<AsyncGenerator<readonly UpdateEvent[]>> {
  const range = await rangeOf(source, flags, how.signal);
  for (const line of describeRange(range)) output.message(line);
  // Loaded here, so that other commands start faster.
  const { readUpdates } = await import("../../history/read-updates.ts");
  const filter = { parameter: flags.param, trainer: flags.trainer };
  const onDamage = ({ code, message }: PserverError): void => {
    output.warning(`${code}: ${message}`);
    context.setExitCode(EXIT.failure);
  };
  return readUpdates(source, { ...filter, ...range, ...how, onDamage });
}

/**
 * Resolves the range that the flags name.
 * @throws as `parsePoint` and `resolveRange`.
 */
async function rangeOf(
  source: HistorySource,
  flags: RangeFlags,
  signal: AbortSignal,
): Promise<NamedRange> {
  const { resolveRange } = await import("../../history/read-updates.ts");
  const nowMs = Date.now();
  const sincePoint = parsePoint(flags.since, nowMs);
  const untilPoint = parsePoint(flags.until, nowMs);
  return {
    ...(await resolveRange(source, sincePoint, untilPoint, signal)),
    sincePoint,
    untilPoint,
  };
}

/** Describes how the points were understood; says nothing about the defaults. */
function describeRange(range: NamedRange): string[] {
  const { sincePoint, untilPoint, since, sinceMs, until } = range;
  const lines: string[] = [];
  if (sincePoint.kind !== "start") {
    lines.push(`since ${describeBound(sincePoint, since, sinceMs)}`);
  }
  if (untilPoint.kind !== "now") lines.push(`until ${describeBound(untilPoint, until, undefined)}`);
  return lines;
}

function describeBound(point: Point, cut: Cut | undefined, timeMs: number | undefined): string {
  const time = timeMs && point.kind !== "time" ? `, at ${formatTime(timeMs)}` : "";
  const where =
    cut === undefined ? "before what the journals keep: from the tape" : `the cut ${showCut(cut)}`;
  return `${formatPoint(point)}${time}, ${where}`;
}
