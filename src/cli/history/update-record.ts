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
  ...["behind", "outcome", "code", "message", "repeats", "note"],
] as const;

/** The entries of an update under the names of {@link CSV_COLUMNS}. */
export function updateRecord(event: UpdateEvent): UpdateRecord {
  const { timeMs, shard, generation, seq, entry, trainer, session, n, verb, step, note } = event;
  const { block, outcome } = event;
  const place = { time: dateTimeText(timeMs), shard, generation, seq, entry };
  return {
    ...place,
    ...{ trainer, session, number: n, verb, step },
    ...(block === undefined ? { bytes: event.bytes } : blockEntries(block)),
    outcome: outcome.kind,
    ...(outcome.kind === "rejected" ? { code: outcome.code, message: outcome.message } : {}),
    ...(outcome.kind === "repeated" ? { repeats: outcome.seq } : {}),
    note,
  };
}

/** A line of CSV under {@link CSV_COLUMNS}; a note is JSON in one cell. */
export function csvLine(event: UpdateEvent): string {
  const record = updateRecord(event);
  return CSV_COLUMNS.map((name) => csvCell(record[name])).join(",");
}

function blockEntries(block: NonNullable<UpdateEvent["block"]>): UpdateRecord {
  const { parameter, index, operation, dtype, encoding, part, elements, bytes, statistics } = block;
  const { version, behind } = block;
  return {
    ...{ parameter, block: index, op: operation.op },
    ...(operation.op === "mix" ? { alpha: operation.alpha, beta: operation.beta } : {}),
    ...(operation.op === "grad" ? { learningRate: operation.lr } : {}),
    ...{ dtype, encoding, elements, rows: part?.rows, inner: part?.inner, bytes },
    ...statistics,
    // JSON has no infinity: a norm beyond float64 is a text.
    ...(statistics?.norm === Number.POSITIVE_INFINITY ? { norm: "Infinity" } : {}),
    ...{ version, behind },
  };
}

function csvCell(value: unknown): string {
  if (value === undefined) return "";
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
