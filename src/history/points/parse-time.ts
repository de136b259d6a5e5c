const DATE_AND_TIME =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?\s?(Z|z|[+-]\d\d:?\d\d)?)?$/;

const AGO = /^((?:\d+(?:\.\d+)?(?:ms|[smhdw]))+)\s+ago$/;

const UNITS_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/**
 * The time that a text names, in milliseconds since 1970: ISO 8601, of this machine's zone where none is
 * given, or `10m ago`; undefined if it names none, such as a 30th of February.
 */
export function parseTime(text: string, nowMs: number): number | undefined {
  const ago = AGO.exec(text)?.[1];
  if (ago !== undefined) return nowMs - durationMs(ago);
  const match = DATE_AND_TIME.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour = "0", minute = "0", second = "0", fraction = "", zone] = match;
  const parts = [year, month, day, hour, minute, second].map(Number);
  if (!isOfCalendar(parts)) return undefined;
  const fractionMs = Number(`0.${fraction || "0"}`) * 1_000;
  const offsetMs = zone === undefined ? undefined : zoneMs(zone);
  if (offsetMs === undefined) return new Date(...monthFromZero(parts)).getTime() + fractionMs;
  return Date.UTC(...monthFromZero(parts)) - offsetMs + fractionMs;
}

function durationMs(text: string): number {
  let totalMs = 0;
  for (const [, count = "", unit = ""] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[smhdw])/g)) {
    totalMs += Number(count) * (UNITS_MS[unit] ?? 0);
  }
  return totalMs;
}

/** The parts as `Date` takes them. */
function monthFromZero(
  parts: readonly number[],
): [year: number, month: number, day: number, hour: number, minute: number, second: number] {
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = parts;
  return [year, month - 1, day, hour, minute, second];
}

/** Whether a calendar has this date and a clock this time. */
function isOfCalendar(parts: readonly number[]): boolean {
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

function zoneMs(zone: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [];
  if (sign === undefined) return 0;
  const offsetMs = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return sign === "-" ? -offsetMs : offsetMs;
}
