import {
  indicesOf,
  isEqual,
  type ParameterDifference,
  type TensorDifference,
} from "../../history/compare-models.ts";
import type { TensorHeader } from "../../model-files/index.ts";
import { formatNumber } from "../output/amounts.ts";
import type { Look } from "../output/colors.ts";
import { type Concession, formatTable } from "../output/table.ts";
import { formatShape } from "../output/tensor-summary.ts";

/** A comparison of one parameter as `--json` prints it. */
export function differenceEntry(found: ParameterDifference): Readonly<Record<string, unknown>> {
  const { name, kind } = found;
  if (found.kind === "other-form") return { name, kind, a: formOf(found.a), b: formOf(found.b) };
  if (found.kind !== "compared") return { name, kind, ...formOf(found.header) };
  const { first, largest, mean, normA, normB, ...counts } = found.difference;
  return {
    ...{ name, kind, equal: isEqual(found), ...formOf(found.header), ...counts },
    largest: jsonNumber(largest),
    mean: jsonNumber(mean),
    normA: jsonNumber(normA),
    normB: jsonNumber(normB),
    ratio: jsonNumber(normB / normA),
    first:
      first === undefined
        ? null
        : { index: indicesOf(first.element, found.header.shape), ...first },
  };
}

/** Comparisons as a table. */
export function describeDifferences(found: readonly ParameterDifference[], look: Look): string[] {
  const columns = [
    { title: "PARAMETER" },
    { title: "CHANGED", align: "right" },
    { title: "LARGEST", align: "right" },
    { title: "MEAN", align: "right" },
    { title: "NORM A", align: "right" },
    { title: "NORM B", align: "right" },
    { title: "B/A", align: "right" },
    { title: "FIRST" },
  ] as const;
  const rows = found.map((each) => [each.name, ...cellsOf(each)]);
  const concessions: Concession[] = [
    { kind: "cut", column: "PARAMETER", to: 20 },
    { kind: "drop", column: "NORM A" },
    { kind: "cut", column: "FIRST", to: 24 },
    { kind: "drop", column: "NORM B" },
    { kind: "cut", column: "PARAMETER", to: 12 },
    { kind: "drop", column: "FIRST" },
  ];
  return formatTable(columns, rows, look, concessions);
}

function cellsOf(found: ParameterDifference): string[] {
  if (found.kind === "other-form") {
    return ["other form", "", "", "", "", "", `${showForm(found.a)} and ${showForm(found.b)}`];
  }
  if (found.kind !== "compared") return [found.kind === "only-a" ? "only in A" : "only in B"];
  const { difference, header } = found;
  const { largest, mean, normA, normB } = difference;
  return [
    changedCell(difference),
    ...[largest, mean, normA, normB, normB / normA].map(shortNumber),
    firstCell(difference, header),
  ];
}

function changedCell({ differing, elements }: TensorDifference): string {
  if (differing === 0) return "equal";
  return differing === elements ? "all" : formatNumber(differing);
}

function firstCell({ first }: TensorDifference, { shape }: TensorHeader): string {
  if (first === undefined) return "";
  return `[${indicesOf(first.element, shape).join(",")}] ${first.a} → ${first.b}`;
}

/** A number with four significant digits. */
export function shortNumber(value: number): string {
  return String(Number(value.toPrecision(4)));
}

/** A number for JSON, which has no NaN and no infinities: those as text. */
export function jsonNumber(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}

function formOf({ dtype, shape }: TensorHeader) {
  return { dtype, shape };
}

function showForm({ dtype, shape }: TensorHeader): string {
  return `${dtype} ${formatShape(shape)}`;
}
