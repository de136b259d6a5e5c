import {
  type ComparedTensor,
  compareModels,
  type ParameterDifference,
} from "../../history/compare/compare-models.ts";
import { dataBytes } from "../../model-files/index.ts";
import { PserverError } from "../../protocol/errors.ts";
import { quoteName } from "../../protocol/names.ts";
import { formatBytes } from "../output/amounts.ts";
import { formatElement } from "../output/elements.ts";
import type { Output } from "../output/output.ts";

/**
 * Compares two models and shows the progress. `names`: the parameters that were asked for, if not all.
 * @throws UNKNOWN_PARAMETER for a name that neither model has; as `compareModels`.
 */
export async function compareTensorLists(
  output: Output,
  a: readonly ComparedTensor[],
  b: readonly ComparedTensor[],
  names: readonly string[] | undefined,
  signal: AbortSignal,
): Promise<ParameterDifference[]> {
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
