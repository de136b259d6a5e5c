// Proves that trainers can work on parts of parameters: the images of digits, a matrix of brightnesses,
// are factored into images × FACTORS and FACTORS × pixels by least squares (block coordinate descent: the
// rows of one side, half of the factors at a time). Each trainer pulls and overwrites its own rows, every
// second one, and only the factors it has solved for.
import { afterEach, expect, test } from "vitest";
import { loadDigits, PIXELS } from "../../../examples/digits/dataset.ts";
import { Random } from "../../../examples/digits/random.ts";
import type { Client } from "../../../src/client/index.ts";
import { TestJob } from "../../support/host.ts";
import { type Factor, residualShare, solveRows, transposed } from "./least-squares.ts";

const IMAGES = 300;
const FACTORS = 16;
const ROUNDS = 6;
const TRAINERS = 2;
const HALVES = [range(0, FACTORS / 2), range(FACTORS / 2, FACTORS)] as const;

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

test("two trainers factor the images of digits, each in its rows", async () => {
  job = await TestJob.start({ shards: 2 });
  await job.host();
  const { train } = await loadDigits();
  const matrix = Float64Array.from(train.pixels.subarray(0, IMAGES * PIXELS), (p) => p / 255);
  const clients = await Promise.all(
    Array.from({ length: TRAINERS }, (_, i) => job.trainer(`trainer-${i}`)),
  );
  const [first] = clients as [Client];
  await initialize(first);

  const sides = [
    { own: "images", other: "pixels", rows: IMAGES, matrix },
    { own: "pixels", other: "images", rows: PIXELS, matrix: transposed(matrix, PIXELS) },
  ] as const;
  const shares = [await currentShare(first, matrix)];
  for (let round = 0; round < ROUNDS; round++) {
    for (const side of sides) {
      for (const half of HALVES) {
        await Promise.all(
          clients.map((client, i) => solveShare(client, side, everySecond(side.rows, i), half)),
        );
      }
    }
    shares.push(await currentShare(first, matrix));
  }
  // Each round can only come nearer, but for the rounding of float32.
  for (const [round, share] of shares.slice(1).entries()) {
    expect(share).toBeLessThan((shares[round] as number) * (1 + 1e-6));
  }
  expect(shares[0]).toBeGreaterThan(0.9);
  expect(shares.at(-1)).toBeLessThan(0.105);
});

interface Side {
  readonly own: string;
  readonly other: string;
  readonly matrix: Float64Array;
}

/** Solves rows of one side for some of the factors, the other side and the other factors as they are. */
async function solveShare(
  client: Client,
  { own, other, matrix }: Side,
  rows: readonly number[],
  factors: readonly number[],
): Promise<void> {
  const [ownRows, otherRows] = await Promise.all([
    client.pullPart(own, [rows, range(0, FACTORS)]),
    client.pullFull(other),
  ]);
  const solved = solveRows({
    matrix,
    rows,
    own: toFactor(ownRows.data),
    other: toFactor(otherRows.data),
    factors,
  });
  await client.pushAsPart(own, Float32Array.from(solved), [rows, factors], 0, 1);
}

async function initialize(client: Client): Promise<void> {
  const random = new Random(5);
  await client.beginInit();
  for (const [name, rows] of [
    ["images", IMAGES],
    ["pixels", PIXELS],
  ] as const) {
    const data = Float32Array.from({ length: rows * FACTORS }, () => 0.01 * random.normal());
    await client.initParam(name, { dtype: "float32", shape: [rows, FACTORS], data });
  }
  await client.finishInit();
}

async function currentShare(client: Client, matrix: Float64Array): Promise<number> {
  const [images, pixels] = await client.getParams(["images", "pixels"]);
  if (images === undefined || pixels === undefined) throw new Error("expected two parameters");
  return residualShare(matrix, toFactor(images.data), toFactor(pixels.data));
}

function toFactor(data: ArrayLike<number | bigint>): Factor {
  return { values: Float64Array.from(data as ArrayLike<number>), width: FACTORS };
}

function everySecond(count: number, first: number): number[] {
  return range(0, count).filter((row) => row % TRAINERS === first);
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
