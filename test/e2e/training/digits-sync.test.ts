// Proves that trainers who keep step learn: two of them train the digits' network with Adam on the mean
// of their gradients, on a real broker and host. Each step changes each block once, and the weights are
// those that one trainer would get from the two batches together, but for rounding.
import { afterEach, expect, test } from "vitest";
import { batches, type Dataset, loadDigits } from "../../../examples/digits/dataset.ts";
import {
  differentiate,
  initialWeights,
  PARAMETERS,
  type Weights,
} from "../../../examples/digits/network.ts";
import { toWeights } from "../../../examples/digits/tensors.ts";
import type { Client } from "../../../src/client/index.ts";
import { toConfig } from "../../../src/protocol/config/index.ts";
import { ReferenceBlock } from "../../actors/fold/reference/block.ts";
import { TestJob } from "../../support/host.ts";
import { LASTING_LEASE_MS } from "../../support/limits.ts";
import { evaluateDigits, initializeDigits, trainDigits } from "./digits-trainer.ts";

const ADAM = { optimizer: "adam", learningRate: 0.005 } as const;
const SEEDS = [1, 2] as const;
const STEPS = 60;
const BATCH_SIZE = 40;

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

test("two trainers in steps learn the digits with Adam", async () => {
  const { digits, clients, first } = await start();
  const before = await evaluateDigits(first, digits);
  expect(before.accuracy).toBeLessThan(0.3);
  await trainTogether(clients, digits, STEPS);
  // A member of the steps reads what all that it has ended have come to.
  const after = await evaluateDigits(first, digits);
  expect(after.accuracy).toBeGreaterThan(0.88);
  expect(after.loss).toBeLessThan(0.4);
  const tensors = await first.getParams(PARAMETERS);
  // One version of the first values, one of each step.
  expect(tensors.map(({ version }) => version)).toEqual(PARAMETERS.map(() => 1 + STEPS));
});

test("steps of two trainers are steps of both batches together", async () => {
  const { digits, clients, first } = await start();
  const steps = 5;
  await trainTogether(clients, digits, steps);
  const trained = toWeights(await first.getParams(PARAMETERS));
  const expected = trainAlone(digits, steps);
  for (const name of PARAMETERS) {
    const apart = Array.from(trained[name], (weight, i) =>
      Math.abs(weight - (expected[name][i] as number)),
    );
    // Each step moves a weight by up to 0.005; float32 rounds weights of this size to 3e-8.
    expect(apart.reduce((most, distance) => Math.max(most, distance))).toBeLessThan(1e-6);
  }
});

/** A job whose weights are initialized, and a client for each seed. */
async function start(): Promise<{ digits: Dataset; clients: Client[]; first: Client }> {
  job = await TestJob.start({
    shards: 2,
    synchronization: { mode: "sync", trainers: SEEDS.length },
    leaseMs: LASTING_LEASE_MS,
  });
  await job.host();
  const clients = await Promise.all(SEEDS.map((seed) => job.trainer(`trainer-${seed}`)));
  const [first] = clients as [Client];
  await initializeDigits(first, ADAM);
  return { digits: await loadDigits(), clients, first };
}

async function trainTogether(
  clients: readonly Client[],
  digits: Dataset,
  steps: number,
): Promise<void> {
  const work = { digits, batchSize: BATCH_SIZE, steps };
  await Promise.all(
    clients.map((client, i) => trainDigits({ ...work, client, seed: SEEDS[i] as number })),
  );
}

/** The weights after steps on the mean of all trainers' gradients, by the reference of the rules. */
function trainAlone(digits: Dataset, steps: number): Weights {
  let weights = initialWeights(1);
  const config = toConfig(ADAM);
  const blocks = new Map(
    PARAMETERS.map((name) => [name, new ReferenceBlock(config, "float32", weights[name])]),
  );
  const sources = SEEDS.map((seed) => batches(digits.train, BATCH_SIZE, seed));
  for (let step = 0; step < steps; step++) {
    const all = sources.map((source) => differentiate(weights, source.next().value).gradients);
    weights = Object.fromEntries(
      PARAMETERS.map((name) => {
        const block = blocks.get(name) as ReferenceBlock;
        const mean = Float64Array.from(weights[name], (_, i) =>
          all.reduce((sum, gradients) => sum + (gradients[name][i] as number) / all.length, 0),
        );
        block.push(mean, { norm: 1 });
        return [name, Float32Array.from(block.column(0), ({ value }) => value)];
      }),
    ) as Record<keyof Weights, Float32Array>;
  }
  return weights;
}
