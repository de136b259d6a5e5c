import { formatPoint, formatTime, parsePoint } from "../../history/points/parse-point.ts";
import type { ResolvedPoint } from "../../history/points/point.ts";
import { resolvePoint } from "../../history/points/resolve-point.ts";
import type { HistorySource } from "../../history/source.ts";

/** Most shards whose positions are named. */
const SHARDS_MAX = 4;

/** The cut that a text names. @throws as `parsePoint` and `resolvePoint`. */
export async function pointOf(
  source: HistorySource,
  text: string,
  signal: AbortSignal,
): Promise<ResolvedPoint> {
  return await resolvePoint(source, parsePoint(text, Date.now()), signal);
}

/** How a point was understood, for people: its time and where it cuts the shards. */
export function describePoint({ point, cut, timeMs }: ResolvedPoint): string {
  const shown = cut.slice(0, SHARDS_MAX).map(({ generation, seq }, shard) => {
    return `${shard}:${seq}${generation === 1 ? "" : `@${generation}`}`;
  });
  const more = cut.length > SHARDS_MAX ? ` and ${cut.length - SHARDS_MAX} more` : "";
  const time = timeMs === undefined ? "" : ` at ${formatTime(timeMs)}`;
  const name = point.kind === "time" ? "" : ` ${formatPoint(point)}`;
  return `${`${name}${time}`.trim()}, the cut ${shown.join(", ")}${more}`;
}

/** The same for `--json`. */
export function pointRecord({ point, cut, timeMs }: ResolvedPoint): object {
  const time = timeMs === undefined ? {} : { time: formatTime(timeMs) };
  return { point: formatPoint(point), ...time, cut: cut.map((at, shard) => ({ shard, ...at })) };
}
