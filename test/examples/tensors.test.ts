// Proves that weights survive the way to the server's tensors and back without a copy, and that
// tensors of another network are refused by name.
import { expect, test } from "vitest";
import { initialWeights, SHAPES } from "../../examples/digits/network.ts";
import { toTensors, toWeights } from "../../examples/digits/tensors.ts";
import { type TensorData, toTensor } from "../../src/protocol/index.ts";

test("weights become tensors of their shapes and come back as the same arrays", () => {
  const weights = initialWeights(1);
  const tensors = toTensors(weights);
  for (const [name, shape] of Object.entries(SHAPES)) {
    const tensor = toTensor(tensors[name as keyof typeof SHAPES]);
    expect(tensor).toMatchObject({ dtype: "float32", shape: [...shape] });
  }
  expect(toWeights(named(tensors))["hidden.weight"]).toBe(weights["hidden.weight"]);
});

test("a missing parameter, another type and another size are refused", () => {
  const [bias, ...others] = named(toTensors(initialWeights(1))).reverse();
  expect(bias?.name).toBe("output.bias");
  expect(() => toWeights(others)).toThrow(
    "output.bias: expected 10 elements of float32; received nothing",
  );
  const withBias = (data: TensorData): Named[] => [...others, { name: "output.bias", data }];
  expect(() => toWeights(withBias(new Float64Array(10)))).toThrow("received 10 in a Float64Array");
  expect(() => toWeights(withBias(new Float32Array(9)))).toThrow("received 9 in a Float32Array");
});

interface Named {
  readonly name: string;
  readonly data: TensorData;
}

function named(tensors: ReturnType<typeof toTensors>): Named[] {
  return Object.entries(tensors).map(([name, { data }]) => ({ name, data }));
}
