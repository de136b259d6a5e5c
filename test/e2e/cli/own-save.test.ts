// Proves, with the compiled command on a real broker and host, that a job's own save loads again into that
// job, bit for bit, though the file holds the sparse shards of a parameter as one tensor, and that single parameters of
// half floats and bools are written and read as arrays and as JSON.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";

let job: TestJob;
let models: string;

beforeEach(async () => {
  models = await mkdtemp(join(tmpdir(), "pserver-own-save-"));
  job = await TestJob.start();
});

afterEach(async () => {
  await job.remove();
  await rm(models, { recursive: true, force: true });
});

const pserver = (...args: string[]): Promise<Finished> =>
  run([...args, "--url", job.broker.url, "--job", "j"]);

test.each(["m.npz", "m.safetensors", "m.tar", "m/"])("saved as %s", async (path) => {
  await job.host({ modelDirectory: models });
  const client = await job.trainer("a");
  const values = {
    "words:sparse-0": { dtype: "float32", shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) },
    "words:sparse-1": { dtype: "float32", shape: [1, 2], data: Float32Array.of(5, 6) },
    w: { dtype: "float32", shape: [1], data: Float32Array.of(7) },
    // NaNs of any bits, infinities and denormals.
    bf16: { dtype: "bfloat16", shape: [2, 2], data: Uint16Array.of(0x7fc1, 0xff80, 1, 0x3f80) },
    f16: { dtype: "float16", shape: [3], data: Uint16Array.of(0xfe01, 0x7c00, 1) },
    flags: { dtype: "bool", shape: [3], data: Uint8Array.of(1, 0, 1) },
    codes: { dtype: "uint8", shape: [2], data: Uint8Array.of(255, 3) },
    signs: { dtype: "int8", shape: [2], data: Int8Array.of(-128, 127) },
  } as const;
  await client.beginInit();
  for (const [name, tensor] of Object.entries(values)) {
    await client.initParam(name, tensor, { allowNonFinite: true });
  }
  await client.finishInit();
  expect(await pserver("save", path)).toMatchObject({ code: 0 });
  for (const [name, { shape, data, dtype }] of Object.entries(values)) {
    await client.setParams({ [name]: { dtype, shape, data: data.map(() => 0) } });
  }
  const loaded = await pserver("load", join(models, path), "--overwrite", "--json");
  expect(loaded).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(loaded.stdout)).toMatchObject({ parameters: 8, bytes: 49, overwritten: true });
  const names = Object.keys(values);
  const found = await client.getParams(names);
  expect(found.map(({ data }) => data)).toEqual(Object.values(values).map(({ data }) => data));
  expect(found.map(({ dtype }) => dtype)).toEqual(Object.values(values).map(({ dtype }) => dtype));
});

test.each([".npy", ".json", ".bin"])("half floats and bools as %s", async (ending) => {
  await job.host();
  const client = await job.trainer("a");
  const values = {
    bf16: { dtype: "bfloat16", shape: [4], data: Uint16Array.of(0x3dcd, 0xc020, 1, 0x7f7f) },
    f16: { dtype: "float16", shape: [2, 2], data: Uint16Array.of(0x2e66, 0xc100, 1, 0x7bff) },
    flags: { dtype: "bool", shape: [2], data: Uint8Array.of(1, 0) },
  } as const;
  await client.beginInit();
  for (const [name, tensor] of Object.entries(values)) await client.initParam(name, tensor);
  await client.finishInit();
  for (const [name, { data, dtype, shape }] of Object.entries(values)) {
    const path = join(models, name + ending);
    expect(await pserver("get", name, "--out", path)).toMatchObject({ code: 0 });
    await client.setParams({ [name]: { dtype, shape, data: data.map(() => 0) } });
    expect(await pserver("set", name, path)).toMatchObject({ code: 0 });
    expect((await client.pullFull(name)).data).toEqual(data);
  }
  const { stdout } = await pserver("get", "bf16", "--json");
  expect(JSON.parse(stdout)).toMatchObject({
    dtype: "bfloat16",
    values: [0.1, -2.5, 9e-41, 3.39e38],
  });
  expect((await pserver("get", "flags")).stdout).toContain("[ True False]");
});
