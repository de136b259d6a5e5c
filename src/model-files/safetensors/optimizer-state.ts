import { type ParameterConfig, toConfig } from "../../protocol/config/index.ts";
import type { Dtype } from "../../protocol/dtypes.ts";
import { PserverError } from "../../protocol/errors.ts";
import { INIT_UPDATES_MAX } from "../../protocol/messages/records.ts";
import { quoteName } from "../../protocol/names.ts";
import { sameShape } from "../../protocol/tensor.ts";
import { badFile, isJsonObject, parseBoundedJson } from "../file-text.ts";
import {
  badName,
  DESCRIPTION_VALUES_MAX,
  elementsOf,
  type IncomingModel,
  type RestorableState,
  showShape,
  TENSORS_MAX,
  type TensorHeader,
  type TensorSource,
} from "../tensor-headers.ts";

/*
 * A safetensors file can hold what optimizers keep of the values. Slot 1 of the optimizer of w is the tensor
 * "pserver.optimizer/1/w". All the rest is JSON text in the file's metadata, under the key "pserver.optimizer":
 *
 *     {"format": 1, "rules": 1, "configs": [{…}, …], "parameters": [["w", 0, 1000, 12, 2], …]}
 *
 * Each parameter has its name, the number of its configuration, the elements of its blocks, the updates of its blocks
 * (one number if they are equal, else a list) and the number of its slots.
 */

/** The key of the metadata; what begins with it and a slash is a slot. */
export const OPTIMIZER_KEY = "pserver.optimizer";
const PREFIX = `${OPTIMIZER_KEY}/`;
const FORMAT = 1;
const SLOTS_MAX = 16;

/** What the optimizer of a parameter keeps of its values, without the elements of its slots. */
export interface SavedState {
  readonly name: string;
  readonly config: ParameterConfig;
  /** Elements of each block but the last. */
  readonly blockElements: number;
  /** Updates by gradients, of each block. */
  readonly updates: readonly number[];
  /** Slots 1, 2, …. */
  readonly slots: readonly { readonly dtype: Dtype; readonly shape: readonly number[] }[];
}

/** The optimizers' states of a model to be saved. */
export interface SavedOptimizers {
  /** Version of the rules under which they were computed. */
  readonly rules: number;
  readonly parameters: readonly SavedState[];
}

/** A tensor of the file that is a slot of a parameter. */
export interface SlotTensor {
  readonly header: TensorHeader;
  readonly parameter: string;
  readonly slot: number;
}

/** Returns the tensors of a file that hold slots. @throws BAD_NAME for a parameter that is named as these are. */
export function slotTensors({ parameters }: SavedOptimizers): SlotTensor[] {
  const taken = parameters.find(({ name }) => name.startsWith(PREFIX));
  if (taken !== undefined) throw badName(taken.name, `names that do not begin with ${PREFIX}`);
  return parameters.flatMap(({ name, slots }) =>
    slots.map(({ dtype, shape }, i) => {
      const header = { name: slotName(name, i + 1), dtype, shape };
      return { header, parameter: name, slot: i + 1 };
    }),
  );
}

/** Writes all but the slots as the text of the metadata. */
export function encodeOptimizers({ rules, parameters }: SavedOptimizers): string {
  const configs = new Map<string, number>();
  const rows = parameters.map(({ name, config, blockElements, updates, slots }) => {
    const text = JSON.stringify(config);
    const number = configs.get(text) ?? configs.size;
    configs.set(text, number);
    const [first] = updates;
    const counts = updates.every((each) => each === first) ? first : updates;
    return JSON.stringify([name, number, blockElements, counts, slots.length]);
  });
  const fields = `"configs":[${[...configs.keys()].join(",")}],"parameters":[${rows.join(",")}]`;
  return `{"format":${FORMAT},"rules":${rules},${fields}}`;
}

/**
 * Separates the optimizers' states of a file from its parameters; returns the model as it is if it has none.
 * @throws BAD_VERSION for a format of a later program; BAD_FILE if the description and the tensors contradict each
 * other.
 */
export function separateOptimizers(path: string, model: IncomingModel): IncomingModel {
  const { [OPTIMIZER_KEY]: text, ...metadata } = model.metadata;
  if (text === undefined) return model;
  const { rules, configs, rows } = parseDescription(path, text);
  const slots = new Map<string, TensorSource>();
  const tensors: TensorSource[] = [];
  for (const tensor of model.tensors) {
    const { name } = tensor.header;
    if (name.startsWith(PREFIX)) slots.set(name, tensor);
    else tensors.push(tensor);
  }
  const byName = new Map(tensors.map(({ header }) => [header.name, header]));
  const states = new Map<string, RestorableState>();
  for (const row of rows) {
    const [name, state] = parseRow(path, row, configs, byName, slots);
    if (states.has(name)) throw badFile(path, OPTIMIZER_KEY, "each name once", quoteName(name));
    states.set(name, state);
  }
  const [stray] = slots.keys();
  if (stray !== undefined) throw badFile(path, OPTIMIZER_KEY, "its own slots", quoteName(stray));
  return { ...model, tensors, metadata, optimizers: { rules, states } };
}

/** More than the lists and objects of the configurations and rows of all tensors. */
const BOUNDS = { depth: 8, containers: 16 * TENSORS_MAX, commas: DESCRIPTION_VALUES_MAX } as const;

function parseDescription(
  path: string,
  text: string,
): { rules: number; configs: readonly ParameterConfig[]; rows: readonly unknown[] } {
  const { value } = parseBoundedJson(path, OPTIMIZER_KEY, Buffer.from(text), BOUNDS);
  const fields = isJsonObject(value) ? value : {};
  const { format, rules, configs, parameters } = fields;
  if (format !== FORMAT) {
    const message = `${path}: ${OPTIMIZER_KEY}: expected format ${FORMAT}; received ${JSON.stringify(format)}`;
    throw new PserverError("BAD_VERSION", message, { path, expected: FORMAT, received: format });
  }
  if (!isCount(rules, 1) || !Array.isArray(configs) || !Array.isArray(parameters)) {
    throw badFile(path, OPTIMIZER_KEY, "rules, configs and parameters", "other values");
  }
  return { rules, configs: configs.map((config) => parseConfig(path, config)), rows: parameters };
}

function parseConfig(path: string, config: unknown): ParameterConfig {
  try {
    return toConfig(isJsonObject(config) ? config : null);
  } catch (cause) {
    const received = JSON.stringify(config).slice(0, 200);
    throw badFile(path, OPTIMIZER_KEY, "configurations of parameters", received, cause);
  }
}

/** Reads the row of a parameter, and takes its slots out of `slots`. */
function parseRow(
  path: string,
  row: unknown,
  configs: readonly ParameterConfig[],
  byName: ReadonlyMap<string, TensorHeader>,
  slots: Map<string, TensorSource>,
): [name: string, state: RestorableState] {
  const refuse = (what: string, expected: string, received: unknown): PserverError =>
    badFile(path, `${OPTIMIZER_KEY}, ${what}`, expected, JSON.stringify(received)?.slice(0, 200));
  if (!Array.isArray(row) || row.length !== 5) throw refuse("a parameter", "five entries", row);
  const [name, number, blockElements, counts, slotCount] = row as unknown[];
  const header = byName.get(String(name));
  const config = configs[Number(number)];
  if (header === undefined || config === undefined) {
    throw refuse("a parameter", "a tensor and a configuration of the file", row.slice(0, 2));
  }
  if (!isCount(blockElements, 1) || !isCount(slotCount, 0) || slotCount > SLOTS_MAX) {
    throw refuse(quoteName(header.name), "elements of a block, and a number of slots", row);
  }
  const blocks = Math.ceil((elementsOf(header.shape) ?? 0) / blockElements);
  const updates: readonly unknown[] = Array.isArray(counts) ? counts : new Array(1).fill(counts);
  const areCounts = updates.every((each) => isCount(each, 0) && each <= INIT_UPDATES_MAX);
  if (!areCounts || (Array.isArray(counts) && counts.length !== blocks)) {
    throw refuse(quoteName(header.name), `updates of ${blocks} blocks`, counts);
  }
  const own = Array.from({ length: slotCount }, (_, i) => {
    const tensor = slots.get(slotName(header.name, i + 1));
    if (tensor === undefined)
      throw refuse(quoteName(header.name), `slot ${i + 1}`, "no such tensor");
    const { shape } = tensor.header;
    const fits = sameShape(shape, header.shape) || sameShape(shape, header.shape.slice(0, 1));
    if (!fits) {
      const expected = `the shape ${showShape(header.shape)}, or its rows`;
      throw refuse(`slot ${i + 1} of ${quoteName(header.name)}`, expected, shape);
    }
    slots.delete(tensor.header.name);
    return tensor;
  });
  const mostOf = (start: number, count: number): number => {
    const [first, last] = [start, start + count - 1].map((at) => Math.floor(at / blockElements));
    const of = updates.length === 1 ? updates : updates.slice(first, (last ?? 0) + 1);
    return of.reduce<number>((most, each) => Math.max(most, Number(each)), 0);
  };
  return [header.name, { config, updates: mostOf, slots: own }];
}

function isCount(value: unknown, least: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= least;
}

function slotName(parameter: string, slot: number): string {
  return `${PREFIX}${slot}/${parameter}`;
}
