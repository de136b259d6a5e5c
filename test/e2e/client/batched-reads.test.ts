// Proves through real hosts that many small blocks are read by one request for each shard, that what has not
// changed does not travel again, and that such reads keep what pulls promise: one's own updates are seen and
// values never go back, whichever host or broker is killed while they are answered; a trainer that keeps
// step sees the steps it has ended.
import { afterEach, describe, expect, test } from "vitest";
import type { Client, NamedTensor } from "../../../src/client/index.ts";
import {
  allocateData,
  bytesOf,
  DTYPES,
  type Dtype,
  type TensorData,
} from "../../../src/protocol/dtypes.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { bytesOfAll, type Passed, Traffic } from "../../support/traffic.ts";

/** Shards of a test's job. */
const SHARDS = 4;
const DTYPE_NAMES = Object.keys(DTYPES) as Dtype[];

let job: TestJob;

afterEach(() => job.remove());

/** Names of parameters. */
const namesOf = (count: number): string[] => Array.from({ length: count }, (_, i) => `p${i}`);

/**
 * A trainer that has created `count` parameters of four zeros, each by itself, so that they lie on all shards, and
 * that is selected to initialize others.
 */
async function start(
  count: number,
  options: Parameters<typeof TestJob.start>[0] = {},
): Promise<Client> {
  job = await TestJob.start(options);
  await job.host();
  const client = await job.trainer("a");
  await client.beginInit();
  await Promise.all(
    namesOf(count).map((name) =>
      client.createIfNotAlreadyCreated(
        name,
        new Float32Array(4),
        { learningRate: 1 },
        { timeoutMs: HANG_MS },
      ),
    ),
  );
  return client;
}

const pulls = (passed: readonly Passed[]): Passed[] =>
  passed.filter(({ subject }) => subject.endsWith(".pull"));
const reads = (passed: readonly Passed[]): Passed[] =>
  passed.filter(({ subject }) => subject.endsWith(".read"));
const replies = (passed: readonly Passed[]): Passed[] =>
  passed.filter(({ subject }) => subject.startsWith("_INBOX_"));

/** Three sevens, of half floats as bits, of bools ones. */
function sevens(dtype: Dtype): TensorData {
  const data = allocateData(dtype, 3);
  if (dtype === "bool") return data.fill(1 as never);
  return data instanceof BigInt64Array || data instanceof BigUint64Array
    ? data.fill(7n)
    : data.fill(7);
}

function isEqual(a: TensorData, b: TensorData): boolean {
  return Buffer.compare(bytesOf(a), bytesOf(b)) === 0;
}

function ones(count: number): Record<string, Float32Array> {
  return Object.fromEntries(namesOf(count).map((name) => [name, new Float32Array(4).fill(-1)]));
}

describe("in one request for each shard", () => {
  test("many parameters of every type are read, with a large one beside them", async () => {
    const client = await start(100);
    const large = Float32Array.from({ length: 600_000 }, (_, i) => i);
    await client.initParam("large", large);
    for (const dtype of DTYPE_NAMES) {
      await client.initParam(dtype, { dtype, shape: [3], data: sevens(dtype) });
    }
    await client.finishInit();
    await using traffic = await Traffic.listen(job.broker.url, "ps.j.>", "_INBOX_j.a.>");
    const names = [...namesOf(100), "large", ...DTYPE_NAMES, "p0"];
    const tensors = await client.getParams(names);
    expect(tensors.map(({ name }) => name)).toEqual(names);
    expect(isEqual((tensors.find(({ name }) => name === "large") as NamedTensor).data, large)).toBe(
      true,
    );
    for (const dtype of DTYPE_NAMES) {
      const { data } = tensors.find(({ name }) => name === dtype) as NamedTensor;
      expect(data).toEqual(sevens(dtype));
    }
    const passed = await traffic.take();
    expect(reads(passed)).toHaveLength(SHARDS);
    expect(pulls(passed)).toHaveLength(1);
  });

  test("rows of many blocks are read, also encoded, and columns of rows", async () => {
    const client = await start(0);
    const shape = [40_000, 64] as const;
    const data = Float32Array.from({ length: shape[0] * shape[1] }, (_, i) => i % 4_096);
    await client.initParam("table", { dtype: "float32", shape, data });
    await client.finishInit();
    await using traffic = await Traffic.listen(job.broker.url, "ps.j.>");
    const rows = Array.from({ length: 500 }, (_, i) => (i * 7_919) % shape[0]);
    const expected = Float32Array.from(
      rows.flatMap((row) => [...data.subarray(row * 64, row * 64 + 64)]),
    );
    const columns = Array.from({ length: 64 }, (_, i) => i);
    for (const encoding of [undefined, "float16"] as const) {
      const options = encoding === undefined ? {} : { encoding };
      const part = await client.pullPart("table", [rows, columns], options);
      expect(part).toMatchObject({ dtype: "float32", shape: [500, 64] });
      // Whole numbers up to 2,048 are exact in float16.
      const exact = part.data.every((value, i) => {
        const wanted = expected[i] as number;
        return value === wanted || (encoding !== undefined && wanted > 2_048);
      });
      expect(exact).toBe(true);
    }
    const some = await client.pullPart("table", [rows.slice(0, 50), [63, 0, 5]]);
    expect([...(some.data as Float32Array).slice(0, 6)]).toEqual(
      [0, 1].flatMap((i) => [63, 0, 5].map((column) => expected[i * 64 + column])),
    );
    const passed = await traffic.take();
    expect(reads(passed)).toHaveLength(3 * SHARDS);
    expect(pulls(passed)).toHaveLength(0);
  });
});

test("what has not changed is returned as it is and does not travel again", async () => {
  const client = await start(50);
  const big = new Float32Array(3_000_000).fill(1);
  await client.initParam(
    "big",
    { dtype: "float32", shape: [3_000, 1_000], data: big },
    { learningRate: 1, sparse: true },
  );
  await client.finishInit();
  const names = [...namesOf(50), "big"];
  const first = await client.getParams(names);
  await using traffic = await Traffic.listen(job.broker.url, "_INBOX_j.a.>");
  const second = await client.getParams(names, { known: first });
  second.forEach((tensor, i) => {
    expect(tensor).toBe(first[i]);
  });
  expect(bytesOfAll(replies(await traffic.take()))).toBeLessThan(4_096);

  await client.sendGrads({ p7: new Float32Array(4).fill(-1) });
  await client.sendGrads({ big: { rows: [2_999], values: new Float32Array(1_000).fill(-1) } });
  await traffic.take();
  const third = await client.getParams(names, { known: second });
  expect(bytesOfAll(replies(await traffic.take()))).toBeLessThan(1_100_000);
  const changed = names.filter((_, i) => third[i] !== second[i]);
  expect(changed).toEqual(["p7", "big"]);
  const [p7, after] = [third[7], third.at(-1)] as [NamedTensor, NamedTensor];
  expect(p7).toMatchObject({ version: 2, data: new Float32Array(4).fill(1) });
  expect(isEqual(after.data.subarray(0, 2_999_000), big.subarray(0, 2_999_000))).toBe(true);
  expect(after.data.at(-1)).toBe(2);
  // The earlier result is as it was.
  expect(first.at(-1)?.data.at(-1)).toBe(1);

  const into = { big: new Float32Array(3_000_000), p7: new Float32Array(4) };
  const fourth = await client.getParams(["big", "p7"], { known: third, into });
  expect(isEqual(into.big, after.data) && isEqual(into.p7, p7.data)).toBe(true);
  expect(fourth[0]?.data).toBe(into.big);
  const other = await client.getParams(["p7"], { known: third, encoding: "float16" });
  expect(other[0]).not.toBe(p7);
});

test("values never go back, and include one's own updates, whichever process is killed during reads", async () => {
  const count = 300;
  const client = await start(count, { shards: SHARDS, leaseMs: QUICK_LEASE_MS });
  const names = namesOf(count);
  let rounds = 0;
  let isOver = false;
  const pushing = (async () => {
    while (!isOver) {
      await client.sendGrads(ones(count), { timeoutMs: HANG_MS });
      rounds += 1;
    }
  })();
  const calls = new Map<Client, number>();
  const watch = async (reader: Client, uses: "known" | "nothing"): Promise<void> => {
    let last: NamedTensor[] = names.map((name) => {
      return { name, dtype: "float32", shape: [4], data: new Float32Array(4), version: 1 };
    });
    while (!isOver) {
      const least = reader === client ? rounds : 0;
      const options = uses === "known" ? { known: last } : {};
      const tensors = await reader.getParams(names, { ...options, timeoutMs: HANG_MS });
      tensors.forEach(({ data, version }, i) => {
        const value = Number(data[0]);
        expect(data.every((element) => element === value)).toBe(true);
        expect(version).toBe(value + 1);
        expect(value).toBeGreaterThanOrEqual(Math.max(least, Number(last[i]?.data[0])));
      });
      last = tensors;
      calls.set(reader, (calls.get(reader) ?? 0) + 1);
    }
  };
  const other = await job.trainer("b");
  const watching = [watch(client, "nothing"), watch(other, "known")];
  // Three more rounds of gradients, and one more read of each reader.
  const progress = async (): Promise<void> => {
    const goals = [client, other].map((reader) => ({ reader, goal: (calls.get(reader) ?? 0) + 1 }));
    const goal = rounds + 3;
    const isDone = (): boolean =>
      rounds >= goal && goals.every((each) => (calls.get(each.reader) ?? 0) >= each.goal);
    const reached = async (): Promise<void> => {
      while (!isDone()) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await Promise.race([reached(), ...watching]);
  };
  for (let round = 0; round < 4; round++) {
    await progress();
    if (round % 2 === 0) {
      await job.hosts.at(-1)?.kill();
      await job.host();
    } else {
      await job.broker.kill();
      await job.broker.start();
    }
  }
  await progress();
  isOver = true;
  await pushing;
  await Promise.all(watching);
});

test("a trainer that keeps step sees the steps that it has ended in all parameters", async () => {
  const synchronization = { mode: "sync", trainers: 2, reduce: "sum" } as const;
  const client = await start(20, { synchronization, leaseMs: LASTING_LEASE_MS });
  const other = await job.trainer("b");
  const names = namesOf(20);
  for (let step = 1; step <= 3; step++) {
    const [mine] = await Promise.all(
      [client, other].map(async (trainer) => {
        await trainer.sendGrads(ones(20));
        return trainer.getParams(names);
      }),
    );
    for (const { data } of mine ?? []) expect(data).toEqual(new Float32Array(4).fill(2 * step));
  }
});
