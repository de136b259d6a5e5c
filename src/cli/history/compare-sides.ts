import {
  type ComparedTensor,
  compareModels,
  joinSparse,
  type ParameterDifference,
} from "../../history/compare-models.ts";
import type { ResolvedPoint } from "../../history/points.ts";
import type { ReplayedModel } from "../../history/replay/replayed-model.ts";
import { dataBytes, type OpenModel } from "../../model-files/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { formatBytes } from "../output/amounts.ts";
import type { Output } from "../output/output.ts";
import { formatElement } from "../output/tensor-summary.ts";

/** One of two models that are compared: at a point of the history, or in a file. */
export type ComparedSide =
  | { readonly kind: "point"; readonly point: ResolvedPoint; readonly model: ReplayedModel }
  | { readonly kind: "file"; readonly path: string; readonly model: OpenModel };

/** What of two models is compared. */
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
  const [a = [], b = []] = sides.map((side) => tensorsOf(side, asSaved, names));
  checkKnown(names, [...a, ...b]);
  const totalBytes = a.reduce((sum, { header }) => sum + dataBytes(header), 0);
  const progress = output.progress("comparing", formatBytes);
  const onProgress = (doneBytes: number): void => progress.update(doneBytes, totalBytes);
  const found: ParameterDifference[] = [];
  try {
    for await (const each of compareModels(a, b, { show: formatElement, signal, onProgress })) {
      found.push(each);
    }
  } finally {
    progress.clear();
  }
  return found;
}

function tensorsOf(
  side: ComparedSide,
  asSaved: boolean,
  names: readonly string[] | undefined,
): ComparedTensor[] {
  const all = side.kind === "file" ? [...side.model.tensors] : ofModel(side.model, asSaved);
  return names === undefined ? all : all.filter(({ header }) => names.includes(header.name));
}

function ofModel(model: ReplayedModel, asSaved: boolean): ComparedTensor[] {
  const complete = model.parameters.filter(({ isComplete }) => isComplete);
  const tensors = complete.map((parameter) => {
    const { name, dtype, shape } = parameter;
    return { header: { name, dtype, shape }, chunks: () => model.chunks(parameter) };
  });
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
