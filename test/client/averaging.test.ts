// Proves the averaging rules against numbers computed by hand, with a master in memory.
import { expect, test } from "vitest";
import { AsyncDifference, type Averaged, elasticAverage } from "../../src/client/averaging.ts";
import type { Tensor } from "../../src/protocol/tensor.ts";

/** One parameter, read and added to as a client does. */
class Master implements Averaged {
  readonly data: Float32Array;
  failing: "pullFull" | "pushFull" | undefined;

  constructor(...values: number[]) {
    this.data = Float32Array.from(values);
  }

  async pullFull(_name: string, options: { into?: unknown } = {}): Promise<Tensor> {
    if (this.failing === "pullFull") throw new Error("no pull");
    const data = options.into instanceof Float32Array ? options.into : new Float32Array(2);
    data.set(this.data);
    return { dtype: "float32", shape: [this.data.length], data };
  }

  async pushFull(_name: string, tensor: unknown, alpha: number, beta: number): Promise<void> {
    if (this.failing === "pushFull") throw new Error("no push");
    this.data.forEach((value, i) => {
      this.data[i] = alpha * value + beta * Number((tensor as Float32Array)[i]);
    });
  }
}

test("elastic averaging moves both towards each other", async () => {
  const master = new Master(10, -2);
  const local = Float32Array.of(2, 6);
  // diff = 0.25 · (local − center) = (−2, 2)
  await elasticAverage(master, "w", local, 0.25);
  expect(local).toEqual(Float32Array.of(4, 4));
  expect(master.data).toEqual(Float32Array.of(8, 0));
  // diff = 0.25 · (−4, 4) = (−1, 1)
  await elasticAverage(master, "w", local, 0.25);
  expect(local).toEqual(Float32Array.of(5, 3));
  expect(master.data).toEqual(Float32Array.of(7, 1));
  await elasticAverage(master, "w", local, 1);
  expect(local).toEqual(Float32Array.of(7, 1));
  expect(master.data).toEqual(Float32Array.of(5, 3));
});

test.each(["pullFull", "pushFull"] as const)(
  "elastic averaging that fails in %s changes nothing",
  async (call) => {
    const master = new Master(10, -2);
    const local = Float32Array.of(2, 6);
    master.failing = call;
    await expect(elasticAverage(master, "w", local, 0.25)).rejects.toThrow("no pu");
    expect(local).toEqual(Float32Array.of(2, 6));
    expect(master.data).toEqual(Float32Array.of(10, -2));
  },
);

test.each([-0.1, 1.5, Number.NaN])("elastic averaging refuses alpha %s", async (alpha) => {
  await expect(
    elasticAverage(new Master(1, 1), "w", Float32Array.of(2, 2), alpha),
  ).rejects.toMatchObject({ code: "BAD_VALUE" });
});

test("differences of two trainers add up in the master", async () => {
  const master = new Master(1, 2);
  const a = await AsyncDifference.begin(master, "w");
  const b = await AsyncDifference.begin(master, "w");
  expect(a.local).toEqual(Float32Array.of(1, 2));
  a.local.set([3, 2]);
  b.local.set([1, -2]);
  await a.exchange();
  expect(master.data).toEqual(Float32Array.of(3, 2));
  await b.exchange();
  expect(master.data).toEqual(Float32Array.of(3, -2));
  expect(b.local).toEqual(Float32Array.of(3, -2));
  expect(a.local).toEqual(Float32Array.of(3, 2));
  await a.exchange();
  expect(a.local).toEqual(Float32Array.of(3, -2));
});

test("a difference is added once, though reading the master fails after it", async () => {
  const master = new Master(0, 0);
  const trainer = await AsyncDifference.begin(master, "w");
  trainer.local.set([1, 1]);
  master.failing = "pushFull";
  await expect(trainer.exchange()).rejects.toThrow("no push");
  master.failing = "pullFull";
  await expect(trainer.exchange()).rejects.toThrow("no pull");
  expect(trainer.local).toEqual(Float32Array.of(1, 1));
  trainer.local.set([1, 3]);
  master.failing = undefined;
  await trainer.exchange();
  expect(master.data).toEqual(Float32Array.of(1, 3));
  expect(trainer.local).toEqual(Float32Array.of(1, 3));
});
