// Proves that a host which cannot work on a broker or in a job says so with a code when it starts, and that
// the answers to wrong saves and other control requests say what is wrong.
import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import { findBroker } from "../../../src/broker/index.ts";
import type { BrokerOptions } from "../../../src/broker/start-broker.ts";
import type { Client } from "../../../src/client/index.ts";
import { type HostLine, TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { control } from "./control.ts";

let job: TestJob;
const directories: string[] = [];

afterEach(async () => {
  await job.remove();
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true });
});

async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "pserver-model-"));
  directories.push(directory);
  return directory;
}

describe("a host that cannot start", () => {
  async function refusal(options: Partial<HostOptions> = {}): Promise<HostLine> {
    const host = job.spawnHost(options);
    await host.exited;
    return host.lines.at(-1) ?? { type: "nothing" };
  }

  async function start(broker: Partial<BrokerOptions> = {}): Promise<void> {
    job = await TestJob.start({}, broker);
  }

  test("on a broker whose messages are too small", async () => {
    await start({ extraConfig: "max_payload: 64KB" });
    expect(await refusal()).toMatchObject({
      type: "refused",
      error: { code: "PAYLOAD_TOO_SMALL", details: { received: 64 * 1024 } },
    });
  });

  test("on a broker without storage for the journals", async () => {
    await start({ jetstreamConfig: "max_file_store: 16MB" });
    expect(await refusal()).toMatchObject({ type: "refused", error: { code: "NO_SPACE" } });
  });

  test("on a broker without storage for the journals, unless the job is there already", async () => {
    const journalBytesMax = 4 * 1024 ** 2;
    await start({ jetstreamConfig: "max_file_store: 64MB" });
    await (await job.host({ journalBytesMax })).stop();
    await job.broker.stop();
    // Less than the job has reserved: whatever is asked for is refused.
    await job.broker.start({ jetstreamConfig: "max_file_store: 8MB" });
    const again = await job.host();
    expect(again.serving).toEqual([0, 1, 2, 3]);
    expect(await refusal({ job: "other" })).toMatchObject({ error: { code: "NO_SPACE" } });
  });

  test("without JetStream", async () => {
    await start({ extraConfig: "accounts { A { users [ { user: a, password: a } ] } }" });
    const connection = {
      servers: [job.broker.url],
      user: "a",
      password: "a",
      timeoutMs: HANG_MS,
    };
    expect(await refusal({ connection })).toMatchObject({
      type: "refused",
      error: { code: "NO_JETSTREAM" },
    });
    expect(await refusal({ connection: { ...connection, password: "b" } })).toMatchObject({
      type: "refused",
      error: { code: "DENIED" },
    });
  });

  test("on a broker that runs without JetStream altogether, at once", async () => {
    await start();
    const directory = await temporary();
    const { path } = await findBroker();
    const flags = ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", directory];
    const broker = spawn(path, flags, { stdio: "ignore" });
    try {
      const told = async (): Promise<string | undefined> => {
        const [file] = await readdir(directory);
        const text = file === undefined ? "" : await readFile(join(directory, file), "utf8");
        return /"nats":\["([^"]+)"/.exec(text)?.[1];
      };
      const url = await vi.waitUntil(told, { timeout: HANG_MS });
      const connection = { servers: [url], timeoutMs: HANG_MS };
      expect(await refusal({ connection })).toMatchObject({
        type: "refused",
        error: { code: "NO_JETSTREAM" },
      });
    } finally {
      broker.kill("SIGKILL");
    }
  });

  test("without a broker", async () => {
    await start();
    const connection = { servers: ["nats://127.0.0.1:9"], timeoutMs: 300 };
    expect(await refusal({ connection })).toMatchObject({
      type: "refused",
      error: { code: "NO_BROKER" },
    });
  });

  test("under the id of one that is alive, or with other settings than the job's", async () => {
    await start();
    await job.host({ id: "one" });
    expect(await refusal({ id: "one" })).toMatchObject({
      type: "refused",
      error: { code: "JOB_EXISTS", details: { received: "one" } },
    });
    expect(await refusal({ shards: 5 })).toMatchObject({
      error: { code: "JOB_EXISTS", details: { setting: "shards", expected: 4, received: 5 } },
    });
    expect(await refusal({ journal: "memory" })).toMatchObject({
      error: { code: "JOB_EXISTS", details: { setting: "journal" } },
    });
  });
});

describe("a model", () => {
  async function trained(options: Partial<HostOptions>): Promise<Client> {
    job = await TestJob.start(options);
    await job.host();
    const client = await job.trainer("a");
    await client.beginInit();
    await client.initParam("w", Float32Array.of(1.5, -2));
    await client.initParam("n", BigInt64Array.of(7n));
    await client.finishInit();
    return client;
  }

  test("is saved below the model directory in each format", async () => {
    const modelDirectory = await temporary();
    const client = await trained({ modelDirectory });
    for (const [path, format] of [
      ["model.safetensors", "safetensors"],
      ["model.npz", "npz"],
      ["model.tar", "tar"],
    ] as const) {
      const saved = await client.saveModel(path);
      const { size } = await stat(join(modelDirectory, path));
      expect(saved).toMatchObject({ bytes: size, format });
    }
    const file = await readFile(join(modelDirectory, "model.safetensors"));
    const header = JSON.parse(file.subarray(8, 8 + Number(file.readBigUInt64LE())).toString());
    const [start, end] = header.w.data_offsets as [number, number];
    const data = file.subarray(file.length - 16);
    expect(data.subarray(start, end)).toEqual(Buffer.from(Float32Array.of(1.5, -2).buffer));
  });

  test("is saved nowhere else", async () => {
    const modelDirectory = await temporary();
    const client = await trained({ modelDirectory });
    for (const path of ["../model.npz", "/tmp/model.npz", "", "a\0b.npz"]) {
      await expect(client.saveModel(path), path).rejects.toMatchObject({ code: "BAD_PATH" });
    }
    await expect(control(job, "save", {})).rejects.toMatchObject({ code: "BAD_MESSAGE" });
  });

  // Only root may mount a file system that is small enough to fill.
  test.skipIf(process.getuid?.() !== 0)(
    "that the disk has no space for is refused",
    async ({ skip }) => {
      const modelDirectory = await temporary();
      const options = ["-t", "tmpfs", "-o", "size=64k", "tmpfs", modelDirectory];
      skip(spawnSync("mount", options).status !== 0, "may not mount here");
      try {
        // By default a model of this size would be beyond the quota that such a disk gives.
        const quotas = { saveBytesMax: 1e9, trainerSaveBytesMax: 1e9 };
        const client = await trained({ modelDirectory, ...quotas });
        await client.saveModel("small.npz");
        await client.createIfNotAlreadyCreated("big", new Float64Array(20_000));
        await expect(client.saveModel("full.npz")).rejects.toMatchObject({ code: "DISK_FULL" });
        expect((await readdir(modelDirectory)).sort()).toEqual([".pserver-saves", "small.npz"]);
        await client.setParams({ w: Float32Array.of(3, 4) });
        expect((await client.pullFull("w")).data).toEqual(Float32Array.of(3, 4));
      } finally {
        spawnSync("umount", ["--lazy", modelDirectory]);
      }
    },
  );

  test("is not saved on a host without a model directory, nor before there is one", async () => {
    const client = await trained({});
    await expect(client.saveModel("m.npz")).rejects.toMatchObject({ code: "BAD_PATH" });
    await job.remove();
    job = await TestJob.start({ modelDirectory: await temporary() });
    await job.host();
    const other = await job.trainer("a");
    await expect(other.saveModel("m.npz")).rejects.toMatchObject({ code: "NOT_INITIALIZED" });
  });
});

test("hosts, trainers and shards are told of", async () => {
  job = await TestJob.start();
  await job.host({ id: "one" });
  await job.trainer("a");
  expect(await control(job, "hosts", {})).toMatchObject({
    hosts: [{ host: "one", shards: [0, 1, 2, 3] }],
    trainers: ["a"],
    shards: [0, 1, 2, 3].map((shard) => ({ shard, state: "serving", generation: 1 })),
  });
});
