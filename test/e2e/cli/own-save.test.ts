// Proves, with the compiled command on a real broker and host, that a job's own save loads again into that
// job, though the file holds the sparse shards of a parameter as one tensor.
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
  } as const;
  await client.beginInit();
  for (const [name, tensor] of Object.entries(values)) await client.initParam(name, tensor);
  await client.finishInit();
  expect(await pserver("save", path)).toMatchObject({ code: 0 });
  for (const [name, { shape, data, dtype }] of Object.entries(values)) {
    await client.setParams({ [name]: { dtype, shape, data: data.map((x) => -x) } });
  }
  const loaded = await pserver("load", join(models, path), "--overwrite", "--json");
  expect(loaded).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(loaded.stdout)).toMatchObject({ parameters: 3, bytes: 28, overwritten: true });
  const names = Object.keys(values);
  const found = await client.getParams(names);
  expect(found.map(({ data }) => data)).toEqual(Object.values(values).map(({ data }) => data));
});
