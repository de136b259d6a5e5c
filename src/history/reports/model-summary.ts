import type { Dtype } from "../../protocol/dtypes.ts";
import { toNumbers } from "../../protocol/encoding/half-floats.ts";
import { type ComparedTensor, compareModels, viewElements } from "../compare-models.ts";
import {
  type ReplayedModel,
  type ReplayedParameter,
  versionsOf,
} from "../replay/replayed-model.ts";

/** Bars of a histogram. */
export const HISTOGRAM_BARS = 32;

/** What a parameter's values are like, without the values. */
export interface ParameterSummary {
  readonly name: string;
  readonly dtype: Dtype;
  readonly shape: readonly number[];
  readonly version: { readonly least: number; readonly most: number };
  readonly updates: number;
  /** The root of the sum of squares, and the ends, of the finite elements. */
  readonly norm: number;
  readonly min: number;
  readonly max: number;
  readonly nonFinite: number;
  /** How many finite elements are in each of {@link HISTOGRAM_BARS} equal parts from `min` to `max`. */
  readonly histogram: readonly number[];
}

/** How a parameter differs from that of another model. */
export interface ParameterChange {
  readonly name: string;
  /** Elements that differ; undefined if the other model has no parameter of this name, type and shape. */
  readonly differing: number | undefined;
  /** Largest and mean size of the changes. */
  readonly largest: number | undefined;
  readonly mean: number | undefined;
}

/** Summarizes the complete parameters of a model, by name; reads the values of one block at a time, twice. */
export async function* summarizeModel(
  model: ReplayedModel,
  signal: AbortSignal,
): AsyncGenerator<ParameterSummary, void, undefined> {
  for (const parameter of model.parameters) {
    if (!parameter.isComplete) continue;
    signal.throwIfAborted();
    yield await summarize(model, parameter);
  }
}

async function summarize(
  model: ReplayedModel,
  parameter: ReplayedParameter,
): Promise<ParameterSummary> {
  const { name, dtype, shape } = parameter;
  let squares = 0;
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let nonFinite = 0;
  await eachElement(model, parameter, (value) => {
    if (!Number.isFinite(value)) {
      nonFinite += 1;
      return;
    }
    squares += value * value;
    if (value < min) min = value;
    if (value > max) max = value;
  });
  // Without a finite element the ends are 0, and no bar has any.
  if (min > max) [min, max] = [0, 0];
  const histogram = new Array<number>(HISTOGRAM_BARS).fill(0);
  const scale = max > min ? HISTOGRAM_BARS / (max - min) : 0;
  await eachElement(model, parameter, (value) => {
    if (!Number.isFinite(value)) return;
    const bar = Math.min(HISTOGRAM_BARS - 1, Math.floor((value - min) * scale));
    histogram[bar] = (histogram[bar] ?? 0) + 1;
  });
  const { least, most, updates } = versionsOf(parameter);
  const numbers = { norm: Math.sqrt(squares), min, max, nonFinite, histogram };
  return { name, dtype, shape, version: { least, most }, updates, ...numbers };
}

async function eachElement(
  model: ReplayedModel,
  parameter: ReplayedParameter,
  visit: (value: number) => void,
): Promise<void> {
  const { dtype } = parameter;
  for await (const chunk of model.chunks(parameter)) {
    for (const value of toNumbers(dtype, viewElements(dtype, chunk))) visit(Number(value));
  }
}

/** Compares a model with another one, parameter by parameter, by name. */
export async function changesBetween(
  model: ReplayedModel,
  other: ReplayedModel,
  signal: AbortSignal,
): Promise<ParameterChange[]> {
  const changes: ParameterChange[] = [];
  const options = { show: () => "", signal };
  for await (const found of compareModels(tensorsOf(model), tensorsOf(other), options)) {
    const { name } = found;
    if (found.kind === "compared") {
      const { differing, largest, mean } = found.difference;
      changes.push({ name, differing, largest, mean });
    } else if (found.kind !== "only-b") {
      changes.push({ name, differing: undefined, largest: undefined, mean: undefined });
    }
  }
  return changes;
}

/** Returns the complete parameters of a replayed model as tensors that can be compared. */
export function tensorsOf(model: ReplayedModel): ComparedTensor[] {
  const complete = model.parameters.filter(({ isComplete }) => isComplete);
  return complete.map((parameter) => {
    const { name, dtype, shape } = parameter;
    return { header: { name, dtype, shape }, chunks: () => model.chunks(parameter) };
  });
}
