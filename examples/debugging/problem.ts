import { Random } from "../digits/random.ts";

/** Features of a sample; the model has one weight more, the offset. */
export const FEATURES = 8;

/** A sample: its features, and to which of two classes it belongs. */
export interface Sample {
  readonly x: Float64Array;
  readonly label: 0 | 1;
}

/** Two classes that a plane divides, with some noise: easy, but not trivial. */
export class Problem {
  readonly #plane: Float64Array;
  readonly #random: Random;

  /** Makes a stream of samples; every seed gives other samples of the same problem. */
  constructor(seed: number) {
    const fixed = new Random(7);
    this.#plane = Float64Array.from({ length: FEATURES }, () => fixed.normal());
    this.#random = new Random(seed);
  }

  /** Returns the next samples. */
  samples(count: number): Sample[] {
    return Array.from({ length: count }, () => {
      const x = Float64Array.from({ length: FEATURES }, () => this.#random.normal());
      const side = x.reduce((sum, value, i) => sum + value * (this.#plane[i] ?? 0), 0);
      return { x, label: side + 0.3 * this.#random.normal() > 0 ? 1 : 0 };
    });
  }
}

/** Returns the probability that a sample is of class 1, by logistic regression. */
export function predict(weights: ArrayLike<number>, { x }: Sample): number {
  let sum = weights[FEATURES] ?? 0;
  for (const [i, value] of x.entries()) sum += value * (weights[i] ?? 0);
  return 1 / (1 + Math.exp(-sum));
}

/** Returns the mean loss of some samples, and its gradient by the weights. */
export function lossAndGradient(
  weights: ArrayLike<number>,
  samples: readonly Sample[],
): { readonly loss: number; readonly gradient: Float32Array } {
  const gradient = new Float32Array(FEATURES + 1);
  let loss = 0;
  for (const sample of samples) {
    const p = predict(weights, sample);
    const error = (p - sample.label) / samples.length;
    loss -= Math.log(Math.max(1e-12, sample.label === 1 ? p : 1 - p)) / samples.length;
    for (const [i, value] of sample.x.entries()) gradient[i] = (gradient[i] ?? 0) + error * value;
    gradient[FEATURES] = (gradient[FEATURES] ?? 0) + error;
  }
  return { loss: Number.isFinite(gradient[0]) ? loss : Number.NaN, gradient };
}

/** Returns the share of samples that a model classifies correctly. */
export function accuracy(weights: ArrayLike<number>, samples: readonly Sample[]): number {
  const right = samples.filter((sample) => predict(weights, sample) > 0.5 === (sample.label === 1));
  return right.length / samples.length;
}
