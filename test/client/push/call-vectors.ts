/** Calls whose records are shared vectors: small, and together all that the header of a batch can say. */
import {
  bytesOf,
  type Dtype,
  dtypeOf,
  hashName,
  type ParameterConfigInput,
  type ParameterInfo,
  pinToFragment,
  type Synchronization,
  toConfig,
  toSynchronization,
} from "../../../src/protocol/index.ts";
import { toHex, toJson } from "../../protocol/vector-json.ts";
import {
  type CallJob,
  elementsOf,
  type GivenValues,
  recordsOf,
  type SentCall,
  valuesOf,
} from "./sent-calls.ts";

interface CallVector {
  readonly what: string;
  readonly job: CallJob;
  readonly calls: readonly SentCall[];
}

/** A parameter in two shards, with as many blocks, the first of them in `firstShard`. */
function parameter(
  name: string,
  shape: readonly number[],
  more: {
    dtype?: Dtype;
    config?: ParameterConfigInput;
    blockElements?: number;
    firstShard?: number;
  } = {},
): ParameterInfo {
  const { dtype = "float32", config = { learningRate: 0.5 }, firstShard = 0 } = more;
  const elements = shape.reduce((product, size) => product * size, 1);
  const { blockElements = elements } = more;
  const blocks = Math.ceil(elements / blockElements);
  const layout = { elements, blockElements, blocks, firstShard, shards: 2 };
  return {
    name,
    dtype,
    shape,
    config: toConfig(config),
    epoch: 7,
    ready: true,
    layout,
    firstNumber: 1 + (hashName(name) % 2 ** 31),
  };
}

const BIAS = parameter("bias", [3]);
const SCALAR = parameter("α", []);
const WIDE = parameter("wide", [5, 2], { blockElements: 4 });
const COUNTS = parameter("counts", [2], { dtype: "int64", config: { optimizer: "none" } });
const DOUBLE = parameter("double", [2], {
  dtype: "float64",
  config: { learningRate: 1, clipNorm: 2 },
});
const AGED = parameter("aged", [4], {
  blockElements: 1,
  config: { learningRate: 1, stalenessScaling: true },
});
const TABLE = parameter("table", [12, 2], {
  blockElements: 8,
  config: { learningRate: 0.5, sparse: true },
});
const TALL = parameter("tall", [140_000, 1], {
  blockElements: 70_000,
  config: { learningRate: 0.5, sparse: true },
});
const LONG = parameter("long", [600], { blockElements: 300 });
const FLAT = parameter("flat", [2, 10], { blockElements: 6 });

/** A parameter of the fragment "f", all of whose blocks are in one shard. */
function inFragment(
  name: string,
  shape: readonly number[],
  more: Parameters<typeof parameter>[2] = {},
): ParameterInfo {
  const config = { optimizer: "nesterov", learningRate: 0.7, fragment: "f" } as const;
  const info = parameter(name, shape, { ...more, config });
  return { ...info, layout: pinToFragment(info.layout, "f") };
}

const PIECES = inFragment("pieces", [600], { blockElements: 256 });
const ONE = inFragment("one", []);
const FINE = inFragment("fine", [3], { dtype: "float64" });

function job(
  parameters: readonly ParameterInfo[],
  more: Partial<Pick<CallJob, "seen" | "payloadBytes" | "synchronization">> = {},
): CallJob {
  const asynchronous: Synchronization = { mode: "async" };
  const usual = { synchronization: asynchronous, payloadBytes: 8_388_608, seen: [] };
  return { ...usual, parameters, ...more };
}

function whole(info: ParameterInfo): GivenValues {
  return { name: info.name, data: valuesOf(info, (i) => (i - 1) / 4) };
}

function rowsOf(info: ParameterInfo, rows: readonly number[]): GivenValues {
  const { name, dtype, shape, layout } = info;
  const elements = (rows.length * layout.elements) / (shape[0] ?? 1);
  return { name, rows, data: elementsOf(dtype, elements, (i) => i + 1) };
}

const SYNC: Synchronization = { mode: "sync", trainers: 2, reduce: "mean", backups: 0 };
const DILOCO = toSynchronization({ mode: "diloco" });
const SMALL = [BIAS, SCALAR, WIDE, DOUBLE, COUNTS];

export const callVectors: readonly CallVector[] = [
  {
    what: "gradients of several parameters, blocks of one in both shards",
    job: job(SMALL),
    calls: [{ kind: "sendGrads", values: SMALL.map(whole) }],
  },
  {
    what: "a gradient alone, with a learning rate",
    job: job([BIAS]),
    calls: [{ kind: "sendGrads", values: [whole(BIAS)], learningRate: 0.25 }],
  },
  {
    what: "gradients of a step: those of integers go apart",
    job: job(SMALL, { synchronization: SYNC }),
    calls: [{ kind: "sendGrads", values: SMALL.map(whole), learningRate: 2 }],
  },
  {
    what: "encoded gradients, one after the other in a session",
    job: job([BIAS, WIDE]),
    calls: [
      { kind: "sendGrads", values: [BIAS, WIDE].map(whole), encoding: "bfloat16" },
      { kind: "sendGrads", values: [WIDE, BIAS].map(whole), encoding: "float16" },
    ],
  },
  {
    what: "gradients in encodings with scales, with what the calls before have left out, and one without",
    job: job([BIAS, WIDE, TABLE, LONG]),
    calls: [
      { kind: "sendGrads", values: [BIAS, WIDE, LONG].map(whole), encoding: "int8" },
      { kind: "sendGrads", values: [WIDE, BIAS, LONG].map(whole), encoding: "int8" },
      { kind: "sendGrads", values: [rowsOf(TABLE, [0, 3, 11])], encoding: "e3m0" },
      {
        kind: "sendGrads",
        values: [rowsOf(TABLE, [1, 3, 4, 11]), whole(BIAS)],
        encoding: "e3m0",
      },
      { kind: "sendGrads", values: [whole(LONG)], encoding: "e3m0", errorFeedback: false },
      { kind: "sendGrads", values: [BIAS, WIDE, LONG].map(whole), encoding: "e3m0" },
    ],
  },
  {
    what: "values and parts in encodings with scales, out of which nothing is kept",
    job: job([LONG, FLAT]),
    calls: [
      { kind: "pushFull", ...whole(LONG), alpha: 0.5, beta: 2, encoding: "int8" },
      { kind: "pushFull", ...whole(LONG), alpha: 0.5, beta: 2, encoding: "e3m0" },
      {
        kind: "pushAsPart",
        name: "flat",
        data: new Float32Array([1, 2, 3, 4, 5, 6]),
        indices: [
          [0, 1],
          [0, 5, 9],
        ],
        alpha: 0,
        beta: 1,
        encoding: "e3m0",
      },
    ],
  },
  {
    what: "gradients that name the versions they were made from, where there are any",
    job: job([BIAS, AGED], {
      seen: [
        { name: "aged", block: 0, version: 3 },
        { name: "aged", block: 3, version: 70_000 },
      ],
    }),
    calls: [{ kind: "sendGrads", values: [BIAS, AGED].map(whole) }],
  },
  {
    what: "gradients of rows: repeated ones are added up, whole blocks have no index",
    job: job([TABLE, BIAS]),
    calls: [
      {
        kind: "sendGrads",
        values: [rowsOf(TABLE, [11, 0, -1, 4, 5, 6, 7, 0]), whole(BIAS)],
      },
    ],
  },
  {
    what: "row numbers of four bytes, because a block has more than 65,536 rows",
    job: job([TALL, TABLE]),
    calls: [
      { kind: "sendGrads", values: [rowsOf(TALL, [0, 69_999, 70_000]), rowsOf(TABLE, [0, 5])] },
    ],
  },
  {
    what: "values that are set",
    job: job(SMALL),
    calls: [{ kind: "setParams", values: SMALL.map(whole) }],
  },
  {
    what: "a push of a parameter of several blocks",
    job: job([WIDE]),
    calls: [{ kind: "pushFull", ...whole(WIDE), alpha: 0.5, beta: 2 }],
  },
  {
    what: "a part of columns, in blocks of whole rows",
    job: job([WIDE]),
    calls: [
      {
        kind: "pushAsPart",
        name: "wide",
        data: new Float32Array([1, 2, 3]),
        indices: [[4, 0, 1], [1]],
        alpha: 1,
        beta: 1,
      },
    ],
  },
  {
    what: "a part of a parameter whose rows are cut",
    job: job([FLAT]),
    calls: [
      {
        kind: "pushAsPart",
        name: "flat",
        data: new Float32Array([1, 2, 3, 4, 5, 6]),
        indices: [
          [0, 1],
          [0, 5, 9],
        ],
        alpha: 0,
        beta: 1,
        encoding: "bfloat16",
      },
    ],
  },
  {
    what: "first values of a parameter of several blocks",
    job: job([FLAT]),
    calls: [{ kind: "create", ...whole(FLAT) }],
  },
  {
    what: "a contribution of several types, with the time that a step takes",
    job: job([PIECES, ONE, FINE], { synchronization: DILOCO }),
    calls: [
      {
        kind: "contribute",
        fragment: "f",
        ...{ base: 3, steps: 10, tokens: 70_000, stepMs: 12.5 },
        values: [PIECES, ONE, FINE].map(whole),
      },
    ],
  },
  {
    what: "a contribution of one block, of the parameters as they are",
    job: job([ONE], { synchronization: DILOCO }),
    calls: [
      {
        kind: "contribute",
        fragment: "f",
        ...{ base: 0, steps: 1, tokens: 0, form: "parameters" },
        values: [whole(ONE)],
      },
    ],
  },
  {
    what: "a contribution in an encoding with scales",
    job: job([PIECES, ONE], { synchronization: DILOCO }),
    calls: [
      {
        kind: "contribute",
        fragment: "f",
        ...{ base: 1, steps: 2, tokens: 3, encoding: "e3m0" },
        values: [PIECES, ONE].map(whole),
      },
    ],
  },
  {
    what: "a contribution of which some tensors are sent as they are",
    job: job([PIECES, ONE, FINE], { synchronization: DILOCO }),
    calls: [
      {
        kind: "contribute",
        fragment: "f",
        ...{ base: 1, steps: 2, tokens: 3, encoding: "int8", exact: [ONE.name, FINE.name] },
        values: [PIECES, ONE, FINE].map(whole),
      },
    ],
  },
];

/** As many parameters of one block, all in one shard. */
function many(count: number, elements: number): readonly ParameterInfo[] {
  return Array.from({ length: count }, (_, i) => parameter(`p😀.${i}`, [elements]));
}

function gradientsOf(parameters: readonly ParameterInfo[]): readonly SentCall[] {
  return [{ kind: "sendGrads", values: parameters.map(whole) }];
}

const DOTS = parameter("dots", [9_000], { blockElements: 1 });
const DUST = many(5_000, 1);
const KIBS = [...many(18, 15_360), parameter("less", [65_535]), parameter("alone", [65_536])];

const HEAVY = [
  inFragment("half", [5], { dtype: "bfloat16" }),
  ...Array.from({ length: 18 }, (_, i) => inFragment(`h${i}`, [15_360])),
  inFragment("large", [300_000], { blockElements: 280_000 }),
];

/** Calls that fill batches up to each of their limits, too large for a file. */
export const limitCalls: readonly CallVector[] = [
  { what: "entries, of many parameters", job: job(DUST), calls: gradientsOf(DUST) },
  { what: "entries", job: job([DOTS]), calls: gradientsOf([DOTS]) },
  { what: "first values", job: job([DOTS]), calls: [{ kind: "create", ...whole(DOTS) }] },
  { what: "bytes of the elements, and of an entry", job: job(KIBS), calls: gradientsOf(KIBS) },
  {
    what: "the largest message of the broker",
    job: job(KIBS, { payloadBytes: 300_000 }),
    calls: gradientsOf(KIBS),
  },
  {
    what: "parts of a contribution, one of them of a block that is larger than a batch",
    job: job(HEAVY, { synchronization: DILOCO }),
    calls: [
      {
        kind: "contribute",
        fragment: "f",
        ...{ base: 1, steps: 2, tokens: 3 },
        values: HEAVY.map(whole),
      },
    ],
  },
  ...[70_059, 70_060].map((payloadBytes) => ({
    // The second has a byte more, which is what one more block in each batch needs.
    what: `first values, messages of ${payloadBytes} bytes`,
    job: job([DOTS], { payloadBytes }),
    calls: [{ kind: "create", ...whole(DOTS) }] as const,
  })),
];

/** The cases as the file of vectors shows them. */
export async function callCases(): Promise<{ calls: readonly object[] }> {
  return { calls: await Promise.all(callVectors.map(callCase)) };
}

async function callCase({ what, job, calls }: CallVector): Promise<object> {
  const records = await recordsOf(job, calls);
  return {
    what,
    job: toJson(job),
    calls: calls.map((call) => toJson(withData(call))),
    records: records.map(({ subject, bytes }) => ({ subject, hex: toHex(bytes) })),
  };
}

/** The call with tensors as their type and bytes. */
function withData(call: SentCall): object {
  const shown = ({ name, data, rows }: GivenValues): object => ({
    ...{ name, dtype: dtypeOf(data), data: toHex(bytesOf(data)) },
    ...(rows === undefined ? {} : { rows }),
  });
  if ("values" in call) return { ...call, values: call.values.map(shown) };
  return { ...call, ...shown(call) };
}
