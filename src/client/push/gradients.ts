import { checkTakesGradients } from "../../protocol/config/index.ts";
import type { Encoding } from "../../protocol/encoding/encodings.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { ParameterInfo } from "../../protocol/lifecycle-messages.ts";
import { quoteName } from "../../protocol/names.ts";
import type { PushOperation } from "../../protocol/records.ts";
import type { JobSubjects } from "../../protocol/subjects.ts";
import type { TensorLike } from "../../protocol/tensor.ts";
import { type IndexList, normalizeList } from "../parts/part-index.ts";
import { planRows } from "../parts/part-plan.ts";
import { slicePart } from "../parts/part-values.ts";
import type { UpdateSource } from "../shell/update-source.ts";
import { type Push, partUpdates, pushUpdates } from "./block-updates.ts";
import { checkedNorm, fitData, fitTensor } from "./fit-tensor.ts";
import { sumRows } from "./row-sums.ts";
import type { SeenVersions } from "./seen-versions.ts";

/**
 * A gradient of some rows (of axis 0) of a parameter that is configured `sparse`. Negative numbers
 * count from the end. Of a row that is named repeatedly the values are added up, in order.
 */
export interface RowGradient {
  readonly rows: IndexList;
  /** A row of elements for each number in `rows`: a tensor of shape [rows, …], or a bare array. */
  readonly values: TensorLike;
}

/** A gradient of a whole parameter, or of some of its rows. */
export type Gradient = TensorLike | RowGradient;

/** Gradients by parameter name. */
export type GradientRecord = Readonly<Record<string, Gradient>> | ReadonlyMap<string, Gradient>;

/** Dependencies and settings of gradient updates. */
export interface GradientMode {
  readonly subjects: JobSubjects;
  readonly trainer: string;
  readonly learningRate: number | undefined;
  readonly encoding: Encoding | undefined;
  readonly seen: SeenVersions;
  /** The step they belong to, read when a message is made. */
  readonly step: () => number | undefined;
}

/**
 * The updates of one gradient of a parameter; none if no row is named.
 * @throws UNSUPPORTED, NO_LEARNING_RATE, BAD_DTYPE, BAD_SHAPE, BAD_INDEX or NON_FINITE for what does
 * not fit.
 */
export function gradientUpdates(
  info: ParameterInfo,
  given: Gradient,
  mode: GradientMode,
): UpdateSource[] {
  const { name, dtype, config } = info;
  checkTakesGradients(dtype, config, name);
  const hasRate = mode.learningRate !== undefined || config.learningRate !== undefined;
  if (!hasRate && config.optimizer.name !== "none") throw noRate(name);
  if (isRowGradient(given)) return rowUpdates(info, given, mode);
  const tensor = fitTensor(info, given);
  const norm = checkedNorm(info, tensor.data, mode.encoding);
  return pushUpdates(mode, info, tensor.data, toPush(info, norm, mode));
}

function rowUpdates(info: ParameterInfo, given: RowGradient, mode: GradientMode): UpdateSource[] {
  const { name, shape, config, layout } = info;
  if (!config.sparse) throw notSparse(name);
  const [size, ...rowShape] = shape;
  if (size === undefined) throw noRows(name);
  const named = normalizeList(name, size, given.rows, 0);
  const rowElements = layout.elements / size;
  const elements = named.length * rowElements;
  const data = fitData(info, given.values, [named.length, ...rowShape], elements);
  if (elements === 0) return [];
  const { rows, values } = sumRows(named, data, rowElements);
  const norm = checkedNorm(info, values, mode.encoding);
  // The layout of a sparse parameter leaves room for the numbers of all rows of a block.
  const slices = planRows(info, rows).flatMap((part) =>
    slicePart(part, 0, Number.POSITIVE_INFINITY),
  );
  return partUpdates(mode, info, slices, values, toPush(info, norm, mode));
}

function toPush(info: ParameterInfo, norm: number | undefined, mode: GradientMode): Push {
  const { learningRate: lr, encoding, step: currentStep } = mode;
  const seenBefore = versionsSeen(info, mode.seen);
  return {
    ...(norm === undefined ? {} : { norm }),
    ...(encoding === undefined ? {} : { encoding }),
    // Gradients of one step are all made from the same version, and name none.
    namesVersion: (block) => currentStep() === undefined && seenBefore.has(block),
    operation: (block, namesVersion): PushOperation => {
      const step = currentStep();
      const version = namesVersion ? seenBefore.get(block) : undefined;
      return {
        op: "grad",
        ...(lr === undefined ? {} : { lr }),
        ...(step === undefined ? (version === undefined ? {} : { seen: version }) : { step }),
      };
    },
  };
}

/** The versions of its blocks that were read last. */
function versionsSeen(info: ParameterInfo, seen: SeenVersions): Map<number, number> {
  const versions = new Map<number, number>();
  for (let block = 0; block < info.layout.blocks; block++) {
    const version = seen.get(info, block);
    if (version !== undefined) versions.set(block, version);
  }
  return versions;
}

function isRowGradient(given: Gradient): given is RowGradient {
  return (
    !ArrayBuffer.isView(given) && typeof given === "object" && given !== null && "rows" in given
  );
}

function noRate(parameter: string): PserverError {
  return new PserverError(
    "NO_LEARNING_RATE",
    `${quoteName(parameter)}: expected a learningRate in its config or in the call; received neither`,
    { parameter },
  );
}

function noRows(parameter: string): PserverError {
  const expected = "a parameter with rows";
  return new PserverError(
    "BAD_INDEX",
    `${quoteName(parameter)}: rows: expected ${expected}; received a scalar`,
    { parameter, expected, received: "a scalar" },
  );
}

function notSparse(parameter: string): PserverError {
  return new PserverError(
    "UNSUPPORTED",
    `${quoteName(parameter)}: gradients of some rows are for parameters with sparse: true in their config`,
    { parameter, expected: "sparse: true", received: "sparse: false" },
  );
}
