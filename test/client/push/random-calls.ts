/** Jobs and calls by chance: parameters of all kinds and sizes, and every call that changes several blocks. */

import { isGrouped } from "../../../src/protocol/dtypes.ts";
import {
  DTYPES,
  type Dtype,
  type Encoding,
  type ParameterConfigInput,
  type ParameterInfo,
  type Synchronization,
  type TensorData,
  toConfig,
} from "../../../src/protocol/index.ts";
import type { Random } from "../../simulation/random.ts";
import { type CallJob, elementsOf, type GivenValues, type SentCall } from "./sent-calls.ts";

const SHARDS = 3;
const DTYPES_MADE: readonly Dtype[] = [
  "float32",
  "float32",
  "float32",
  "float64",
  "int32",
  "uint32",
  "int64",
  "uint64",
  "uint8",
  "int8",
  "bool",
  "float16",
  "bfloat16",
];
const ENCODINGS_MADE: readonly Encoding[] = ["bfloat16", "float16", "int8", "e3m0"];
const SYNCHRONIZATIONS: readonly Synchronization[] = [
  { mode: "async" },
  { mode: "sync", trainers: 1, reduce: "mean", backups: 0 },
];
/** Bytes of the largest message of a broker. */
const PAYLOADS = [8_388_608, 1_048_576, 300_000];
/** Elements of a call at most, so that scripts stay small. */
const CALL_ELEMENTS_MAX = 400_000;

/** A job and some calls in it. */
export function randomCalls(random: Random): { job: CallJob; calls: readonly SentCall[] } {
  const count = 1 + random.below(random.chance(0.2) ? 200 : 25);
  const parameters = Array.from({ length: count }, (_, i) => randomParameter(random, i));
  const job: CallJob = {
    synchronization: random.pick(SYNCHRONIZATIONS) ?? { mode: "async" },
    payloadBytes:
      random.pick(PAYLOADS.filter((bytes) => bytes >= payloadBytesMin(parameters))) ?? 0,
    parameters,
    seen: parameters
      .filter(() => random.chance(0.3))
      .flatMap(({ name, layout }) =>
        Array.from({ length: layout.blocks }, (_, block) => ({ name, block }))
          .filter(() => random.chance(0.6))
          .map((block) => ({ ...block, version: 1 + random.below(100_000) })),
      ),
  };
  const calls = Array.from({ length: 1 + random.below(4) }, () => randomCall(random, job));
  // The last, because its outcome is waited for: records after it would say that they do not wait any more.
  if (random.chance(0.3)) calls.push(randomInit(random, job));
  return { job, calls };
}

/** Hosts cut no blocks for which the broker has no room, with an index and the rest of a message. */
function payloadBytesMin(parameters: readonly ParameterInfo[]): number {
  return Math.max(...parameters.map(({ layout }) => 12 * layout.blockElements + 65_536));
}

function randomParameter(random: Random, i: number): ParameterInfo {
  const dtype = random.pick(DTYPES_MADE) ?? "float32";
  const isSparse = random.chance(0.3);
  const isFloat = DTYPES[dtype].float;
  const config: ParameterConfigInput = {
    sparse: isSparse,
    ...(isFloat ? { learningRate: 0.5 } : { optimizer: "none" as const }),
    ...(isFloat && random.chance(0.3) ? { stalenessScaling: true } : {}),
    ...(isFloat && random.chance(0.3) ? { clipNorm: 3 } : {}),
  };
  const name = `${random.pick(["w", "ü", "layer/7.b", "😀 x", "long".repeat(12)])}.${i}`;
  const shape = randomShape(random, isSparse);
  const elements = shape.reduce((product, size) => product * size, 1);
  const rowElements = elements / (shape[0] ?? 1);
  const isByRows = isSparse || random.chance(0.6);
  const unit = isByRows ? rowElements : 1;
  const units = elements / unit;
  const blockElements = unit * (random.chance(0.5) ? units : 1 + random.below(units));
  const layout = {
    elements,
    blockElements,
    blocks: Math.ceil(elements / blockElements),
    firstShard: random.below(SHARDS),
    shards: SHARDS,
  };
  const manyBlocks = layout.blocks > 400;
  return {
    name,
    dtype,
    shape,
    config: toConfig(config),
    epoch: 1 + random.below(300),
    ready: true,
    layout: manyBlocks ? { ...layout, blockElements: elements, blocks: 1 } : layout,
    firstNumber: 1 + random.below(2 ** 31),
  };
}

function randomShape(random: Random, isSparse: boolean): readonly number[] {
  // Many rows in a block.
  if (isSparse && random.chance(0.2)) return [70_000 + random.below(100_000), 1 + random.below(2)];
  if (isSparse) return [1 + random.below(500), 1 + random.below(40)];
  return (
    random.pick([
      [],
      [1 + random.below(8)],
      [1 + random.below(300)],
      [1 + random.below(60), 1 + random.below(60)],
      [1 + random.below(5), 1 + random.below(9), 1 + random.below(20)],
      // About as large as what goes alone.
      [256, 240 + random.below(40)],
    ]) ?? []
  );
}

function randomCall(random: Random, job: CallJob): SentCall {
  const { parameters } = job;
  const kinds = [
    "sendGrads",
    "sendGrads",
    "sendGrads",
    "setParams",
    "pushFull",
    "pushAsPart",
  ] as const;
  const kind = random.pick(kinds) ?? "sendGrads";
  const one = random.pick(parameters) as ParameterInfo;
  const value = randomValue(random);
  // Bools can only be set.
  if (kind === "setParams" || (kind !== "sendGrads" && one.dtype === "bool")) {
    const values = someOf(random, parameters).map((info) => wholeOf(info, value));
    return { kind: "setParams", values };
  }
  const encoding = random.chance(0.5) ? random.pick(ENCODINGS_MADE) : undefined;
  if (kind === "sendGrads") {
    const taken = someOf(
      random,
      parameters.filter((info) => takes(info, encoding)),
    );
    const values = taken.map((info) => randomGradient(random, info, value));
    if (values.length === 0) return { kind: "setParams", values: [wholeOf(one, value)] };
    const rate = random.chance(0.5) ? { learningRate: random.below(9) / 8 } : {};
    const errorFeedback = random.chance(0.8);
    return {
      kind,
      values,
      ...rate,
      ...(encoding === undefined ? {} : { encoding, errorFeedback }),
    };
  }
  const mix = {
    alpha: random.below(5) / 4,
    beta: random.below(5),
    ...(takes(one, encoding) && encoding !== undefined ? { encoding } : {}),
  };
  if (kind === "pushFull") return { kind, ...wholeOf(one, value), ...mix };
  const indices = one.shape.map((size, axis) => randomIndices(random, size, axis === 0 ? 40 : 6));
  const elements = indices.reduce((product, list) => product * list.length, 1);
  const data = elementsFor(one, elements, value);
  return { kind, name: one.name, data, indices, ...mix };
}

function randomInit(random: Random, { parameters }: CallJob): SentCall {
  const info = random.pick(parameters) as ParameterInfo;
  return { kind: "create", ...wholeOf(info, randomValue(random)) };
}

/** Whether a parameter takes gradients in an encoding, and the norm that they then have is exact. */
function takes({ dtype, config }: ParameterInfo, encoding: Encoding | undefined): boolean {
  if (dtype === "bool" || (isGrouped(encoding) && config.clipNorm !== undefined)) return false;
  return encoding === undefined || dtype === "float32";
}

function randomValue(random: Random): (i: number) => number {
  const factor = 1 + random.below(1_000);
  return (i) => (i * factor) % 97;
}

/**
 * Elements for a parameter. Sevenths are rounded: sums of repeated rows depend on their order. So do the last
 * digits of a norm, which each implementation adds up in an order of its own: where there is one, it is exact.
 */
function elementsFor(
  { dtype, config }: ParameterInfo,
  count: number,
  value: (i: number) => number,
): TensorData {
  if (dtype === "bool") return elementsOf(dtype, count, (i) => value(i) % 2);
  const divisor = config.clipNorm === undefined ? 7 : 8;
  return elementsOf(dtype, count, (i) => value(i) / divisor);
}

function someOf(random: Random, parameters: readonly ParameterInfo[]): readonly ParameterInfo[] {
  const share = random.pick([0.2, 0.8, 1]) ?? 1;
  let elements = 0;
  const taken = parameters.filter(({ layout }) => {
    if (!random.chance(share) || elements + layout.elements > CALL_ELEMENTS_MAX) return false;
    elements += layout.elements;
    return true;
  });
  return taken.length > 0 ? taken : parameters.slice(0, 1);
}

function wholeOf(info: ParameterInfo, value: (i: number) => number): GivenValues {
  return { name: info.name, data: elementsFor(info, info.layout.elements, value) };
}

function randomGradient(
  random: Random,
  info: ParameterInfo,
  value: (i: number) => number,
): GivenValues {
  const { name, shape, config, layout } = info;
  if (!config.sparse || random.chance(0.2)) return wholeOf(info, value);
  const [size = 1] = shape;
  const rows = random.chance(0.1)
    ? Array.from({ length: size }, (_, row) => row)
    : randomIndices(random, size, 200);
  const elements = (rows.length * layout.elements) / size;
  return { name, data: elementsFor(info, elements, value), rows };
}

/** Indices below a size: some negative, some repeated, or none of either. */
function randomIndices(random: Random, size: number, most: number): readonly number[] {
  const list = Array.from({ length: 1 + random.below(most) }, () => random.below(size));
  if (random.chance(0.5)) return [...new Set(list)].sort((a, b) => a - b);
  return list.map((index) => (random.chance(0.3) ? index - size : index));
}
