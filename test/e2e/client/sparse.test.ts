// Proves through a real host that gradients of rows update these rows alone, with their own optimizer
// state, whatever their order and repeats; and that shards of one embedding, named `name:sparse-i`,
// are initialized, trained and read one by one and saved as one tensor.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { openModel } from "../../../src/model-files/index.ts";
import { TestJob } from "../../support/host.ts";
import { bytesOfAll, Traffic } from "../../support/traffic.ts";

const MOMENTUM = { optimizer: { name: "momentum", momentum: 0.5 }, learningRate: 0.5 } as const;

let job: TestJob;
let client: Client;
let models: string;

beforeEach(async () => {
  models = await mkdtemp(join(tmpdir(), "pserver-sparse-"));
  job = await TestJob.start();
  await job.host({ modelDirectory: models });
  client = await job.trainer("a");
  await client.beginInit();
});

afterEach(async () => {
  await job.remove();
  await rm(models, { recursive: true, force: true });
});

async function rowsOf(name: string, width: number): Promise<number[][]> {
  const values = Array.from((await client.pullFull(name)).data, Number);
  return Array.from({ length: values.length / width }, (_, row) =>
    values.slice(row * width, (row + 1) * width),
  );
}

test("updates the named rows alone, each with its own state; repeats are added up", async () => {
  const zeros = { dtype: "float32", shape: [5, 2], data: new Float32Array(10) } as const;
  await client.initParam("emb", zeros, { ...MOMENTUM, sparse: true });
  await client.initParam("dense", zeros, MOMENTUM);
  await client.finishInit();

  // m = −g/2 for rows 1 and 4; row 1 is named twice: 2 + 4.
  await client.sendGrads({ emb: { rows: [1, -1, 1], values: Float32Array.of(2, 0, 8, 8, 4, 2) } });
  expect(await rowsOf("emb", 2)).toEqual([
    [0, 0],
    [-3, -1],
    [0, 0],
    [0, 0],
    [-4, -4],
  ]);
  // Row 1: m = −3/2 − 1/2, −1/2 − 1/2. Row 4 is not named: its momentum does not move it.
  const values = { dtype: "float32", shape: [2, 2], data: Float32Array.of(2, 2, 1, 1) } as const;
  await client.sendGrads({ emb: { rows: Int32Array.of(0, 1), values } });
  expect(await rowsOf("emb", 2)).toEqual([
    [-1, -1],
    [-5, -2],
    [0, 0],
    [0, 0],
    [-4, -4],
  ]);
  // A gradient of the whole parameter names every row.
  await client.sendGrads({ emb: new Float32Array(10) });
  expect(await rowsOf("emb", 2)).toEqual([
    [-1.5, -1.5],
    [-6, -2.5],
    [0, 0],
    [0, 0],
    [-6, -6],
  ]);

  const none = { rows: [], values: new Float32Array(0) };
  expect(await client.sendGrads({ emb: none })).toEqual({ lateBlocks: 0 });
  const one = new Float32Array(2);
  const refused = [
    [{ emb: { rows: [5], values: one } }, "BAD_INDEX"],
    [{ emb: { rows: [-6], values: one } }, "BAD_INDEX"],
    [{ emb: { rows: [0, 1], values: one } }, "BAD_SHAPE"],
    [{ emb: { rows: [0], values: new Float64Array(2) } }, "BAD_DTYPE"],
    [{ emb: { rows: [0], values: Float32Array.of(1, Number.NaN) } }, "NON_FINITE"],
    [{ emb: none, dense: { rows: [0], values: one } }, "UNSUPPORTED"],
  ] as const;
  for (const [grads, code] of refused) {
    await expect(client.sendGrads(grads), code).rejects.toMatchObject({ code });
  }
  expect((await client.getParams(["emb", "dense"])).map(({ version }) => version)).toEqual([4, 1]);
});

test("rows of a large table go to their blocks only, in any order", async () => {
  const [rows, width] = [60_000, 25];
  const data = Float64Array.from({ length: rows * width }, (_, i) => i % 1_000);
  const table = { dtype: "float64", shape: [rows, width], data } as const;
  await client.initParam("table", table, { learningRate: 1, sparse: true });
  await client.finishInit();
  const [info] = await client.listParams();
  expect(info?.layout.blocks).toBe(12);
  const named = Array.from({ length: 300 }, (_, i) => (i * 7_919) % 20_000);
  const values = Float64Array.from({ length: 300 * width }, (_, i) => i);
  await using traffic = await Traffic.listen(job.broker.url, "ps.j.log.>");
  await client.sendGrads({ table: { rows: named, values } });
  const pushed = await traffic.take();
  expect(pushed.length).toBe(4);
  expect(bytesOfAll(pushed)).toBeLessThan(values.byteLength + 300 * 4 + 4 * 500);
  const expected = data.slice();
  named.forEach((row, i) => {
    for (let j = 0; j < width; j++) {
      expected[row * width + j] = (data[row * width + j] ?? 0) - (values[i * width + j] ?? 0);
    }
  });
  const { data: pulled } = await client.pullFull("table");
  expect(Buffer.compare(Buffer.from(pulled.buffer), Buffer.from(expected.buffer))).toBe(0);
});

test("shards of an embedding are trained one by one and saved as one tensor", async () => {
  const shards = [0, 1, 2].map((i) => `emb:sparse-${i}`);
  for (const [i, name] of shards.entries()) {
    const data = new Float32Array(4).fill(10 * i);
    const config = { optimizer: "sgd", learningRate: 1, sparse: true } as const;
    await client.initParam(name, { dtype: "float32", shape: [2, 2], data }, config);
  }
  await client.initParam("bias", Float32Array.of(7));
  await client.finishInit();
  const values = Float32Array.of(1, 2);
  await client.sendGrads({
    "emb:sparse-0": { rows: [1], values },
    "emb:sparse-2": { rows: [0], values },
  });
  const pulled = await client.getParams(shards);
  expect(pulled.map(({ data }) => [...data])).toEqual([
    [0, 0, -1, -2],
    [10, 10, 10, 10],
    [19, 18, 20, 20],
  ]);
  expect((await client.pullPart("emb:sparse-2", [[0], [1, 0]])).data).toEqual(
    Float32Array.of(18, 19),
  );

  const { file } = await client.saveModel("model.safetensors");
  const model = await openModel(file);
  onTestFinished(() => model.close());
  const saved = await Promise.all(
    model.tensors.map(async ({ header: { name, shape }, chunks }) => {
      const bytes: number[] = [];
      for await (const chunk of chunks()) bytes.push(...chunk);
      return [name, shape, [...new Float32Array(Uint8Array.from(bytes).buffer)]];
    }),
  );
  expect(saved).toEqual([
    ["bias", [1], [7]],
    ["emb", [6, 2], [0, 0, -1, -2, 10, 10, 10, 10, 19, 18, 20, 20]],
  ]);
});
