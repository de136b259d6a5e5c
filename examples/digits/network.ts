import { type Batch, CLASSES, PIXELS } from "./dataset.ts";
import { Random } from "./random.ts";

/** Neurons between the pixels and the digits. */
export const HIDDEN = 128;

/** The network's parameters and their shapes; weights are stored with the inputs as rows. */
export const SHAPES = {
  "hidden.weight": [PIXELS, HIDDEN],
  "hidden.bias": [HIDDEN],
  "output.weight": [HIDDEN, CLASSES],
  "output.bias": [CLASSES],
} as const satisfies Record<string, readonly number[]>;

/** Name of a parameter, on the server and in model files. */
export type ParameterName = keyof typeof SHAPES;

/** All names, in the order of {@link SHAPES}. */
export const PARAMETERS: readonly ParameterName[] = Object.keys(SHAPES) as ParameterName[];

/**
 * A value for each element of each parameter: the weights themselves, or gradients of them.
 * Trainers use float32; the gradient check in the tests uses float64.
 */
export type Weights = Readonly<Record<ParameterName, Float32Array | Float64Array>>;

/** The score of the weights on a batch. */
export interface Evaluation {
  /** Mean cross-entropy in nats; ln 10 ≈ 2.3 for pure guessing. */
  readonly loss: number;
  /** Share of images whose digit got the highest probability, 0 to 1. */
  readonly accuracy: number;
}

interface Activations {
  /** Activations after the ReLU: `HIDDEN` per image. */
  readonly hidden: Float32Array | Float64Array;
  /** Outputs of the softmax: `CLASSES` per image. */
  readonly probabilities: Float32Array | Float64Array;
}

/** Makes new weights: normal with variance 2 / inputs (He et al.), biases 0. */
export function initialWeights(seed: number): Weights {
  const random = new Random(seed);
  const layer = (inputs: number, outputs: number): Float32Array =>
    Float32Array.from({ length: inputs * outputs }, () => random.normal() * Math.sqrt(2 / inputs));
  return {
    "hidden.weight": layer(PIXELS, HIDDEN),
    "hidden.bias": new Float32Array(HIDDEN),
    "output.weight": layer(HIDDEN, CLASSES),
    "output.bias": new Float32Array(CLASSES),
  };
}

/** Returns loss and accuracy of the weights on a batch. */
export function evaluate(weights: Weights, batch: Batch): Evaluation {
  return judge(forward(weights, batch).probabilities, batch.labels);
}

/** Returns loss and accuracy on a batch, and the gradients of that loss, in arrays of their own. */
export function differentiate(
  weights: Weights,
  batch: Batch,
): Evaluation & { readonly gradients: Weights } {
  const { hidden, probabilities } = forward(weights, batch);
  const evaluation = judge(probabilities, batch.labels);

  // Softmax and cross-entropy together: probability − 1 for the right digit, probability for others.
  const outputError = probabilities;
  const images = batch.labels.length;
  for (let image = 0; image < images; image++) {
    const right = image * CLASSES + (batch.labels[image] as number);
    outputError[right] = (outputError[right] as number) - 1;
  }
  scale(outputError, 1 / images);

  const hiddenError = backThrough(weights["output.weight"], outputError, hidden);
  const gradients = {
    "hidden.weight": outerProducts(batch.images, hiddenError, PIXELS, HIDDEN),
    "hidden.bias": sumOfRows(hiddenError, HIDDEN),
    "output.weight": outerProducts(hidden, outputError, HIDDEN, CLASSES),
    "output.bias": sumOfRows(outputError, CLASSES),
  };
  return { ...evaluation, gradients };
}

function forward(weights: Weights, batch: Batch): Activations {
  const hidden = affine(batch.images, weights["hidden.weight"], weights["hidden.bias"]);
  for (let i = 0; i < hidden.length; i++) if ((hidden[i] as number) < 0) hidden[i] = 0;
  const probabilities = affine(hidden, weights["output.weight"], weights["output.bias"]);
  for (let start = 0; start < probabilities.length; start += CLASSES) {
    softmax(probabilities.subarray(start, start + CLASSES));
  }
  return { hidden, probabilities };
}

function judge(probabilities: Activations["probabilities"], labels: Uint8Array): Evaluation {
  let loss = 0;
  let correct = 0;
  for (let image = 0; image < labels.length; image++) {
    const row = probabilities.subarray(image * CLASSES, (image + 1) * CLASSES);
    const label = labels[image] as number;
    // A probability can round to 0, and a loss must stay finite.
    loss -= Math.log(Math.max(row[label] as number, 1e-30));
    if (indexOfLargest(row) === label) correct++;
  }
  return { loss: loss / labels.length, accuracy: correct / labels.length };
}

function indexOfLargest(row: Float32Array | Float64Array): number {
  let largest = 0;
  for (let i = 1; i < row.length; i++) {
    if ((row[i] as number) > (row[largest] as number)) largest = i;
  }
  return largest;
}

/** Returns inputs · weight + bias for each row of inputs. */
function affine(
  inputs: Float32Array | Float64Array,
  weight: Float32Array | Float64Array,
  bias: Float32Array | Float64Array,
): Float32Array | Float64Array {
  const outputs = bias.length;
  const size = weight.length / outputs;
  const rows = inputs.length / size;
  const result = zerosLike(weight, rows * outputs);
  for (let row = 0; row < rows; row++) {
    const to = row * outputs;
    for (let output = 0; output < outputs; output++) result[to + output] = bias[output] as number;
    for (let input = 0; input < size; input++) {
      const value = inputs[row * size + input] as number;
      // Four of five pixels are black, and half of the hidden neurons are silent.
      if (value === 0) continue;
      const from = input * outputs;
      for (let output = 0; output < outputs; output++) {
        result[to + output] =
          (result[to + output] as number) + value * (weight[from + output] as number);
      }
    }
  }
  return result;
}

/** Returns the error of each hidden neuron: 0 where it was silent. */
function backThrough(
  weight: Float32Array | Float64Array,
  outputError: Float32Array | Float64Array,
  hidden: Float32Array | Float64Array,
): Float32Array | Float64Array {
  const result = zerosLike(weight, hidden.length);
  for (let i = 0; i < hidden.length; i++) {
    if (hidden[i] === 0) continue;
    const neuron = i % HIDDEN;
    const image = (i - neuron) / HIDDEN;
    let sum = 0;
    for (let output = 0; output < CLASSES; output++) {
      sum +=
        (weight[neuron * CLASSES + output] as number) *
        (outputError[image * CLASSES + output] as number);
    }
    result[i] = sum;
  }
  return result;
}

/** Returns the sum over rows of inputᵀ · error: the gradient of a weight. */
function outerProducts(
  inputs: Float32Array | Float64Array,
  errors: Float32Array | Float64Array,
  inputSize: number,
  errorSize: number,
): Float32Array | Float64Array {
  const result = zerosLike(errors, inputSize * errorSize);
  const rows = errors.length / errorSize;
  for (let row = 0; row < rows; row++) {
    const from = row * errorSize;
    for (let input = 0; input < inputSize; input++) {
      const value = inputs[row * inputSize + input] as number;
      if (value === 0) continue;
      const to = input * errorSize;
      for (let i = 0; i < errorSize; i++) {
        result[to + i] = (result[to + i] as number) + value * (errors[from + i] as number);
      }
    }
  }
  return result;
}

function sumOfRows(rows: Float32Array | Float64Array, size: number): Float32Array | Float64Array {
  const result = zerosLike(rows, size);
  for (let i = 0; i < rows.length; i++) {
    result[i % size] = (result[i % size] as number) + (rows[i] as number);
  }
  return result;
}

function softmax(row: Float32Array | Float64Array): void {
  let largest = Number.NEGATIVE_INFINITY;
  for (const value of row) largest = Math.max(largest, value);
  let sum = 0;
  for (let i = 0; i < row.length; i++) {
    // The largest is subtracted, so that no exponential overflows.
    const exponential = Math.exp((row[i] as number) - largest);
    row[i] = exponential;
    sum += exponential;
  }
  scale(row, 1 / sum);
}

function scale(values: Float32Array | Float64Array, factor: number): void {
  for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) * factor;
}

function zerosLike(
  model: Float32Array | Float64Array,
  length: number,
): Float32Array | Float64Array {
  return model instanceof Float64Array ? new Float64Array(length) : new Float32Array(length);
}
