// Proves through a real host that encoded values take fewer bytes both ways, arrive as the encoding
// rounds them, and are refused where they are not what the call or the parameter takes; and that what rounding
// leaves out of gradients arrives with the next ones.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client, Encoding } from "../../../src/client/index.ts";
import { encodedBytes, type HalfEncoding } from "../../../src/protocol/dtypes.ts";
import { decodeElements, encodeElements } from "../../../src/protocol/encoding/encoding.ts";
import { TestJob } from "../../support/host.ts";
import { bytesOfAll, Traffic } from "../../support/traffic.ts";

/** Values and what the encodings make of them: 8 and 11 bits of precision, ties to even. */
const VALUES = Float32Array.of(
  1,
  -2.5,
  1 + 2 ** -8,
  1 + 3 * 2 ** -8,
  1 + 2 ** -10,
  1 + 2 ** -11,
  3e-8,
);
const ROUNDED: Readonly<Record<HalfEncoding, Float32Array>> = {
  bfloat16: Float32Array.of(1, -2.5, 1, 1 + 2 ** -6, 1, 1, 258 * 2 ** -33),
  float16: Float32Array.of(1, -2.5, 1 + 2 ** -8, 1 + 3 * 2 ** -8, 1 + 2 ** -10, 1, 2 ** -24),
};
const ENCODINGS = ["bfloat16", "float16"] as const;
const N = VALUES.length;
const zeros = { dtype: "float32", shape: [N], data: new Float32Array(N) } as const;
const MIB = 1024 * 1024;

let job: TestJob;
let client: Client;

beforeAll(async () => {
  job = await TestJob.start();
  await job.host();
  client = await job.trainer("a");
  await client.beginInit();
  await client.initParam("w", zeros, { learningRate: 1 });
  await client.initParam("rows", { ...zeros, shape: [N, 1] }, { learningRate: 1, sparse: true });
  await client.initParam("large", new Float32Array(3 * MIB), { learningRate: 1 });
  await client.initParam("free", new Float32Array(2), { learningRate: 1, allowNonFinite: true });
  await client.initParam("f64", new Float64Array(2), { learningRate: 1 });
  await client.finishInit();
});

afterAll(() => job.remove());

describe.each(ENCODINGS)("%s", (encoding) => {
  const rounded = ROUNDED[encoding];
  const negative = rounded.map((value) => -value);

  test("gradients arrive rounded", async () => {
    await client.setParams({ w: zeros });
    await client.sendGrads({ w: VALUES }, { encoding });
    expect((await client.pullFull("w")).data).toEqual(negative);
  });

  test("gradients of rows arrive rounded, summed before", async () => {
    await client.setParams({ rows: new Float32Array(N) });
    const rows = [...VALUES.keys(), 0];
    await client.sendGrads({ rows: { rows, values: Float32Array.of(...VALUES, 2) } }, { encoding });
    expect((await client.pullFull("rows")).data).toEqual(negative.with(0, -3));
  });

  test("values and parts are pushed and pulled rounded", async () => {
    await client.setParams({ w: zeros });
    await client.pushFull("w", VALUES, 0, 1, { encoding });
    expect((await client.pullFull("w")).data).toEqual(rounded);
    await client.setParams({ w: VALUES });
    expect((await client.pullFull("w", { encoding })).data).toEqual(rounded);
    const into = new Float32Array(N);
    const [pulled] = await client.getParams(["w"], { encoding, into: { w: into } });
    expect(pulled?.data).toBe(into);
    expect(into).toEqual(rounded);
    const backwards = [...VALUES.keys()].reverse();
    expect((await client.pullPart("w", [backwards], { encoding })).data).toEqual(
      rounded.toReversed(),
    );
    expect((await client.pullFull("w")).data).toEqual(VALUES);
    await client.pushAsPart("w", VALUES.toReversed(), [backwards], 0, 1, { encoding });
    expect((await client.pullFull("w")).data).toEqual(rounded);
  });

  test("large tensors take half the bytes, both ways", async () => {
    const large = Float32Array.from({ length: 3 * MIB }, (_, i) => (i % 256) - 128);
    await client.setParams({ large: new Float32Array(3 * MIB) });
    await using traffic = await Traffic.listen(job.broker.url, "ps.j.log.>", "_INBOX_j.a.>");
    await client.sendGrads({ large }, { encoding });
    const sent = (await traffic.take()).filter(({ subject }) => subject.startsWith("ps.j.log"));
    expect(sent.length).toBe(12);
    expect(bytesOfAll(sent)).toBeGreaterThan(6 * MIB);
    expect(bytesOfAll(sent)).toBeLessThan(6 * MIB + 12 * 500);
    const { data } = await client.pullFull("large", { encoding });
    const received = await traffic.take();
    expect(bytesOfAll(received)).toBeGreaterThan(6 * MIB);
    expect(bytesOfAll(received)).toBeLessThan(6 * MIB + 12 * 500);
    expect(data.every((value, i) => value === -(large[i] as number))).toBe(true);
  });

  test("an element that becomes infinite is refused, unless the parameter allows it", async () => {
    const huge = encoding === "float16" ? 65_520 : 3.4e38;
    const values = Float32Array.of(1, huge);
    await expect(
      client.sendGrads({ w: new Float32Array(N).fill(huge) }, { encoding }),
    ).rejects.toMatchObject({
      code: "NON_FINITE",
      message: expect.stringContaining(`an infinity as ${encoding}, as element 0`),
    });
    await client.setParams({ free: new Float32Array(2) });
    await client.pushFull("free", values, 1, 1, { encoding });
    expect((await client.pullFull("free")).data).toEqual(
      Float32Array.of(1, Number.POSITIVE_INFINITY),
    );
  });

  test("other element types have no encoding", async () => {
    const f64 = new Float64Array(2);
    const answers = await Promise.allSettled([
      client.sendGrads({ f64 }, { encoding }),
      client.pushFull("f64", f64, 1, 1, { encoding }),
      client.pushAsPart("f64", f64, [[0, 1]], 1, 1, { encoding }),
      client.getParams(["w", "f64"], { encoding }),
      client.pullPart("f64", [[0]], { encoding }),
    ]);
    const reason = { code: "UNSUPPORTED", details: { parameter: "f64" } };
    expect(answers).toMatchObject(Array(5).fill({ status: "rejected", reason }));
  });
});

describe.each(["int8", "e3m0"] as const)("%s", (encoding) => {
  const rounded = (elements: Float32Array): Float32Array => {
    const bytes = new Uint8Array(encodedBytes("float32", encoding, elements.length));
    encodeElements(encoding, elements, bytes);
    const read = new Float32Array(elements.length);
    decodeElements(encoding, bytes, read);
    return read;
  };

  test("gradients arrive rounded, and what is left out of them with the next", async () => {
    const trainer = await job.trainer(`errors-${encoding}`);
    await trainer.setParams({ w: zeros });
    await trainer.sendGrads({ w: VALUES }, { encoding });
    const first = rounded(VALUES);
    expect((await trainer.pullFull("w")).data).toEqual(first.map((x) => 0 - x));
    await trainer.sendGrads({ w: VALUES }, { encoding });
    const second = rounded(VALUES.map((x, i) => x + (x - (first[i] as number))));
    const sum = first.map((x, i) => 0 - x - (second[i] as number));
    expect((await trainer.pullFull("w")).data).toEqual(sum);
    await trainer.setParams({ w: zeros });
    await trainer.sendGrads({ w: VALUES }, { encoding, errorFeedback: false });
    expect((await trainer.pullFull("w")).data).toEqual(first.map((x) => 0 - x));
    await trainer.close();
  });

  test("gradients of rows arrive rounded, summed before", async () => {
    await client.setParams({ rows: new Float32Array(N) });
    const rows = [...VALUES.keys(), 0];
    const values = Float32Array.of(...VALUES, 2);
    await client.sendGrads({ rows: { rows, values } }, { encoding, errorFeedback: false });
    const summed = rounded(VALUES.with(0, 3));
    expect((await client.pullFull("rows")).data).toEqual(summed.map((x) => 0 - x));
  });

  test("values and parts are pushed and pulled rounded", async () => {
    await client.setParams({ w: zeros });
    await client.pushFull("w", VALUES, 0, 1, { encoding });
    expect((await client.pullFull("w")).data).toEqual(rounded(VALUES));
    await client.setParams({ w: VALUES });
    const [pulled, other] = await client.getParams(["w", "large"], { encoding });
    expect(pulled?.data).toEqual(rounded(VALUES));
    expect(other?.data).toHaveLength(3 * MIB);
    const part = await client.pullPart("w", [[5, 0, 2]], { encoding });
    const [a = 0, , b = 0, , , c = 0] = VALUES;
    const [x, y, z] = rounded(Float32Array.of(a, b, c));
    expect(part.data).toEqual(Float32Array.of(z as number, x as number, y as number));
    await client.pushAsPart("w", Float32Array.of(c, a), [[5, 0]], 0, 1, { encoding });
    const [first, second] = rounded(Float32Array.of(a, c));
    const { data } = await client.pullFull("w");
    expect([data[0], data[1], data[5]]).toEqual([first, VALUES[1], second]);
  });

  test("large tensors take their share of the bytes, both ways", async () => {
    const large = Float32Array.from({ length: 3 * MIB }, (_, i) => (i % 256) - 128);
    await client.setParams({ large: new Float32Array(3 * MIB) });
    await using traffic = await Traffic.listen(job.broker.url, "ps.j.log.>", "_INBOX_j.a.>");
    // What another encoding has left out of this parameter would be added.
    await client.sendGrads({ large }, { encoding, errorFeedback: false });
    const bytes = encodedBytes("float32", encoding, 3 * MIB);
    const sent = (await traffic.take()).filter(({ subject }) => subject.startsWith("ps.j.log"));
    expect(bytesOfAll(sent)).toBeGreaterThan(bytes);
    expect(bytesOfAll(sent)).toBeLessThan(bytes + 12 * 500);
    const { data } = await client.pullFull("large", { encoding });
    const received = await traffic.take();
    expect(bytesOfAll(received)).toBeGreaterThan(bytes);
    expect(bytesOfAll(received)).toBeLessThan(bytes + 12 * 500);
    // What was pulled was rounded on the way there, and on the way back.
    const expected = rounded(rounded(large).map((x) => 0 - x));
    expect(data.every((value, i) => value === expected[i])).toBe(true);
  });

  test("a block with elements that are not finite is read by groups that are not", async () => {
    await client.setParams({ free: Float32Array.of(1, Number.POSITIVE_INFINITY) });
    const infinite = new Float32Array(2).fill(Number.POSITIVE_INFINITY);
    expect((await client.pullFull("free", { encoding })).data).toEqual(infinite);
    await expect(
      client.sendGrads({ w: VALUES.with(3, Number.NaN) }, { encoding }),
    ).rejects.toMatchObject({ code: "NON_FINITE" });
  });

  test("other element types have no encoding", async () => {
    const f64 = new Float64Array(2);
    await expect(client.sendGrads({ f64 }, { encoding })).rejects.toMatchObject({
      code: "UNSUPPORTED",
      details: { parameter: "f64" },
    });
    await expect(client.getParams(["w", "f64"], { encoding })).rejects.toMatchObject({
      code: "UNSUPPORTED",
    });
  });
});

test("an unknown encoding is refused by name", async () => {
  const encoding = "int4" as Encoding;
  await expect(client.pullFull("w", { encoding })).rejects.toMatchObject({
    code: "BAD_VALUE",
    message: expect.stringContaining("bfloat16 or float16 or int8 or e3m0; received int4"),
  });
  await expect(client.sendGrads({ w: VALUES }, { encoding })).rejects.toMatchObject({
    code: "BAD_VALUE",
  });
});
