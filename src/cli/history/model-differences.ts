import {
  type ComparedTensor,
  compareModels,
  indicesOf,
  isEqual,
  joinSparse,
  type ParameterDifference,
  type TensorDifference,
} from "../../history/compare-models.ts";
import type { ResolvedPoint } from "../../history/points.ts";
import type { ReplayedModel } from "../../history/replay/replayed-model.ts";
import { jsonNumber } from "../../history/reports/json-entries.ts";
import { tensorsOf } from "../../history/reports/model-summary.ts";
import {
  dataBytes,
  type OpenModel,
  type TensorHeader,
  underKnownNames,
} from "../../model-files/index.ts";
import type { Dtype, TensorData } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { formatBytes, formatNumber } from "../output/amounts.ts";
import type { TextFormat } from "../output/colors.ts";
import type { Output } from "../output/output.ts";
import { formatTable, type Shrink } from "../output/table.ts";
import { formatElement, formatShape } from "../output/tensor-summary.ts";
import { fourDigits } from "./numbers.ts";

/** One of two models that are compared: at a point of the history, or in a file. */
export type ComparedSide =
  | { readonly kind: "point"; readonly point: ResolvedPoint; readonly model: ReplayedModel }
  | { readonly kind: "file"; readonly path: string; readonly model: OpenModel };

/** The selection of what is compared. */
export interface ComparedParts {
  /** The parameters that were asked for; undefined for all. Those that were being initialized are left out. */
  readonly names: readonly string[] | undefined;
  /** Whether sparse shards are joined, as a save joins them. */
  readonly asSaved: boolean;
}

/**
 * Compares two models and shows the progress.
 * @throws UNKNOWN_PARAMETER for a name that neither model has; as `compareModels`.
 */
export async function compareSides(
  output: Output,
  sides: readonly ComparedSide[],
  { names, asSaved }: ComparedParts,
  signal: AbortSignal,
): Promise<ParameterDifference[]> {
  const whole = sides.map((side) => tensorsOfSide(side, asSaved));
  const [a = [], b = []] = sides
    .map((side, i) => withOtherNames(side, whole[i] ?? [], whole[1 - i] ?? []))
    .map((all) => all.filter(({ header }) => names?.includes(header.name) ?? true));
  checkKnown(names, [...a, ...b]);
  const totalBytes = a.reduce((sum, { header }) => sum + dataBytes(header), 0);
  const progress = output.progress("comparing", formatBytes);
  const onProgress = (doneBytes: number): void => progress.update(doneBytes, totalBytes);
  const differences: ParameterDifference[] = [];
  const show = (dtype: Dtype, data: TensorData, index: number): string =>
    formatElement({ dtype, data }, index);
  try {
    for await (const each of compareModels(a, b, { show, signal, onProgress })) {
      differences.push(each);
    }
  } finally {
    progress.clear();
  }
  return differences;
}

function tensorsOfSide(side: ComparedSide, asSaved: boolean): readonly ComparedTensor[] {
  return side.kind === "file" ? side.model.tensors : ofModel(side.model, asSaved);
}

/** Gives tied weights of a file, which have one of their names in it, the name that they have on the other side. */
function withOtherNames(
  side: ComparedSide,
  own: readonly ComparedTensor[],
  other: readonly ComparedTensor[],
): readonly ComparedTensor[] {
  if (side.kind !== "file") return own;
  const known = new Set(other.map(({ header }) => header.name));
  return underKnownNames(own, side.model.metadata, known);
}

function ofModel(model: ReplayedModel, asSaved: boolean): ComparedTensor[] {
  const tensors = tensorsOf(model);
  return asSaved && tensors.length > 0 ? joinSparse(tensors) : tensors;
}

function checkKnown(
  names: readonly string[] | undefined,
  tensors: readonly ComparedTensor[],
): void {
  const known = new Set(tensors.map(({ header }) => header.name));
  const unknown = names?.find((name) => !known.has(name));
  if (unknown === undefined) return;
  const message = `neither model has a parameter ${quoteName(unknown)}`;
  throw new PserverError("UNKNOWN_PARAMETER", message, { parameter: unknown });
}

/** Returns a comparison of one parameter as `--json` prints it. */
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

/** Writes comparisons as a table. */
export function describeDifferences(
  differences: readonly ParameterDifference[],
  format: TextFormat,
): string[] {
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
  const rows = differences.map((each) => [each.name, ...cellsOf(each)]);
  const shrinks: Shrink[] = [
    { kind: "cut", column: "PARAMETER", to: 20 },
    { kind: "drop", column: "NORM A" },
    { kind: "cut", column: "FIRST", to: 24 },
    { kind: "drop", column: "NORM B" },
    { kind: "cut", column: "PARAMETER", to: 12 },
    { kind: "drop", column: "FIRST" },
  ];
  return formatTable(columns, rows, format, shrinks);
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
    ...[largest, mean, normA, normB, normB / normA].map(fourDigits),
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

function formOf({ dtype, shape }: TensorHeader) {
  return { dtype, shape };
}

function showForm({ dtype, shape }: TensorHeader): string {
  return `${dtype} ${formatShape(shape)}`;
}
