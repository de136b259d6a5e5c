// Proves through a real host that parts are read and written as numpy does it, in every element type,
// whether a parameter is one block, cut between rows or within them; that only touched blocks get
// messages and only touched elements travel; and that what does not fit one message goes in several.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { allocateData, bytesOf, type TensorData } from "../../../src/protocol/dtypes.ts";
import { elementsAt } from "../../client/parts/part-reference.ts";
import { TestJob } from "../../support/host.ts";
import { NUMPY_DTYPES, numpyArrays } from "../../support/numpy-parts.ts";
import { bytesOfAll, Traffic } from "../../support/traffic.ts";

/** Blocks of 7 rows; and 2 rows of 14 blocks and a bit each. */
const TALL = [200, 7_000] as const;
const WIDE = [2, 700_000] as const;
/** Elements of a block of the latter. */
const WIDE_BLOCK = 49_152;

const dtypes = NUMPY_DTYPES;
let job: TestJob;
let client: Client;

beforeAll(async () => {
  // The least that a broker may take: blocks of at most 192 KiB, parts of these in two messages.
  job = await TestJob.start({}, { extraConfig: "max_payload: 256KB" });
  await job.host();
  client = await job.trainer("a");
  await client.beginInit();
  for (const dtype of dtypes) {
    for (const { shape, array } of numpyArrays(dtype)) {
      await client.initParam(`${dtype}-${shape}`, { dtype, shape, data: array });
    }
  }
  const counting = (elements: number): Float32Array =>
    Float32Array.from({ length: elements }, (_, i) => i % 65_537);
  await client.initParam("tall", {
    dtype: "float32",
    shape: TALL,
    data: counting(TALL[0] * TALL[1]),
  });
  await client.initParam("wide", {
    dtype: "float32",
    shape: WIDE,
    data: counting(WIDE[0] * WIDE[1]),
  });
  await client.finishInit();
});

afterAll(() => job.remove());

describe.each(dtypes)("%s", (dtype) => {
  test.each(numpyArrays(dtype))("arrays of shape $shape are as numpy's", async (array) => {
    const name = `${dtype}-${array.shape}`;
    const whole = { dtype, shape: array.shape, data: array.array };
    for (const each of array.cases) {
      await client.setParams({ [name]: whole });
      expect(await client.pullPart(name, each.indices), each.name).toEqual({
        dtype,
        shape: each.pulledShape,
        data: each.pulled,
      });
      const into = allocateData(dtype, each.pulled.length);
      expect((await client.pullPart(name, each.indices, { into })).data, each.name).toBe(into);
      expect(into, each.name).toEqual(each.pulled);
      const given = { dtype, shape: each.pulledShape, data: each.new };
      await client.pushAsPart(name, given, each.indices, each.alpha, each.beta);
      expect((await client.pullFull(name)).data, each.name).toEqual(each.pushed);
    }
    for (const { indices, name: what } of array.refused) {
      await expect(client.pullPart(name, indices), what).rejects.toMatchObject({
        code: "BAD_INDEX",
        details: { parameter: name },
      });
      await expect(client.pushAsPart(name, array.array, indices, 1, 1), what).rejects.toMatchObject(
        { code: "BAD_INDEX" },
      );
    }
  });
});

const upTo = (length: number): number[] => Array.from({ length }, (_, i) => i);

const LARGE: [string, string, readonly number[], number[][]][] = [
  [
    "some elements, repeated",
    "tall",
    TALL,
    [
      [199, 0, 30, 0],
      [6_999, 3, 5, -1],
    ],
  ],
  ["one row, backwards", "tall", TALL, [[-1], upTo(7_000).reverse()]],
  ["a column", "tall", TALL, [upTo(200), [7]]],
  ["whole rows, unsorted", "tall", TALL, [[9, 3, 150, 8], upTo(7_000)]],
  [
    "some elements, at the cuts",
    "wide",
    WIDE,
    [
      [1, 0],
      [699_999, 0, 260_000, 0, 49_151, 49_152],
    ],
  ],
  ["a third of a row", "wide", WIDE, [[1], upTo(100_000).map((i) => 3 * i)]],
  ["nearly a block, too much for a message", "wide", WIDE, [[0], upTo(WIDE_BLOCK - 1)]],
];

/** Compares as bytes: the arrays are large. */
function expectSame(received: TensorData, expected: TensorData): void {
  expect(received.length).toBe(expected.length);
  expect(Buffer.compare(bytesOf(received), bytesOf(expected))).toBe(0);
}

describe("a parameter of many blocks", () => {
  test.each(LARGE)("%s of %s", async (_what, name, shape, lists) => {
    const before = (await client.pullFull(name)).data as Float32Array;
    const elements = elementsAt(shape, lists);
    const part = await client.pullPart(name, lists);
    expect(part.shape).toEqual(lists.map((list) => list.length));
    expectSame(
      part.data,
      Float32Array.from(elements, (element) => before[element] ?? 0),
    );

    const given = Float32Array.from(elements, (_, i) => i % 1_000);
    await client.pushAsPart(name, given, lists, 0.5, 2);
    const expected = before.slice();
    elements.forEach((element, i) => {
      expected[element] = (before[element] ?? 0) * 0.5 + (given[i] ?? 0) * 2;
    });
    expectSame((await client.pullFull(name)).data, expected);
  });

  test("gets several messages where one would be too large", async () => {
    await using traffic = await Traffic.listen(job.broker.url, "ps.j.log.>");
    const elements = WIDE_BLOCK - 1;
    await client.pushAsPart("wide", new Float32Array(elements), [[0], upTo(elements)], 1, 1);
    const pushed = await traffic.take();
    expect(pushed.length).toBeGreaterThan(1);
    expect(new Set(pushed.map(({ subject }) => subject)).size).toBe(1);
    expect(bytesOfAll(pushed)).toBeLessThan(elements * 8 + 2_000);
  });

  test("gets messages only for touched blocks, with little but the touched elements", async () => {
    await using traffic = await Traffic.listen(
      job.broker.url,
      "ps.j.block.>",
      "ps.j.shard.>",
      "ps.j.log.>",
      "_INBOX_j.a.>",
    );
    await client.pullPart("tall", [
      [0, 1, 199],
      [5, 6],
    ]);
    const pulls = await traffic.take();
    const asked = pulls.filter(({ subject }) => subject.startsWith("ps.j."));
    // Both blocks are on one shard.
    expect(asked.map(({ subject }) => subject.split(".").at(-1))).toEqual(["read"]);
    expect(bytesOfAll(pulls)).toBeLessThan(1_000);
    await client.pushAsPart(
      "tall",
      new Float32Array(4),
      [
        [2, 3],
        [9, 8],
      ],
      1,
      1,
    );
    const pushed = (await traffic.take()).filter(({ subject }) => subject.startsWith("ps.j.log"));
    expect(pushed.length).toBe(1);
    expect(bytesOfAll(pushed)).toBeLessThan(500);
    await client.pushAsPart("tall", new Float32Array(0), [[], [9, 8]], 1, 1);
    expect((await client.pullPart("tall", [[1], []])).data).toEqual(new Float32Array(0));
    expect(await traffic.take()).toEqual([]);
  });
});

test("parts are refused as whole tensors are", async () => {
  const indices = [
    [0, 1],
    [0, 1],
  ];
  const refused: [Promise<unknown>, string][] = [
    [client.pushAsPart("tall", new Float32Array(3), indices, 1, 1), "BAD_SHAPE"],
    [client.pushAsPart("tall", new Float64Array(4), indices, 1, 1), "BAD_DTYPE"],
    [client.pushAsPart("tall", Float32Array.of(1, 2, 3, Number.NaN), indices, 1, 1), "NON_FINITE"],
    [client.pushAsPart("tall", new Float32Array(4), indices, Number.NaN, 1), "BAD_VALUE"],
    [client.pushAsPart("tall", new Float32Array(0), [[], [1]].reverse(), 1, 1), "OK"],
    [client.pullPart("nothing", indices), "UNKNOWN_PARAMETER"],
    [client.pullPart("tall", [[0]]), "BAD_INDEX"],
    [client.pullPart("int32-7", [[0]], { encoding: "float16" }), "UNSUPPORTED"],
    [client.pullPart("int32-7", [[0]], { into: new Float32Array(1) }), "BAD_DTYPE"],
    [client.pullPart("int32-7", [[0]], { into: new Int32Array(2) }), "BAD_LENGTH"],
  ];
  const codes = await Promise.all(
    refused.map(([call]) =>
      call.then(
        () => "OK",
        (error: { code: string }) => error.code,
      ),
    ),
  );
  expect(codes).toEqual(refused.map(([, code]) => code));
});
