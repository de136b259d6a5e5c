import { type ComparedTensor, joinSparse } from "../../history/compare/compare-models.ts";
import type { ResolvedPoint } from "../../history/points/point.ts";
import type { ReplayedModel } from "../../history/replay/replayed-model.ts";
import type { OpenModel } from "../../model-files/index.ts";

/** One of two models that are compared: at a point of the history, or in a file. */
export type ComparedSide =
  | { readonly kind: "point"; readonly point: ResolvedPoint; readonly model: ReplayedModel }
  | { readonly kind: "file"; readonly path: string; readonly model: OpenModel };

/**
 * The tensors of a side, those only of these names if some are given. Parameters that were being initialized
 * are left out. `asSaved`: whether sparse shards are joined, as a save joins them.
 */
export function tensorsOf(
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
