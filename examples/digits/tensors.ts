import type { Tensor, TensorData } from "nats-pserver";
import { PARAMETERS, type ParameterName, SHAPES, type Weights } from "./network.ts";

/** Makes tensors of weights or gradients for the client; the data is not copied. */
export function toTensors(weights: Weights): Record<ParameterName, Tensor> {
  const tensor = (name: ParameterName): Tensor => {
    const data = weights[name];
    const dtype = data instanceof Float64Array ? "float64" : "float32";
    return { dtype, shape: SHAPES[name], data };
  };
  return recordOf(tensor);
}

/**
 * Finds the network's weights among named tensors; the data is not copied.
 * @throws Error if a parameter is missing, is not float32 or has another size.
 */
export function toWeights(
  tensors: Iterable<{ readonly name: string; readonly data: TensorData }>,
): Weights {
  const dataOf = new Map([...tensors].map(({ name, data }) => [name, data]));
  return recordOf((name) => {
    const data = dataOf.get(name);
    const size = SHAPES[name].reduce<number>((product, dimension) => product * dimension, 1);
    if (data instanceof Float32Array && data.length === size) return data;
    const received =
      data === undefined ? "nothing" : `${data.length} in a ${data.constructor.name}`;
    throw new Error(`${name}: expected ${size} elements of float32; received ${received}`);
  });
}

function recordOf<T>(make: (name: ParameterName) => T): Record<ParameterName, T> {
  return Object.fromEntries(PARAMETERS.map((name) => [name, make(name)])) as Record<
    ParameterName,
    T
  >;
}
