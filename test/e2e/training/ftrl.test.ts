// Proves that sparse gradients learn: ten logistic regressions, one for each digit, on which patterns of
// 2 × 2 pixels an image has. Each trainer reads and sends only the rows of the features in its batch, a
// tenth of all, and FTRL-Proximal keeps most weights at exactly zero.
import { afterEach, expect, test } from "vitest";
import {
  CLASSES,
  type Dataset,
  loadDigits,
  type Samples,
} from "../../../examples/digits/dataset.ts";
import { Random } from "../../../examples/digits/random.ts";
import type { Client } from "../../../src/client/index.ts";
import { TestJob } from "../../support/host.ts";
import { PATCHES, patchesOf } from "./patches.ts";

const TRAINERS = 2;
const IMAGES = 4_000;
const BATCH_SIZE = 10;
const DIGITS = Array.from({ length: CLASSES }, (_, digit) => digit);

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

test("logistic regression with FTRL on row-sparse gradients learns the digits", async () => {
  job = await TestJob.start({ shards: 2 });
  await job.host();
  const digits = await loadDigits();
  const clients = await Promise.all(
    Array.from({ length: TRAINERS }, (_, i) => job.trainer(`trainer-${i}`)),
  );
  const [first] = clients as [Client];
  await first.beginInit();
  const zeros = {
    dtype: "float32",
    shape: [PATCHES, CLASSES],
    data: new Float32Array(PATCHES * CLASSES),
  } as const;
  await first.initParam("patches", zeros, {
    optimizer: "ftrl",
    learningRate: 0.1,
    l1: 1,
    sparse: true,
  });
  await first.finishInit();

  const images = imageOrder(digits.train).subarray(0, IMAGES);
  const share = IMAGES / TRAINERS;
  const rows = await Promise.all(
    clients.map((client, i) =>
      train(client, digits.train, images.subarray(i * share, (i + 1) * share)),
    ),
  );
  const perPush = rows.reduce((sum, count) => sum + count) / (IMAGES / BATCH_SIZE);
  expect(perPush).toBeLessThan(PATCHES / 8);

  const { data } = await first.pullFull("patches");
  const weights = Float64Array.from(data, Number);
  expect(accuracy(weights, digits)).toBeGreaterThan(0.91);
  const zero = weights.filter((weight) => weight === 0).length / weights.length;
  expect(zero).toBeGreaterThan(0.6);
  expect(zero).toBeLessThan(0.9);
});

/** Trains on these images in batches; gives how many rows it has sent in all. */
async function train(client: Client, samples: Samples, images: Uint16Array): Promise<number> {
  let sent = 0;
  for (let start = 0; start < images.length; start += BATCH_SIZE) {
    const batch = Array.from(images.subarray(start, start + BATCH_SIZE), (image) => ({
      features: patchesOf(samples, image),
      label: samples.labels[image] as number,
    }));
    const rows = [...new Set(batch.flatMap(({ features }) => features))];
    const placeOf = new Map(rows.map((row, place) => [row, place]));
    const { data } = await client.pullPart("patches", [rows, DIGITS]);
    const weights = Float64Array.from(data, Number);
    const values = new Float32Array(weights.length);
    for (const { features, label } of batch) {
      const places = features.map((feature) => placeOf.get(feature) as number);
      for (const [digit, score] of scores(weights, places).entries()) {
        const error = 1 / (1 + Math.exp(-score)) - (digit === label ? 1 : 0);
        for (const place of places) {
          const at = place * CLASSES + digit;
          values[at] = (values[at] as number) + error;
        }
      }
    }
    await client.sendGrads({ patches: { rows, values } });
    sent += rows.length;
  }
  return sent;
}

/** For each digit the sum of its weights in these rows. */
function scores(weights: Float64Array, rows: readonly number[]): number[] {
  return DIGITS.map((digit) =>
    rows.reduce((sum, row) => sum + (weights[row * CLASSES + digit] as number), 0),
  );
}

/** Share of the test images whose digit has the highest score. */
function accuracy(weights: Float64Array, { test: samples }: Dataset): number {
  const right = samples.labels.filter((label, image) => {
    const sums = scores(weights, patchesOf(samples, image));
    return sums.indexOf(Math.max(...sums)) === label;
  });
  return right.length / samples.labels.length;
}

/** The numbers of all images, in an order that is no order of digits. */
function imageOrder({ labels }: Samples): Uint16Array {
  const order = Uint16Array.from(labels, (_, image) => image);
  new Random(3).shuffle(order);
  return order;
}
