// Proves that the calls of the client do what they say against the real fold behind a real broker:
// initialization, updates, reads of one's own writes, and the errors said before anything is sent.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Client, connect } from "../../../src/client/index.ts";
import { startTestBroker, type TestBroker } from "../../support/broker.ts";
import { type FakeHost, startFakeHost } from "../../support/fake-host.ts";
import { Traffic } from "../../support/traffic.ts";

let broker: TestBroker;
let jobs = 0;

beforeAll(async () => {
  broker = await startTestBroker();
});

afterAll(async () => {
  await broker.remove();
});

async function start(
  work: (client: Client, host: FakeHost, job: string) => Promise<void>,
  trainer = "t1",
): Promise<void> {
  const job = `client-${++jobs}`;
  const host = await startFakeHost({ url: broker.url, job });
  const client = await connect({ url: broker.url, job, trainer });
  try {
    await work(client, host, job);
  } finally {
    await client.close();
    await host.close();
  }
}

async function initialize(client: Client): Promise<void> {
  expect(await client.beginInit()).toBe(true);
  await Promise.all([
    client.initParam(
      "w",
      { dtype: "float32", shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6) },
      { learningRate: 0.5 },
    ),
    client.initParam("emb:sparse-0", new Float64Array([1, 2])),
    client.initParam("steps", Int32Array.of(7)),
    client.initParam("big", new Float32Array(3 * 1024 * 1024).fill(2), { learningRate: 1 }),
  ]);
  await client.finishInit();
}

describe("client", () => {
  test("initializes, updates and reads in request order", async () => {
    await start(async (client, _host, job) => {
      await using traffic = await Traffic.listen(broker.url, `ps.${job}.lifecycle.*.declare`);
      await initialize(client);
      expect(await traffic.take()).toHaveLength(1);
      await client.sendGrads({ w: Float32Array.of(2, 2, 2, 2, 2, 2) });
      await client.sendGrads({ w: new Float32Array(6).fill(1) }, { learningRate: 1 });
      const [steps, w, again] = await client.getParams(["steps", "w", "w"]);
      expect(steps).toEqual({
        name: "steps",
        dtype: "int32",
        shape: [1],
        data: Int32Array.of(7),
        version: 1,
      });
      expect(w).toEqual({
        name: "w",
        dtype: "float32",
        shape: [2, 3],
        data: Float32Array.of(-1, 0, 1, 2, 3, 4),
        version: 3,
      });
      expect(again).toEqual(w);

      await client.setParams(new Map([["emb:sparse-0", new Float64Array([5, 6])]]));
      await client.pushFull("emb:sparse-0", new Float64Array([1, 1]), 0.5, 2);
      expect((await client.pullFull("emb:sparse-0")).data).toEqual(new Float64Array([4.5, 5]));
    });
  });

  test("a version counts every change that was applied, in each block of a large parameter", async () => {
    await start(async (client) => {
      await initialize(client);
      const versions = async (): Promise<number[]> =>
        (await client.getParams(["w", "big", "steps"])).map(({ version }) => version);
      expect(await versions()).toEqual([1, 1, 1]);
      const big = new Float32Array(3 * 1024 * 1024);
      await client.sendGrads({ w: new Float32Array(6), big });
      await client.setParams({ steps: Int32Array.of(8), big });
      await client.pushFull("w", new Float32Array(6), 1, 1);
      await expect(client.sendGrads({ w: new Float32Array(5) })).rejects.toMatchObject({
        code: "BAD_SHAPE",
      });
      expect(await versions()).toEqual([3, 3, 2]);
    });
  });

  test("clips a gradient by the norm of all blocks, as it travels", async () => {
    await start(async (client) => {
      const elements = 3 * 1024 * 1024;
      const gradient = new Float32Array(elements);
      // In the first block and in the last; in bfloat16 (rounded to 3 and 4) the norm is 5.
      gradient[0] = 3 + 2 ** -10;
      gradient[elements - 1] = -4 - 2 ** -10;
      await client.beginInit();
      const config = { learningRate: 1, clipNorm: 1 };
      await client.initParam("big", new Float32Array(elements), config);
      await client.finishInit();
      const ends = async (): Promise<number[]> => {
        const { data } = await client.pullFull("big");
        return [Number(data[0]), Number(data[elements - 1])];
      };
      await client.sendGrads({ big: gradient }, { encoding: "bfloat16" });
      expect(await ends()).toEqual([-3, 4].map((value) => Math.fround(Math.fround(1 / 5) * value)));
      await client.setParams({ big: new Float32Array(elements) });
      await client.sendGrads({ big: gradient });
      const [first = 0, last = 0] = await ends();
      expect(Math.hypot(first, last)).toBeCloseTo(1, 6);
      expect(last / first).toBeCloseTo(-(4 + 2 ** -10) / (3 + 2 ** -10), 5);
    });
  });

  test("cuts a large parameter into blocks and gathers them again", async () => {
    await start(async (client, _host, job) => {
      await initialize(client);
      const gradient = Float32Array.from({ length: 3 * 1024 * 1024 }, (_, i) => i % 1000);
      await client.sendGrads({ big: gradient });
      await using traffic = await Traffic.listen(broker.url, `ps.${job}.block.>`);
      const { data } = await client.pullFull("big");
      expect(data.every((value, i) => value === 2 - (i % 1000))).toBe(true);
      const info = (await client.listParams()).find(({ name }) => name === "big");
      expect(info?.layout.blocks).toBe(12);
      expect(await traffic.take()).toHaveLength(12);
    });
  });

  test("reads into the caller's arrays, and refuses those that do not fit", async () => {
    await start(async (client) => {
      await initialize(client);
      const into = new Float32Array(3 * 1024 * 1024).fill(7);
      const { data } = await client.pullFull("big", { into });
      expect(data).toBe(into);
      expect(into.every((value) => value === 2)).toBe(true);
      const wrong = { big: new Float64Array(3 * 1024 * 1024) };
      await expect(client.getParams(["big"], { into: wrong })).rejects.toMatchObject({
        code: "BAD_DTYPE",
        details: { parameter: "big", expected: "Float32Array", received: "Float64Array" },
      });
      await expect(client.pullFull("big", { into: new Float32Array(3) })).rejects.toMatchObject({
        code: "BAD_LENGTH",
        details: { expected: 3 * 1024 * 1024, received: 3 },
      });
    });
  });

  test("a second trainer waits for the first, and unknown names are named", async () => {
    await start(async (first, _host, job) => {
      await using second = await connect({ url: broker.url, job, trainer: "t2" });
      expect(await first.beginInit()).toBe(true);
      expect(await second.beginInit({ wait: false })).toBe(false);
      const waiting = second.beginInit();
      const reading = second.getParams(["w"]);
      await first.initParam("w", Float32Array.of(1));
      await expect(first.sendGrads({ w: Float32Array.of(1) })).rejects.toMatchObject({
        code: "NOT_INITIALIZED",
      });
      await first.finishInit();
      expect(await waiting).toBe(false);
      expect((await reading)[0]?.data).toEqual(Float32Array.of(1));
      await expect(second.getParams(["w", "nope"])).rejects.toMatchObject({
        code: "UNKNOWN_PARAMETER",
        message: expect.stringContaining('"nope"'),
      });
    });
  });

  test("creates a parameter once, whichever trainer comes first", async () => {
    await start(async (first, _host, job) => {
      await using second = await connect({ url: broker.url, job, trainer: "t2" });
      const a = first.createIfNotAlreadyCreated("m", Float32Array.of(1, 1));
      const b = second.createIfNotAlreadyCreated("m", Float32Array.of(2, 2));
      const [valueA, valueB] = await Promise.all([a, b]);
      expect(valueA).toEqual(valueB);
      await expect(
        second.createIfNotAlreadyCreated("m", Float32Array.of(1, 2, 3)),
      ).rejects.toMatchObject({ code: "BAD_SHAPE" });
      await expect(
        second.createIfNotAlreadyCreated("m", Int32Array.of(1, 2)),
      ).rejects.toMatchObject({ code: "BAD_DTYPE" });
    });
  });

  test("checks every tensor before any is sent", async () => {
    await start(async (client, host) => {
      await initialize(client);
      const before = host.folded();
      const good = new Float32Array(6);
      const refused: [Parameters<Client["sendGrads"]>[0], string, string][] = [
        [{}, "EMPTY", "at least one"],
        [{ w: good, "emb:sparse-0": new Float64Array(2) }, "NO_LEARNING_RATE", "emb:sparse-0"],
        [{ w: good, steps: Int32Array.of(1) }, "UNSUPPORTED", "int32"],
        [{ w: good, big: new Float32Array(5) }, "BAD_SHAPE", '"big"'],
        [{ w: new Float64Array(6) }, "BAD_DTYPE", "expected float32; received float64"],
        [{ w: { dtype: "float32", shape: [3, 2], data: good } }, "BAD_SHAPE", "[2,3]"],
        [
          { w: Float32Array.of(1, 2, 3, 4, 5, Number.NaN) },
          "NON_FINITE",
          '"w": expected finite values; received NaN as element 5',
        ],
        [{ w: good, x: good }, "UNKNOWN_PARAMETER", '"x"'],
      ];
      for (const [grads, code, text] of refused) {
        await expect(client.sendGrads(grads)).rejects.toMatchObject({
          code,
          message: expect.stringContaining(text),
        });
      }
      await expect(client.pushFull("w", good, Number.NaN, 1)).rejects.toMatchObject({
        code: "BAD_VALUE",
      });
      await expect(client.getParams([])).rejects.toMatchObject({ code: "EMPTY" });
      await expect(client.initParam("y", good)).rejects.toMatchObject({ code: "NOT_SELECTED" });
      expect(host.folded()).toBe(before);
    });
  });

  test("saves, tells its status, closes and is closed", async () => {
    await start(async (client) => {
      await initialize(client);
      expect(await client.saveModel("a/model")).toEqual({
        file: "a/model",
        bytes: 3,
        format: "safetensors",
        host: "fake",
      });
      expect(await client.status()).toMatchObject({ state: "ready", by: "t1", shards: 4 });
      expect((await client.listParams()).map(({ name }) => name)).toEqual([
        "big",
        "emb:sparse-0",
        "steps",
        "w",
      ]);
      await client.close();
      await client.close();
      await expect(client.status()).rejects.toMatchObject({ code: "CLOSED" });
    });
  });
});
