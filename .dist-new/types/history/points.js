import { PserverError } from "../protocol/index.js";
const DATE_AND_TIME = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|z|[+-]\d\d:?\d\d)?)?$/;
const AGO = /^((?:\d+(?:\.\d+)?(?:ms|[smhdw]))+)\s+ago$/;
const UNITS_MS = {
    ms: 1,
    s: 1_000,
    m: 60_000,
    h: 3_600_000,
    d: 86_400_000,
    w: 604_800_000,
};
/**
 * Parses a time, in milliseconds since 1970: ISO 8601, of this machine's zone where none is given, or `10m ago`;
 * undefined for a text that names none, such as a 30th of February.
 */
function parseTime(text, nowMs) {
    const ago = AGO.exec(text)?.[1];
    if (ago !== undefined)
        return nowMs - durationMs(ago);
    const match = DATE_AND_TIME.exec(text);
    if (match === null)
        return undefined;
    const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", zone] = match;
    const parts = [year, month, day, hour, minute, second].map(Number);
    if (!isOfCalendar(parts))
        return undefined;
    const fractionMs = Number(`0.${fraction || "0"}`) * 1_000;
    const offsetMs = zone === undefined ? undefined : zoneMs(zone);
    if (offsetMs === undefined)
        return new Date(...monthFromZero(parts)).getTime() + fractionMs;
    return Date.UTC(...monthFromZero(parts)) - offsetMs + fractionMs;
}
function durationMs(text) {
    let totalMs = 0;
    for (const [, count = "", unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g)) {
        totalMs += Number(count) * (UNITS_MS[unit] ?? 0);
    }
    return totalMs;
}
/** Returns the parts of a date as `Date` takes them. */
function monthFromZero(parts) {
    const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = parts;
    return [year, month - 1, day, hour, minute, second];
}
/** Whether a calendar has this date and a clock this time. */
function isOfCalendar(parts) {
    const date = new Date(Date.UTC(...monthFromZero(parts)));
    const found = [
        date.getUTCFullYear(),
        date.getUTCMonth() + 1,
        date.getUTCDate(),
        date.getUTCHours(),
        date.getUTCMinutes(),
        date.getUTCSeconds(),
    ];
    return found.every((part, i) => part === parts[i]);
}
function zoneMs(zone) {
    const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [];
    if (sign === undefined)
        return 0;
    const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
    return sign === "-" ? -offsetMs : offsetMs;
}
const POSITION = /^(\d{1,9}):(\d{1,15})(?:@(\d{1,9}))?$/;
const STEP = /^step:(\d{1,15})$/;
const UPDATE = /^(.+)\/(\d{1,15}):(\d{1,15})(?:@(\d{1,9}))?$/s;
const MARK = /^mark:(.+)$/s;
/** The forms of a point, for messages and help. */
const POINT_FORMS = "now, start, a time (2026-11-23T04:12:07Z, 10m ago), a position (SHARD:SEQ or SHARD:SEQ@GENERATION), " +
    "step:N, an update (TRAINER/SESSION:NUMBER, @SHARD behind it if several shards have it) or mark:NAME";
/** Parses a point. @throws BAD_VALUE if the text names none, or one before the year 1970. */
export function parsePoint(text, nowMs) {
    const point = wordPoint(text) ?? timePoint(text, nowMs);
    if (point !== undefined)
        return point;
    throw new PserverError("BAD_VALUE", `point: expected ${POINT_FORMS}; received ${JSON.stringify(text)}`, { received: text });
}
/** Formats a point so that it can be parsed again. */
export function formatPoint(point) {
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
/** Formats a time in ISO form, with milliseconds. */
export function formatTime(timeMs) {
    return new Date(timeMs).toISOString();
}
function wordPoint(text) {
    if (text === "now" || text === "start")
        return { kind: text };
    const mark = MARK.exec(text)?.[1];
    if (mark !== undefined)
        return { kind: "mark", name: mark };
    const step = STEP.exec(text)?.[1];
    if (step !== undefined)
        return { kind: "step", step: Number(step) };
    return positionPoint(text) ?? updatePoint(text);
}
function positionPoint(text) {
    const match = POSITION.exec(text);
    if (match === null)
        return undefined;
    const [, shard, seq, generation] = match;
    return {
        kind: "position",
        shard: Number(shard),
        seq: Number(seq),
        generation: generation === undefined ? undefined : Number(generation),
    };
}
function updatePoint(text) {
    const match = UPDATE.exec(text);
    if (match === null)
        return undefined;
    const [, trainer = "", session, n, shard] = match;
    return {
        kind: "update",
        trainer,
        session: Number(session),
        n: Number(n),
        shard: shard === undefined ? undefined : Number(shard),
    };
}
function timePoint(text, nowMs) {
    const timeMs = parseTime(text, nowMs);
    return timeMs === undefined || timeMs < 0 ? undefined : { kind: "time", timeMs };
}
//# sourceMappingURL=points.js.map