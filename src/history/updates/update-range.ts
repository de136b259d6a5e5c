import { ensureError } from "../../protocol/index.ts";
import type { Cut, Point, ResolvedPoint } from "../points/point.ts";
import { findPointed, resolveFound, resolvePoint } from "../points/resolve-point.ts";
import type { HistorySource } from "../source.ts";

/** Between which points of a history something is looked at. */
export interface UpdateRange {
  /** After this cut; undefined for all that is known. */
  readonly since: Cut | undefined;
  /** After this time, in milliseconds since 1970. */
  readonly sinceMs: number;
  /** Up to this cut. */
  readonly until: Cut;
  /** Up to this time. */
  readonly untilMs: number;
}

/**
 * The range between two points. A time, an update and a named note may lie before
 * what the journals keep: tapes reach back further.
 * @throws as `resolvePoint`.
 */
export async function resolveRange(
  source: HistorySource,
  since: Point,
  until: Point,
  signal: AbortSignal,
): Promise<UpdateRange> {
  const end = await resolveOrTime(source, until, signal);
  const { cut: newest } = await resolvePoint(source, { kind: "now" }, signal);
  const begin = since.kind === "start" ? undefined : await resolveOrTime(source, since, signal);
  return {
    since: begin?.cut,
    sinceMs: begin?.timeMs ?? 0,
    until: end.cut ?? newest,
    // A cut says it exactly.
    untilMs:
      end.cut === undefined ? (end.timeMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY,
  };
}

/** The cut of a point; of a time or a record before what the journals keep, only the time. */
async function resolveOrTime(
  source: HistorySource,
  point: Point,
  signal: AbortSignal,
): Promise<{ cut: Cut | undefined; timeMs: number | undefined }> {
  switch (point.kind) {
    case "time":
      return await cutOrTime(resolvePoint(source, point, signal), point.timeMs);
    case "update":
    case "mark": {
      const found = await findPointed(source, point, signal);
      return await cutOrTime(resolveFound(source, point, found, signal), found.timeMs);
    }
    default:
      return await resolvePoint(source, point, signal);
  }
}

async function cutOrTime(
  resolving: Promise<ResolvedPoint>,
  timeMs: number,
): Promise<{ cut: Cut | undefined; timeMs: number | undefined }> {
  try {
    return await resolving;
  } catch (error) {
    if (ensureError(error).code !== "HISTORY_LOST") throw error;
    return { cut: undefined, timeMs };
  }
}
