// Proves that a request for as many parameters as are named in it, and its reply, fit into the broker's largest
// message, however long their names, shapes and configurations are.
import { expect, test } from "vitest";
import { encodeMessage, toSharedConfig } from "../../src/protocol/index.ts";
import { PAYLOAD_BYTES_MIN } from "../../src/protocol/limits.ts";
import { parametersPerRequest } from "../../src/protocol/messages/lifecycle-messages.ts";

const table = Array.from({ length: 32 }, (_, i) => [i && 2 ** 40 + i, 0.1 + i / 7]);
const LARGEST = {
  name: "n".repeat(200),
  dtype: "bfloat16",
  shape: new Array(32).fill(2 ** 40),
  config: toSharedConfig({
    optimizer: { name: "amsgrad", beta1: 0.91, beta2: 0.9991, epsilon: 1.1e-7 },
    learningRate: {
      schedule: "step",
      table: table as [number, number][],
      warmup: { steps: 2 ** 40, from: 0.3 },
    },
    ...{ l1: 0.1, l2: 0.1, l2Mode: "decoupled", clipNorm: 0.3, clipValue: 0.3 },
    ...{ gradientScale: 0.3, stalenessScaling: true, allowNonFinite: true },
  }),
  epoch: 2 ** 40,
  ready: true,
  layout: {
    elements: 2 ** 50,
    blockElements: 2 ** 40,
    blocks: 2 ** 40,
    firstShard: 2,
    shards: 256,
  },
};

test("the largest parameters fit", () => {
  for (const bytes of [PAYLOAD_BYTES_MIN, 300_000, 1024 * 1024, 8 * 1024 * 1024]) {
    const parameters = new Array(parametersPerRequest(bytes)).fill(LARGEST);
    expect(encodeMessage({ parameters }).length).toBeLessThanOrEqual(bytes - 60 * 1024);
  }
});

test("at most 256, and one at least", () => {
  expect(parametersPerRequest(Number.POSITIVE_INFINITY)).toBe(256);
  expect(parametersPerRequest(1024 * 1024)).toBe(256);
  expect(parametersPerRequest(PAYLOAD_BYTES_MIN)).toBe(96);
  expect(parametersPerRequest(1)).toBe(1);
});
