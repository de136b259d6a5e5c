import type { UpdateEvent } from "../../actors/journal/describe-record.ts";

/** An update as `--json` prints it and `--csv` has it in columns: flat, without what is not known. */
export interface UpdateEntry {
  readonly [name: string]: unknown;
}

/**
 * Returns the entries of an update under the names that `--json` and `--csv` give them; undefined where something is
 * not known. One literal: object spread would take most of the time of a long listing.
 */
export function updateEntry(event: UpdateEvent): UpdateEntry {
  const { block, outcome, guard } = event;
  const norm = block?.statistics?.norm ?? guard?.norm;
  const operation = block?.operation;
  const statistics = block?.statistics;
  return {
    time: dateTimeText(event.timeMs),
    shard: event.shard,
    generation: event.generation,
    seq: event.seq,
    entry: event.entry,
    trainer: event.trainer,
    session: event.session,
    number: event.n,
    verb: event.verb,
    step: event.step,
    parameter: block?.parameter,
    block: block?.index,
    op: operation?.op,
    alpha: operation?.op === "mix" ? operation.alpha : undefined,
    beta: operation?.op === "mix" ? operation.beta : undefined,
    learningRate: operation?.op === "grad" ? operation.lr : undefined,
    dtype: block?.dtype,
    encoding: block?.encoding,
    elements: block?.elements,
    rows: block?.part?.rows,
    inner: block?.part?.inner,
    bytes: block?.bytes ?? event.bytes,
    // JSON has no infinity: a norm beyond float64 is a text.
    norm: norm === Number.POSITIVE_INFINITY ? "Infinity" : norm,
    min: statistics?.min,
    max: statistics?.max,
    mean: statistics?.mean,
    zeros: statistics?.zeros,
    nonFinite: statistics?.nonFinite,
    version: block?.version,
    behind: block?.behind,
    outcome: outcome.kind,
    code: outcome.kind === "rejected" ? outcome.code : undefined,
    message: outcome.kind === "rejected" ? outcome.message : undefined,
    repeats: outcome.kind === "repeated" ? outcome.seq : undefined,
    guard: guard?.action,
    limit: guard?.limit,
    median: guard?.median,
    norms: guard?.norms,
    note: event.note,
    undescribed: event.undescribed,
  };
}

/**
 * Writes hours to milliseconds of a time, in UTC, as `Date.toISOString` does, which takes several times as
 * long.
 */
export function clockText(timeMs: number): string {
  const ms = Math.trunc(timeMs) - dayOf(timeMs) * DAY_MS;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.floor(ms / 1000) - 60 * minutes;
  const hour = digits(Math.floor(minutes / 60), 100);
  return `${hour}:${digits(minutes % 60, 100)}:${digits(seconds, 100)}.${digits(ms % 1000, 1000)}`;
}

/** Writes the date of a time, in UTC. */
export function dateText(timeMs: number): string {
  const day = dayOf(timeMs);
  if (day !== lastDay) {
    lastDateText = new Date(day * DAY_MS).toISOString().slice(0, -"T00:00:00.000Z".length);
    lastDay = day;
  }
  return lastDateText;
}

/** Writes a time in ISO form, with milliseconds, in UTC. */
export function dateTimeText(timeMs: number): string {
  return `${dateText(timeMs)}T${clockText(timeMs)}Z`;
}

const DAY_MS = 86_400_000;

let lastDay = 0;
let lastDateText = "1970-01-01";

/** Returns the days since 1970. A time has whole milliseconds, as a `Date` does. */
function dayOf(timeMs: number): number {
  return Math.floor(Math.trunc(timeMs) / DAY_MS);
}

/** Writes a number below a power of ten, with leading zeros. */
function digits(number: number, above: 100 | 1000): string {
  return String(above + number).slice(1);
}
