// Proves that every element type is stored, set and pulled bit for bit through a real journal and
// host, that alpha/beta and gradients do on each what docs/reference/protocol.md says or are refused, and that
// a host which takes over gives the same bits.
import { afterEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { bytesOf, type Dtype, type TensorData } from "../../../src/protocol/dtypes.ts";
import type { Tensor } from "../../../src/protocol/tensor.ts";
import { TestJob } from "../../support/host.ts";
import { QUICK_LEASE_MS } from "../../support/limits.ts";

const I64_MIN = -(2n ** 63n);
const I64_MAX = 2n ** 63n - 1n;
const U64_MAX = 2n ** 64n - 1n;

/** Extremes of each type; of floats also zeros of both signs, denormals and infinities. */
const EXTREMES: Readonly<Record<Dtype, TensorData>> = {
  int32: Int32Array.of(-(2 ** 31), 2 ** 31 - 1, -1, 0),
  uint32: Uint32Array.of(0, 2 ** 32 - 1, 2 ** 31, 1),
  int64: BigInt64Array.of(I64_MIN, I64_MAX, 2n ** 53n + 1n, -1n),
  uint64: BigUint64Array.of(0n, U64_MAX, 2n ** 63n, 2n ** 53n + 1n),
  float32: Float32Array.of(-0, 2 ** -149, (2 - 2 ** -23) * 2 ** 127, Number.NEGATIVE_INFINITY),
  float64: Float64Array.of(-0, Number.MIN_VALUE, Number.MAX_VALUE, Number.POSITIVE_INFINITY),
  bool: Uint8Array.of(0, 1, 1, 0),
  uint8: Uint8Array.of(0, 255, 128, 1),
  int8: Int8Array.of(-128, 127, -1, 0),
  // NaNs of half floats keep their bits.
  float16: Uint16Array.of(0x8000, 1, 0x7bff, 0xfd23),
  bfloat16: Uint16Array.of(0x8000, 1, 0x7f7f, 0xffa1),
};
const DTYPES = Object.keys(EXTREMES) as Dtype[];

function tensorOf(dtype: Dtype, data: TensorData): Tensor {
  return { dtype, shape: [4], data };
}

/** A product in float32 alone. */
const f32 = (a: number, b: number): number => Math.fround(Math.fround(a) * b);

let job: TestJob;

afterEach(() => job.remove());

/** Every parameter, by name, as it is pulled. */
async function pulled(client: Client): Promise<Record<string, TensorData>> {
  const tensors = await client.getParams([...DTYPES, ...DTYPES.map((dtype) => `mix-${dtype}`)]);
  return Object.fromEntries(tensors.map(({ name, data }) => [name, data]));
}

test("every element type keeps its bits, and takes the updates that it is said to take", async () => {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS });
  const first = await job.host();
  const client = await job.trainer("a");
  await client.beginInit();
  const config = { learningRate: 0.5, allowNonFinite: true };
  for (const dtype of DTYPES) {
    await client.initParam(dtype, tensorOf(dtype, EXTREMES[dtype]), config);
    await client.initParam(`mix-${dtype}`, tensorOf(dtype, EXTREMES[dtype]), config);
  }
  await client.finishInit();
  const start = await pulled(client);
  for (const dtype of DTYPES) {
    expect(bytesOf(start[dtype] as TensorData), dtype).toEqual(bytesOf(EXTREMES[dtype]));
  }

  for (const dtype of DTYPES) {
    const reversed = EXTREMES[dtype].slice().reverse();
    await client.setParams({ [dtype]: tensorOf(dtype, reversed) });
    expect(bytesOf((await client.pullFull(dtype)).data), dtype).toEqual(bytesOf(reversed));
  }

  // A NaN with a payload is stored as the quiet one.
  const nan32 = new Float32Array(Uint32Array.of(0xffc12345, 0x7f800001, 0, 0).buffer);
  const nan64 = new Float64Array(BigUint64Array.of(0xfff8000000000123n, 0n, 0n, 0n).buffer);
  await client.setParams({ float32: nan32, float64: nan64 });
  expect(new Uint32Array((await client.pullFull("float32")).data.slice().buffer)).toEqual(
    Uint32Array.of(0x7fc00000, 0x7fc00000, 0, 0),
  );
  expect(new BigUint64Array((await client.pullFull("float64")).data.slice().buffer)[0]).toBe(
    0x7ff8000000000000n,
  );

  // value = alpha · value + beta · new; integers are cut toward zero and held at the ends.
  const mixed: [Dtype, TensorData, TensorData, TensorData][] = [
    [
      "int32",
      Int32Array.of(-7, 2 ** 31 - 1, -(2 ** 31), 3),
      Int32Array.of(2, 2 ** 31 - 1, -(2 ** 31), 0),
      Int32Array.of(0, 2 ** 31 - 1, -(2 ** 31), 1),
    ],
    [
      "uint32",
      Uint32Array.of(7, 2 ** 32 - 1, 1, 3),
      Uint32Array.of(2, 2 ** 32 - 1, 0, 0),
      Uint32Array.of(6, 2 ** 32 - 1, 0, 1),
    ],
    [
      "int64",
      BigInt64Array.of(-7n, I64_MAX, I64_MIN, 3n),
      BigInt64Array.of(2n, I64_MAX, I64_MIN, 0n),
      BigInt64Array.of(0n, I64_MAX, I64_MIN, 1n),
    ],
    [
      "uint64",
      BigUint64Array.of(7n, U64_MAX, 1n, 3n),
      BigUint64Array.of(2n, U64_MAX, 0n, 0n),
      BigUint64Array.of(6n, U64_MAX, 0n, 1n),
    ],
    [
      "float32",
      Float32Array.of(0.1, -7, 1, 0),
      Float32Array.of(0.2, 2, 1, -0),
      Float32Array.of(Math.fround(f32(0.1, 0.5) + f32(0.2, 1.5)), -0.5, 2, 0),
    ],
    [
      "float64",
      Float64Array.of(0.1, -7, 1, 0),
      Float64Array.of(0.2, 2, 1, -0),
      Float64Array.of(0.1 * 0.5 + 0.2 * 1.5, -0.5, 2, 0),
    ],
    [
      "uint8",
      Uint8Array.of(7, 255, 1, 3),
      Uint8Array.of(2, 255, 0, 0),
      Uint8Array.of(6, 255, 0, 1),
    ],
    [
      "int8",
      Int8Array.of(-7, 127, -128, 3),
      Int8Array.of(2, 127, -128, 0),
      Int8Array.of(0, 127, -128, 1),
    ],
    // 0.5 and 1.5 times 1 and 1 + one unit, rounded once: to even.
    [
      "float16",
      Uint16Array.of(0x3c00, 0x3c00, 0xbc00, 0x7bff),
      Uint16Array.of(0x3c00, 0x3c01, 0xbc00, 0x7bff),
      Uint16Array.of(0x4000, 0x4001, 0xc000, 0x7c00),
    ],
    [
      "bfloat16",
      Uint16Array.of(0x3f80, 0x3f80, 0xbf80, 0x3f81),
      Uint16Array.of(0x3f80, 0x3f81, 0xbf80, 0x3f81),
      Uint16Array.of(0x4000, 0x4001, 0xc000, 0x4001),
    ],
  ];
  for (const [dtype, value, other, expected] of mixed) {
    const name = `mix-${dtype}`;
    await client.setParams({ [name]: tensorOf(dtype, value) });
    await client.pushFull(name, tensorOf(dtype, other), 0.5, 1.5);
    expect(bytesOf((await client.pullFull(name)).data), dtype).toEqual(bytesOf(expected));
  }

  for (const dtype of DTYPES) {
    const step = client.sendGrads({
      [`mix-${dtype}`]: tensorOf(
        dtype,
        mixed.find(([one]) => one === dtype)?.[2] ?? EXTREMES[dtype],
      ),
    });
    if (dtype.includes("float")) await step;
    else await expect(step).rejects.toMatchObject({ code: "UNSUPPORTED" });
  }

  const bools = tensorOf("bool", Uint8Array.of(1, 1, 0, 0));
  await expect(client.pushFull("bool", bools, 1, 1)).rejects.toMatchObject({ code: "UNSUPPORTED" });
  const wrong = tensorOf("bool", Uint8Array.of(1, 2, 0, 0));
  await expect(client.setParams({ bool: wrong })).rejects.toMatchObject({ code: "BAD_VALUE" });
  await expect(client.setParams({ bfloat16: new Uint16Array(4) })).rejects.toMatchObject({
    code: "BAD_DTYPE",
    message: expect.stringContaining("whose dtype is float16 or bfloat16"),
  });

  const before = await pulled(client);
  await first.kill();
  await job.host();
  const after = await pulled(client);
  for (const [name, data] of Object.entries(before)) {
    expect(bytesOf(after[name] as TensorData), name).toEqual(bytesOf(data));
  }
});
