import { PserverError } from "../../protocol/index.ts";
import { parseTime } from "./parse-time.ts";
import type { Point } from "./point.ts";

const POSITION = /^(\d{1,9}):(\d{1,15})(?:@(\d{1,9}))?$/;
const STEP = /^step:(\d{1,15})$/;
const UPDATE = /^(.+)\/(\d{1,15}):(\d{1,15})(?:@(\d{1,9}))?$/s;
const MARK = /^mark:(.+)$/s;

/** What a point may be, for messages and help. */
const POINT_FORMS =
  "now, start, a time (2026-11-23T04:12:07Z, 10m ago), a position (SHARD:SEQ or SHARD:SEQ@GENERATION), " +
  "step:N, an update (TRAINER/SESSION:NUMBER, @SHARD behind it if several shards have it) or mark:NAME";

/**
 * The point that a text names.
 * @throws BAD_VALUE if it names none, or one of the year before 1970.
 */
export function parsePoint(text: string, nowMs: number): Point {
  const point = wordPoint(text) ?? timePoint(text, nowMs);
  if (point !== undefined) return point;
  throw new PserverError(
    "BAD_VALUE",
    `point: expected ${POINT_FORMS}; received ${JSON.stringify(text)}`,
    { received: text },
  );
}

/** A point as it can be given again. */
export function formatPoint(point: Point): string {
  switch (point.kind) {
    case "now":
    case "start":
      return point.kind;
    case "time":
      return formatTime(point.timeMs);
    case "position": {
      const { shard, seq, generation } = point;
      return `${shard}:${seq}${generation === undefined ? "" : `@${generation}`}`;
    }
    case "step":
      return `step:${point.step}`;
    case "update": {
      const { trainer, session, n, shard } = point;
      return `${trainer}/${session}:${n}${shard === undefined ? "" : `@${shard}`}`;
    }
    case "mark":
      return `mark:${point.name}`;
  }
}

/** A time in ISO form, with milliseconds. */
export function formatTime(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

function wordPoint(text: string): Point | undefined {
  if (text === "now" || text === "start") return { kind: text };
  const mark = MARK.exec(text)?.[1];
  if (mark !== undefined) return { kind: "mark", name: mark };
  const step = STEP.exec(text)?.[1];
  if (step !== undefined) return { kind: "step", step: Number(step) };
  return positionPoint(text) ?? updatePoint(text);
}

function positionPoint(text: string): Point | undefined {
  const match = POSITION.exec(text);
  if (match === null) return undefined;
  const [, shard, seq, generation] = match;
  return {
    kind: "position",
    shard: Number(shard),
    seq: Number(seq),
    generation: generation === undefined ? undefined : Number(generation),
  };
}

function updatePoint(text: string): Point | undefined {
  const match = UPDATE.exec(text);
  if (match === null) return undefined;
  const [, trainer = "", session, n, shard] = match;
  return {
    kind: "update",
    trainer,
    session: Number(session),
    n: Number(n),
    shard: shard === undefined ? undefined : Number(shard),
  };
}

function timePoint(text: string, nowMs: number): Point | undefined {
  const timeMs = parseTime(text, nowMs);
  return timeMs === undefined || timeMs < 0 ? undefined : { kind: "time", timeMs };
}
