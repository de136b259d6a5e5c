/**
 * What each of three trainers does, one in each language (test/c/programs/team.c,
 * src/client/python/tests/team.py): in every
 * round gradients of whole parameters and of rows, pushes of wholes and of parts, and a count, in another
 * encoding each time. "w", "emb" and "sum" get numbers that float32 and both encodings hold exactly, so
 * that what they come to depends on no order; "adam" and "blend" get others, and depend on it.
 */
import type { Client, IndexList } from "../../../src/client/index.ts";
import { bytesOf, type Encoding, type Tensor } from "../../../src/protocol/index.ts";

/** Shapes by name, in the order in which the values are read. */
export const SHAPES = {
  w: [300, 1031],
  adam: [4099],
  emb: [500, 24],
  sum: [40, 30],
  blend: [40, 30],
  counts: [3],
} as const;
export const NAMES: readonly string[] = Object.keys(SHAPES);
const NAMED_ROWS = 20;
const PART_SHAPE = [8, 6] as const;
const ENCODINGS: readonly (Encoding | undefined)[] = [undefined, "bfloat16", "float16"];

export function elementsOf(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

function wave(
  shape: readonly number[],
  round: number,
  number: number,
  divisor: number,
): Tensor & { readonly data: Float32Array } {
  const data = Float32Array.from(
    { length: elementsOf(shape) },
    (_, i) => (((i * 7 + round * 13 + number * 101) % 97) - 48) / divisor,
  );
  return { dtype: "float32", shape: [...shape], data };
}

function rowsOf(round: number, number: number): number[] {
  const [rows] = SHAPES.emb;
  return Array.from(
    { length: NAMED_ROWS },
    (_, j) => ((number * 17 + round * 5 + (j % 15) * 3) % rows) - (j % 2 === 1 ? rows : 0),
  );
}

function partOf(round: number): [number[], number[]] {
  const [rows, columns] = SHAPES.sum;
  return [
    Array.from({ length: PART_SHAPE[0] }, (_, j) => (round + 4 * j) % rows),
    Array.from({ length: PART_SHAPE[1] }, (_, j) => 5 * j - (j % 2 === 1 ? columns : 0)),
  ];
}

/** Does all rounds of a trainer, after it has taken part in the initialization. */
export async function train(client: Client, number: number, rounds: number): Promise<void> {
  if (await client.beginInit()) {
    const zeros = (name: keyof typeof SHAPES): Tensor => ({
      dtype: "float32",
      shape: [...SHAPES[name]],
      data: new Float32Array(elementsOf(SHAPES[name])),
    });
    await client.initParam("w", zeros("w"), { learningRate: 0.5 });
    await client.initParam("adam", zeros("adam"), { optimizer: "adam", learningRate: 0.01 });
    await client.initParam("emb", zeros("emb"), { learningRate: 0.5, sparse: true });
    await client.initParam("sum", zeros("sum"));
    await client.initParam("blend", zeros("blend"));
    await client.initParam("counts", new BigInt64Array(3));
    await client.finishInit();
  }
  for (let round = 0; round < rounds; round++) await trainOnce(client, round, number);
  await client.exitSteps();
}

async function trainOnce(client: Client, round: number, number: number): Promise<void> {
  const encoding = ENCODINGS[round % 3];
  const options = encoding === undefined ? {} : { encoding };
  const emb = {
    rows: rowsOf(round, number),
    values: wave([NAMED_ROWS, SHAPES.emb[1]], round, number, 64),
  };
  const w = wave(SHAPES.w, round, number, 64);
  await client.sendGrads({ w, adam: wave(SHAPES.adam, round, number, 97), emb }, options);
  const part: readonly IndexList[] = partOf(round);
  await client.pushFull("sum", wave(SHAPES.sum, round, number, 64), 1, 1, options);
  await client.pushAsPart("sum", wave(PART_SHAPE, round, number, 64), part, 1, 1, options);
  await client.pushFull("blend", wave(SHAPES.blend, round, number, 97), 0.75, 0.5, options);
  await client.pushAsPart("blend", wave(PART_SHAPE, round, number, 97), part, 0.5, 1, options);
  const one = new BigInt64Array(3);
  one[number - 1] = 1n;
  await client.pushFull("counts", one, 1, 1);
}

/** What a trainer reads in the end: all values, "blend" in both encodings, and a part of it. */
export async function readAll(client: Client): Promise<Buffer> {
  const tensors: Tensor[] = await client.getParams(NAMES);
  tensors.push(await client.pullFull("blend", { encoding: "bfloat16" }));
  tensors.push(await client.pullFull("blend", { encoding: "float16" }));
  tensors.push(await client.pullPart("blend", partOf(0)));
  return Buffer.concat(tensors.map(({ data }) => bytesOf(data)));
}

/** What `rounds` of `trainers` come to in the parameters in which the order does not matter. */
export function expectedValues(trainers: number, rounds: number): Map<string, Float32Array> {
  const w = new Float32Array(elementsOf(SHAPES.w));
  const emb = new Float32Array(elementsOf(SHAPES.emb));
  const sum = new Float32Array(elementsOf(SHAPES.sum));
  for (let number = 1; number <= trainers; number++) {
    for (let round = 0; round < rounds; round++) {
      wave(SHAPES.w, round, number, 64).data.forEach((value, i) => {
        w[i] = (w[i] as number) - 0.5 * value;
      });
      addRows(emb, round, number);
      addPart(sum, round, number);
    }
  }
  return new Map([
    ["w", w],
    ["emb", emb],
    ["sum", sum],
  ]);
}

function addRows(emb: Float32Array, round: number, number: number): void {
  const [rows, width] = SHAPES.emb;
  const values = wave([NAMED_ROWS, width], round, number, 64).data;
  rowsOf(round, number).forEach((row, j) => {
    const start = ((row + rows) % rows) * width;
    for (let i = 0; i < width; i++) {
      emb[start + i] = (emb[start + i] as number) - 0.5 * (values[j * width + i] as number);
    }
  });
}

function addPart(sum: Float32Array, round: number, number: number): void {
  const [, columns] = SHAPES.sum;
  wave(SHAPES.sum, round, number, 64).data.forEach((value, i) => {
    sum[i] = (sum[i] as number) + value;
  });
  const values = wave(PART_SHAPE, round, number, 64).data;
  const [partRows, partColumns] = partOf(round);
  partRows.forEach((row, y) => {
    partColumns.forEach((column, x) => {
      const i = row * columns + ((column + columns) % columns);
      sum[i] = (sum[i] as number) + (values[y * PART_SHAPE[1] + x] as number);
    });
  });
}
