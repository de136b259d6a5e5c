// Proves that every process of the demo sees the same split of the real digits, and that no image is in both
// parts. That the network learns from them is proved by the demo itself, in test/e2e/examples.test.ts.
import { createHash } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type Batch,
  batches,
  CLASSES,
  type Dataset,
  loadDigits,
  PIXELS,
  type Samples,
  splitDigits,
} from "../../examples/digits/dataset.ts";

function imagesOf(samples: Samples): string[] {
  return Array.from(samples.labels, (_, i) =>
    Buffer.from(samples.pixels.subarray(i * PIXELS, (i + 1) * PIXELS)).toString("base64"),
  );
}

function countsOf(samples: Samples): number[] {
  const counts = new Array<number>(CLASSES).fill(0);
  for (const label of samples.labels) counts[label] = (counts[label] as number) + 1;
  return counts;
}

describe("the digits", () => {
  let digits: Dataset;
  beforeAll(async () => {
    digits = await loadDigits();
  });

  test("are 8,500 and 1,500 different images, none in both parts", () => {
    expect(digits.train.labels.length).toBe(8500);
    expect(digits.test.labels.length).toBe(1500);
    expect(digits.train.pixels.length).toBe(8500 * PIXELS);
    const all = [...imagesOf(digits.train), ...imagesOf(digits.test)];
    expect(new Set(all).size).toBe(10_000);
  });

  test("are split in the same proportion for each digit", () => {
    const test = countsOf(digits.test);
    const train = countsOf(digits.train);
    for (let digit = 0; digit < CLASSES; digit++) {
      const images = (test[digit] as number) + (train[digit] as number);
      expect(Math.abs((test[digit] as number) - 0.15 * images)).toBeLessThanOrEqual(1);
    }
  });

  test("are split as they always were", () => {
    // Accuracies are only comparable between runs that test with the same images.
    const hash = createHash("sha256").update(digits.test.pixels).update(digits.test.labels);
    expect(hash.digest("hex")).toMatchInlineSnapshot(
      `"a6cf9071c3c15cfaf8fbe1a2ac52283afb79b7f3c46c362dffa5b8873ff871fa"`,
    );
  });
});

describe("a split", () => {
  const classes = Array.from({ length: CLASSES }, (_, digit) =>
    new Uint8Array((digit + 3) * PIXELS).fill(digit),
  );

  test("depends on its seed alone", () => {
    const numbered = classes.map((pixels) => pixels.map((_, i) => Math.floor(i / PIXELS)));
    expect(splitDigits(numbered, 0.3, 5)).toEqual(splitDigits(numbered, 0.3, 5));
    expect(splitDigits(numbered, 0.3, 5)).not.toEqual(splitDigits(numbered, 0.3, 6));
  });

  test("keeps each image with its label", () => {
    const { train, test } = splitDigits(classes, 0.3, 1);
    for (const part of [train, test]) {
      for (const [i, label] of part.labels.entries()) expect(part.pixels[i * PIXELS]).toBe(label);
    }
  });

  test("adds up to the wanted share", () => {
    const images = classes.reduce((sum, pixels) => sum + pixels.length / PIXELS, 0);
    expect(splitDigits(classes, 0.2, 1).test.labels.length).toBe(Math.round(images * 0.2));
  });
});

describe("batches", () => {
  const samples: Samples = {
    labels: Uint8Array.from({ length: 10 }, (_, i) => i),
    pixels: Uint8Array.from({ length: 10 * PIXELS }, (_, i) => Math.floor(i / PIXELS)),
  };

  test("show every image once an epoch, in the seed's order, as numbers from 0 to 1", () => {
    const epoch = (seed: number): Batch[] => {
      const source = batches(samples, 5, seed);
      return [source.next().value, source.next().value];
    };
    const labels = epoch(1).flatMap((batch) => [...batch.labels]);
    expect(labels.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(epoch(1)).toEqual(epoch(1));
    expect(epoch(1)).not.toEqual(epoch(2));
    for (const batch of epoch(1)) {
      for (const [row, label] of batch.labels.entries()) {
        expect(batch.images[row * PIXELS]).toBeCloseTo(label / 255, 6);
      }
    }
  });

  test("come in a new order each epoch", () => {
    const source = batches(samples, 10, 4);
    expect(source.next().value.labels).not.toEqual(source.next().value.labels);
  });
});
