import { viewElements } from "../element-view.ts";
import type { ReplayedModel, ReplayedParameter } from "../replay/replayed-model.ts";

/** Whether a model's float parameters hold finite values only, those of these names if some are given. */
export async function isFiniteModel(
  model: ReplayedModel,
  names: readonly string[] | undefined,
): Promise<boolean> {
  for (const parameter of model.parameters) {
    if (names !== undefined && !names.includes(parameter.name)) continue;
    if (!(await isFiniteParameter(model, parameter))) return false;
  }
  return true;
}

async function isFiniteParameter(
  model: ReplayedModel,
  parameter: ReplayedParameter,
): Promise<boolean> {
  const { dtype } = parameter;
  if (!dtype.startsWith("float")) return true;
  for await (const chunk of model.chunks(parameter)) {
    const data = viewElements(dtype, chunk);
    // Not `every`, which takes a call for each of millions of elements.
    for (let i = 0; i < data.length; i++) if (!Number.isFinite(data[i])) return false;
  }
  return true;
}
