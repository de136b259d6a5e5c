import type { UpdateEvent } from "../../actors/updates/update-event.ts";
import { dateTimeText } from "./event-text.ts";

/** An update as `--json` prints it and `--csv` has it in columns: flat, without what is not known. */
export interface UpdateRecord {
  readonly [name: string]: unknown;
}

/** The columns of `--csv`, in order. */
export const CSV_COLUMNS = [
  ...[
    "time",
    "shard",
    "generation",
    "seq",
    "entry",
    "trainer",
    "session",
    "number",
    "verb",
    "step",
  ],
  ...["parameter", "block", "op", "alpha", "beta", "learningRate", "dtype", "encoding", "elements"],
  ...["rows", "inner", "bytes", "norm", "min", "max", "mean", "zeros", "nonFinite", "version"],
  ...["behind", "outcome", "code", "message", "repeats", "note", "undescribed"],
] as const;

/**
 * The entries of an update under the names of {@link CSV_COLUMNS}; undefined where something is not known. One
 * literal: object spread would take most of the time of a long listing.
 */
export function updateRecord(event: UpdateEvent): UpdateRecord {
  const { block, outcome } = event;
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
    norm: statistics?.norm === Number.POSITIVE_INFINITY ? "Infinity" : statistics?.norm,
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
    note: event.note,
    undescribed: event.undescribed,
  };
}

/** A line of CSV under {@link CSV_COLUMNS}; a note is JSON in one cell. */
export function csvLine(event: UpdateEvent): string {
  const record = updateRecord(event);
  return CSV_COLUMNS.map((name) => csvCell(record[name])).join(",");
}

function csvCell(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "number") return String(value);
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
