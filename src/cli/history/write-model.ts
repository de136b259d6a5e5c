import { basename, dirname, extname, resolve, sep } from "node:path";
import { slotPlan } from "../../actors/fold/block-actor.ts";
import { computedAs } from "../../actors/fold/elements.ts";
import { CURRENT_RULES } from "../../actors/fold/rules.ts";
import type { ReplayedModel, ReplayedParameter } from "../../history/replay/replayed-model.ts";
import {
  formatOf,
  MODEL_ENDINGS,
  type SavedOptimizers,
  type SavedState,
  saveModel,
  unknownName,
} from "../../model-files/index.ts";
import { mismatch, PserverError } from "../../protocol/errors.ts";
import { checkTensorTarget, writeTensorFile } from "../tensor-files.ts";

/** Endings of files that hold one tensor. */
const TENSOR_ENDINGS: readonly string[] = [".npy", ".json", ".bin", ".raw"];

/** A replayed model, and the parameters of it that go into a file. */
export interface ModelToWrite {
  readonly model: ReplayedModel;
  readonly parameters: readonly ReplayedParameter[];
  readonly job: string;
  /** The model's origin, as the file names it. */
  readonly point: string;
  /** Whether the file holds what optimizers keep of the values, too. */
  readonly withOptimizer?: boolean;
}

/** A file that was written. */
export interface WrittenModel {
  readonly file: string;
  readonly bytes: number;
  readonly format: string;
}

/**
 * Checks, before anything is replayed, that a model can be written under this name.
 * @throws BAD_VALUE for an ending that goes with no format, or with one tensor where there may be several, or not
 * with optimizer state; IO if it names no place for a file.
 */
export async function checkModelTarget(
  path: string,
  { isOneParameter, withOptimizer = false }: { isOneParameter: boolean; withOptimizer?: boolean },
): Promise<void> {
  if (withOptimizer && formatOf(path) !== "safetensors") {
    const expected = "a name ending in .safetensors";
    throw mismatch("BAD_VALUE", "--with-optimizer", expected, unknownName(path), {
      received: path,
    });
  }
  if (isTensorFile(path)) {
    if (isOneParameter) return await checkTensorTarget(path);
    const text = `--out ${path}: a file of one tensor; expected one --param with it`;
    throw new PserverError("BAD_VALUE", text, { received: path });
  }
  if (formatOf(path) !== undefined) return;
  throw new PserverError(
    "BAD_VALUE",
    `--out: expected a name ending in ${MODEL_ENDINGS.join(", ")} or /, or, for one parameter, in ${TENSOR_ENDINGS.join(", ")}; received ${unknownName(path)}`,
    { received: path },
  );
}

/**
 * Writes parameters of a replayed model into a file on this machine, in the format of its ending. It
 * appears whole or not at all.
 * @throws BAD_PATH, IO, DISK_FULL; the reason of `signal`.
 */
export async function writeModel(
  path: string,
  { model, parameters, job, point, withOptimizer = false }: ModelToWrite,
  signal: AbortSignal,
): Promise<WrittenModel> {
  const [only] = parameters;
  if (isTensorFile(path) && only !== undefined) {
    const tensor = await model.tensor(only.name);
    const bytes = await writeTensorFile(path, only.name, tensor, { signal });
    return { file: path, bytes, format: extname(path).slice(1) };
  }
  const byName = new Map(parameters.map((parameter) => [parameter.name, parameter]));
  const absolute = resolve(path);
  const isDirectory = path.endsWith("/") || path.endsWith(sep);
  const saved = await saveModel({
    directory: dirname(absolute),
    path: `${basename(absolute)}${isDirectory ? "/" : ""}`,
    tensors: parameters.map(({ name, dtype, shape }) => ({ name, dtype, shape })),
    chunks: async function* ({ name }, slot) {
      const parameter = byName.get(name);
      if (parameter !== undefined) yield* model.chunks(parameter, slot);
    },
    metadata: { job, format: "nats-pserver", point },
    ...(withOptimizer && { optimizers: optimizersOf(parameters) }),
    signal,
  });
  return { ...saved, file: path };
}

/** Describes what the optimizers of replayed parameters keep; sums of a step that is open are left out. */
function optimizersOf(parameters: readonly ReplayedParameter[]): SavedOptimizers {
  return { rules: CURRENT_RULES, parameters: parameters.flatMap(stateOf) };
}

function stateOf({ name, dtype, shape, config, blocks }: ReplayedParameter): SavedState[] {
  const [first] = blocks;
  if (first === undefined) return [];
  const { rule, counts } = slotPlan(first, { mode: "async" });
  const ofRule = { dtype: computedAs(dtype), shape };
  const ofRows = { dtype: "uint32", shape: shape.slice(0, 1) } as const;
  return [
    {
      ...{ name, config, blockElements: first.count },
      updates: blocks.map(({ updates }) => updates),
      slots: [
        ...Array.from({ length: rule }, () => ofRule),
        ...(counts === undefined ? [] : [ofRows]),
      ],
    },
  ];
}

function isTensorFile(path: string): boolean {
  return TENSOR_ENDINGS.includes(extname(path).toLowerCase());
}
