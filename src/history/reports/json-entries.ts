import type { ChangeTotal, ElementBlame, ElementChange, ElementValue } from "../blame.ts";
import type { ExaminedRecord } from "../examine-record.ts";
import { formatPoint, formatTime, type ResolvedPoint } from "../points.ts";
import { updateEntry } from "./update-entry.ts";

// What commands print with `--json` of a history, and what is answered over HTTP.

/** Returns a point as `--json` prints it. */
export function pointEntry({ point, cut, timeMs }: ResolvedPoint): unknown {
  return {
    point: formatPoint(point),
    kind: point.kind,
    time: timeMs === undefined ? null : formatTime(timeMs),
    cut: cut.map((position, shard) => ({ shard, ...position })),
  };
}

/** Returns everything about one record as `--json` prints it. */
export function examinedRecord({ record, events, blocks }: ExaminedRecord): object {
  return {
    updates: events.map(updateEntry),
    blocks: blocks.map(({ index, ...block }) => ({ ...block, block: index })),
    subject: record.subject,
    payloadBytes: record.payload.length,
  };
}

/** Returns a change as `--json` prints it. */
export function changeEntry(change: ElementChange): Readonly<Record<string, unknown>> {
  const { shard, position, timeMs, kind, sender, step, before, after } = change;
  return {
    ...{ time: formatTime(timeMs), shard, ...position, kind },
    ...sender,
    ...(step && {
      step: step.step,
      shares: step.shares.map(({ trainer, gradient }) => ({
        trainer,
        gradient: jsonValue(gradient),
      })),
    }),
    ...{ before: jsonValue(before), after: jsonValue(after), change: jsonValue(change.change) },
  };
}

/** Returns the sums as `--json` prints them. */
export function blameEntry(blame: ElementBlame): Readonly<Record<string, unknown>> {
  const { from, to, first, last, changes, nonFinite, trainers, steps, sum } = blame;
  const totals = <Key>(of: ReadonlyMap<Key, ChangeTotal>, name: string) =>
    [...of].map(([key, total]) => ({
      [name]: key,
      changes: total.changes,
      sum: jsonValue(total.sum),
    }));
  return {
    ...{ from, to, first: jsonValue(first), last: jsonValue(last), changes, nonFinite },
    ...{ trainers: totals(trainers, "trainer"), steps: totals(steps, "step"), sum: jsonValue(sum) },
  };
}

function jsonValue(value: ElementValue | undefined): unknown {
  if (value === undefined) return null;
  return typeof value === "bigint" ? String(value) : jsonNumber(value);
}

/** Returns a number for JSON, which has no NaN and no infinities: those become text. */
export function jsonNumber(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}
