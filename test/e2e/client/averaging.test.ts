// Proves through a real host that trainers which train on their own and average, elastically or by
// differences, come to one point; and that learning rates are divided by the versions a gradient is
// behind, where the parameter says so.
import { afterEach, expect, test } from "vitest";
import { AsyncDifference, type Client, elasticAverage } from "../../../src/client/index.ts";
import { TestJob } from "../../support/host.ts";

/** What both trainers look for: the least of the sum of squares. */
const GOAL = [3, -2, 0.5];

let job: TestJob;

afterEach(() => job.remove());

async function start(config = {}): Promise<[Client, Client]> {
  job = await TestJob.start();
  await job.host();
  const [a, b] = [await job.trainer("a"), await job.trainer("b")];
  await a.beginInit();
  await a.initParam("w", new Float32Array(GOAL.length), config);
  await a.finishInit();
  return [a, b];
}

/** Some steps of gradient descent on the sum of squares, from where it is. */
function train(local: Float32Array | Float64Array): void {
  for (let step = 0; step < 4; step++) {
    for (const [i, goal] of GOAL.entries()) local[i] = (local[i] as number) * 0.75 + goal * 0.25;
  }
}

test("two trainers and the center come to one point by elastic averaging", async () => {
  const clients = await start();
  const locals = [Float32Array.of(100, 100, 100), Float32Array.of(-50, 70, 0)];
  await Promise.all(
    locals.map(async (local, i) => {
      for (let round = 0; round < 30; round++) {
        train(local);
        await elasticAverage(clients[i as 0 | 1], "w", local, 0.5);
      }
    }),
  );
  const center = await clients[0].pullFull("w");
  for (const values of [...locals, center.data]) {
    for (const [i, goal] of GOAL.entries()) expect(values[i]).toBeCloseTo(goal, 3);
  }
});

test("two trainers and the master come to one point by differences", async () => {
  const clients = await start();
  const trainers = [
    await AsyncDifference.begin(clients[0], "w"),
    await AsyncDifference.begin(clients[1], "w"),
  ];
  // Each adds to what the other has added since: they overshoot, less each time.
  for (let round = 0; round < 40; round++) {
    for (const trainer of trainers) {
      train(trainer.local);
      await trainer.exchange();
    }
  }
  const master = await clients[0].pullFull("w");
  for (const { local } of trainers) {
    for (const [i, goal] of GOAL.entries()) expect(local[i]).toBeCloseTo(goal, 3);
  }
  expect(master.data).toEqual(trainers[1]?.local);
});

test("a gradient counts the less the more versions it is behind what its trainer has read", async () => {
  const [a, b] = await start({ learningRate: 1, stalenessScaling: true });
  const one = { w: new Float32Array(GOAL.length).fill(1) };
  const first = async (): Promise<unknown> => (await b.pullPart("w", [[0]])).data[0];
  // Never read: nothing is known of how far it is behind.
  await a.sendGrads(one);
  await b.sendGrads(one);
  expect(await first()).toBe(-2);
  await a.pullFull("w");
  for (let i = 0; i < 4; i++) {
    await b.sendGrads(one);
    await first();
  }
  expect(await first()).toBe(-6);
  // 4 versions behind, then 5: a quarter and a fifth of the rate.
  await a.sendGrads(one);
  expect(await first()).toBe(-6.25);
  await a.sendGrads(one);
  expect(await first()).toBeCloseTo(-6.45, 5);
  await a.pullPart("w", [[2]]);
  await a.sendGrads(one);
  expect(await first()).toBeCloseTo(-7.45, 5);
});
