import type {
  ChangeTotal,
  ElementBlame,
  ElementChange,
  ElementValue,
} from "../../history/blame.ts";
import { formatTime } from "../../history/points.ts";
import { showPosition } from "../../protocol/messages/position.ts";
import { formatNumber } from "../output/amounts.ts";
import type { TextFormat } from "../output/colors.ts";
import { formatTable, type Shrink } from "../output/table.ts";
import { formatElement } from "../output/tensor-summary.ts";
import { fourDigits } from "./numbers.ts";

/** Keeps the largest changes, in their order, so that any number of them takes little memory. */
export class TopChanges {
  readonly #most: number;
  #kept: ElementChange[] = [];
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(change: ElementChange): void {
    this.#taken += 1;
    this.#kept.push(change);
    if (this.#kept.length >= 2 * this.#most) this.#cut();
  }

  /** The largest changes in the order in which they were added. */
  get changes(): readonly ElementChange[] {
    this.#cut();
    return this.#kept;
  }

  /** Number of changes that were added and are not kept. */
  get leftOut(): number {
    return this.#taken - this.changes.length;
  }

  #cut(): void {
    if (this.#kept.length <= this.#most) return;
    const largest = new Set(
      [...this.#kept].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, this.#most),
    );
    this.#kept = this.#kept.filter((change) => largest.has(change));
  }
}

/** Returns the size of a change; one that creates, removes or breaks the value is the largest. */
function sizeOf({ change }: ElementChange): number {
  const size = change === undefined ? Number.NaN : Math.abs(Number(change));
  return Number.isNaN(size) ? Number.POSITIVE_INFINITY : size;
}

/** Writes changes as a table. */
export function describeChanges(changes: readonly ElementChange[], format: TextFormat): string[] {
  const columns = [
    { title: "TIME" },
    { title: "POSITION" },
    { title: "UPDATE" },
    { title: "WHAT" },
    { title: "BEFORE", align: "right" },
    { title: "AFTER", align: "right" },
    { title: "CHANGE", align: "right" },
  ] as const;
  const rows = changes.map((change) => [
    formatTime(change.timeMs),
    showPosition(change.shard, change.position),
    senderCell(change),
    whatCell(change),
    valueText(change.before),
    valueText(change.after),
    change.change === undefined ? "" : shortValue(change.change),
  ]);
  const shrinks: Shrink[] = [
    { kind: "drop", column: "TIME" },
    { kind: "wrap", column: "WHAT", to: 24 },
    { kind: "cut", column: "UPDATE", to: 16 },
    { kind: "drop", column: "BEFORE" },
  ];
  return formatTable(columns, rows, format, shrinks);
}

/** Writes the sums of trainers, or in sync jobs of steps, as a table. */
export function describeTotals({ trainers, steps }: ElementBlame, format: TextFormat): string[] {
  const rows = [
    ...[...trainers].map(([trainer, total]) => totalRow(trainer, total)),
    ...[...steps].map(([step, total]) => totalRow(`step ${step}`, total)),
  ];
  const columns = [
    { title: "OF" },
    { title: "CHANGES", align: "right" },
    { title: "SUM", align: "right" },
  ] as const;
  return formatTable(columns, rows, format);
}

/** Writes a value for people. */
export function valueText(value: ElementValue | undefined): string {
  if (value === undefined) return "none";
  if (typeof value === "bigint") return String(value);
  // The shortest text that a float32 reads back from, where it is one.
  const isSingle = Object.is(Math.fround(value), value);
  return isSingle
    ? formatElement({ dtype: "float32", data: Float32Array.of(value) }, 0)
    : formatElement({ dtype: "float64", data: Float64Array.of(value) }, 0);
}

function shortValue(value: ElementValue): string {
  return typeof value === "bigint" ? String(value) : fourDigits(value);
}

function senderCell({ sender }: ElementChange): string {
  return sender === undefined ? "a host" : `${sender.trainer}/${sender.session}:${sender.n}`;
}

function whatCell({ kind, step }: ElementChange): string {
  if (step === undefined) return kind;
  const shares = step.shares.map(({ trainer, gradient }) => `${trainer} ${shortValue(gradient)}`);
  return `${kind} ${step.step}: ${shares.join(", ") || "no gradient"}`;
}

function totalRow(name: string, { changes, sum }: ChangeTotal): string[] {
  return [name, formatNumber(changes), shortValue(sum)];
}
