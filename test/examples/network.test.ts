// Proves that the demo's gradients are those of its loss, by central differences in float64, and
// that its evaluation counts what it says. The images are random: no file is read.
import { describe, expect, test } from "vitest";
import { type Batch, CLASSES, PIXELS } from "../../examples/digits/dataset.ts";
import {
  differentiate,
  evaluate,
  HIDDEN,
  initialWeights,
  PARAMETERS,
  SHAPES,
  type Weights,
} from "../../examples/digits/network.ts";
import { Random } from "../../examples/digits/random.ts";

function inFloat64(weights: Weights): Weights {
  return {
    "hidden.weight": Float64Array.from(weights["hidden.weight"]),
    "hidden.bias": Float64Array.from(weights["hidden.bias"], (_, i) => 0.1 * Math.sin(i)),
    "output.weight": Float64Array.from(weights["output.weight"]),
    "output.bias": Float64Array.from(weights["output.bias"], (_, i) => 0.1 * Math.cos(i)),
  };
}

function randomBatch(images: number, seed: number): Batch {
  const random = new Random(seed);
  // Some pixels are exactly black, which the network's loops skip.
  const pixel = (): number => Math.max(0, random.uniform() - 0.3);
  return {
    images: Float64Array.from({ length: images * PIXELS }, pixel),
    labels: Uint8Array.from({ length: images }, () => random.below(CLASSES)),
  };
}

describe("the gradients", () => {
  const weights = inFloat64(initialWeights(3));
  const batch = randomBatch(5, 11);
  const { gradients } = differentiate(weights, batch);

  test.each(PARAMETERS)("of %s are the slopes of the loss", (name) => {
    const values = weights[name];
    const random = new Random(5);
    const checked = Math.min(values.length, 40);
    let nonZero = 0;
    for (let i = 0; i < checked; i++) {
      const at = checked === values.length ? i : random.below(values.length);
      const value = values[at] as number;
      const step = 1e-6;
      values[at] = value + step;
      const above = evaluate(weights, batch).loss;
      values[at] = value - step;
      const below = evaluate(weights, batch).loss;
      values[at] = value;
      const slope = (above - below) / (2 * step);
      const gradient = gradients[name][at] as number;
      expect(Math.abs(gradient - slope), `${name}[${at}]`).toBeLessThan(1e-7);
      if (Math.abs(gradient) > 1e-5) nonZero++;
    }
    // Zeros everywhere would agree with a network that ignores the parameter.
    expect(nonZero).toBeGreaterThan(checked / 4);
  });

  test("have the parameters' sizes and leave weights and images as they were", () => {
    const weightsBefore = PARAMETERS.map((name) => weights[name].slice());
    const imagesBefore = batch.images.slice();
    const again = differentiate(weights, batch);
    for (const name of PARAMETERS) {
      expect(again.gradients[name]).toEqual(gradients[name]);
      const size = SHAPES[name].reduce<number>((product, dimension) => product * dimension, 1);
      expect(again.gradients[name].length).toBe(size);
    }
    expect(PARAMETERS.map((name) => weights[name])).toEqual(weightsBefore);
    expect(batch.images).toEqual(imagesBefore);
  });

  test("are the mean over the images: a batch given twice has the same ones", () => {
    const twice: Batch = {
      images: Float64Array.from([...batch.images, ...batch.images]),
      labels: Uint8Array.from([...batch.labels, ...batch.labels]),
    };
    const doubled = differentiate(weights, twice);
    for (const name of PARAMETERS) {
      for (const [i, value] of gradients[name].entries()) {
        expect(Math.abs((doubled.gradients[name][i] as number) - value)).toBeLessThan(1e-12);
      }
    }
  });
});

describe("the evaluation", () => {
  test("of a network that always says 4 is the share of fours, at a loss of its certainty", () => {
    const weights: Weights = {
      "hidden.weight": new Float32Array(PIXELS * HIDDEN),
      "hidden.bias": new Float32Array(HIDDEN),
      "output.weight": new Float32Array(HIDDEN * CLASSES),
      "output.bias": Float32Array.from({ length: CLASSES }, (_, digit) => (digit === 4 ? 1 : 0)),
    };
    const labels = Uint8Array.from([4, 4, 4, 9]);
    const batch = { images: new Float32Array(labels.length * PIXELS).fill(0.5), labels };
    const { loss, accuracy } = evaluate(weights, batch);
    expect(accuracy).toBe(0.75);
    const sum = Math.log(Math.E + 9);
    expect(loss).toBeCloseTo(0.75 * (sum - 1) + 0.25 * sum, 6);
  });

  test("of weights that are not numbers has no loss that could pass for one", () => {
    const weights = initialWeights(1);
    weights["hidden.bias"].fill(Number.NaN);
    const images = new Float32Array(2 * PIXELS).fill(0.5);
    const { loss } = evaluate(weights, { images, labels: Uint8Array.from([1, 2]) });
    expect(loss).toBeNaN();
  });
});

test("initial weights follow the seed and have the variance 2 / inputs", () => {
  const weights = initialWeights(8);
  expect(initialWeights(8)).toEqual(weights);
  expect(initialWeights(9)).not.toEqual(weights);
  const values = Array.from(weights["hidden.weight"]);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + value * value, 0) / values.length;
  expect(Math.abs(mean)).toBeLessThan(0.001);
  expect(variance * PIXELS).toBeGreaterThan(1.95);
  expect(variance * PIXELS).toBeLessThan(2.05);
});
