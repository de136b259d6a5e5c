// Proves what is left of a job with its journals in memory, and what trainers can do with it: after hosts and
// broker have stopped in order, everything; after any other end the last snapshot, of which there is one since the
// job was initialized, and trainers are told what is lost; where a shard has lost even that, its parameters, or the
// job, can be initialized again.
import { jetstreamManager } from "@nats-io/jetstream";
import { connect as connectToBroker } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { watermarkKey } from "../../../src/actors/journal/watermark.ts";
import type { Client, ShardFallback } from "../../../src/client/index.ts";
import { bucketStream, type Fields, JobSubjects } from "../../../src/protocol/index.ts";
import { freeze } from "../../support/freeze.ts";
import { type HostLine, type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, MORTAL_LEASE_MS } from "../../support/limits.ts";
import { branch, cutNow } from "../history/forks.ts";
import { control } from "./control.ts";

const WAIT = { timeout: HANG_MS, interval: 50 };
const ADAM = { optimizer: "adam", learningRate: 0.5 } as const;

let job: TestJob;
let told: ShardFallback[];

beforeEach(async () => {
  told = [];
  job = await TestJob.start({ journal: "memory", shards: 2, workers: 2, leaseMs: MORTAL_LEASE_MS });
});

afterEach(async () => {
  await job.remove();
});

/** A trainer of the job that notes what it is told to be lost. */
async function trainer(id: string): Promise<Client> {
  return await job.trainer(id, { onFallback: (fallback) => told.push(fallback) });
}

/** A trainer that has initialized the job: on each shard lie blocks of the large parameter. */
async function initialized(): Promise<Client> {
  const client = await trainer("t");
  expect(await client.beginInit()).toBe(true);
  await client.initParam("a", new Float32Array(4), ADAM);
  await client.initParam("large", new Float32Array(2 * 1024 * 1024), ADAM);
  await client.finishInit();
  return client;
}

async function push(client: Client, times: number, name = "a"): Promise<void> {
  for (let i = 0; i < times; i++) await client.sendGrads({ [name]: Float32Array.of(1, 2, 3, 4) });
}

async function values(client: Client, name = "a"): Promise<unknown> {
  const [pulled] = await client.getParams([name]);
  return { data: pulled?.data, version: pulled?.version };
}

/** Ends the host, and the broker and with it what it has in memory, and starts both again. */
async function restart(host: TestHost, how: "stop" | "kill"): Promise<TestHost> {
  await host[how]();
  await job.broker[how]();
  await job.broker.start();
  return await job.host();
}

function events(host: TestHost, type: string): HostLine[] {
  return host.lines.filter((line) => line.type === type);
}

function bytesOf({ buffer, byteOffset, byteLength }: Float32Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

describe("hosts and broker that stop in order", () => {
  test("go on where they were: values, optimizers' state and the trainer's session", async () => {
    const host = await job.host();
    const client = await initialized();
    await push(client, 3);
    const before = await values(client);
    const next = await restart(host, "stop");
    expect(events(host, "unsaved")).toEqual([]);
    expect(await values(client)).toEqual(before);
    await push(client, 1);
    // The same gradients without a stop in between.
    await client.createIfNotAlreadyCreated("b", new Float32Array(4), ADAM);
    await push(client, 4, "b");
    expect((await client.pullFull("a")).data).toEqual((await client.pullFull("b")).data);
    expect(client.session).toBe(1);
    expect([told, events(next, "fell-back")]).toEqual([[], []]);
    expect(await client.beginInit()).toBe(false);
  });

  test("have all that the broker had stored, though nobody waited until it was applied", async () => {
    const host = await job.host();
    const client = await initialized();
    const sums = Array.from({ length: 200 }, () =>
      client.sendGrads({ a: Float32Array.of(1, 1, 1, 1) }, { ack: "stored" }),
    );
    await Promise.all(sums);
    await restart(host, "stop");
    expect(await values(client)).toMatchObject({ version: 201 });
  });

  test("go on after a rewind, too", async () => {
    let host = await job.host();
    const client = await initialized();
    await push(client, 2);
    const before = await values(client);
    const at = await cutNow(job);
    await push(client, 2);
    await branch(job, { at });
    expect(await values(client)).toEqual(before);
    await push(client, 1);
    const after = await values(client);
    host = await restart(host, "stop");
    expect(await values(client)).toEqual(after);
    host = await restart(host, "kill");
    expect(await values(client)).toEqual(after);
    expect(events(host, "parameters-lost")).toEqual([]);
  });
});

test("a host whose broker does not answer says which shards it could not save, and ends", async () => {
  const host = await job.host();
  await push(await initialized(), 3);
  await freeze(job.broker.current.pid);
  await host.stop();
  const unsaved = events(host, "unsaved");
  expect(unsaved.map(({ shard }) => shard).sort()).toEqual([0, 1]);
  expect(unsaved.map(({ error }) => error?.code)).toEqual(["TIMEOUT", "TIMEOUT"]);
  expect(events(host, "stopped")).toHaveLength(1);
});

describe("hosts and broker that are killed", () => {
  test("go back to the values that the job was initialized with if there is no later snapshot", async () => {
    const host = await job.host();
    const client = await initialized();
    await push(client, 3);
    // So that hosts, too, know that there was something.
    await vi.waitFor(async () => {
      const shards = (await control(job, "hosts", {}))["shards"] as Fields[];
      for (const { seq, markedSeq } of shards) expect(markedSeq).toBe(seq);
    }, WAIT);
    const next = await restart(host, "kill");
    expect(await values(client)).toEqual({ data: new Float32Array(4), version: 1 });
    expect(await client.beginInit()).toBe(false);
    await vi.waitFor(() => expect(told).toHaveLength(1), WAIT);
    await next.line(({ type }) => type === "fell-back");
    expect(events(next, "parameters-lost")).toEqual([]);
    await push(client, 1);
    expect(await values(client)).toMatchObject({ version: 2 });
  });

  test("have a parameter that was created by itself, as it was created", async () => {
    const host = await job.host();
    const client = await initialized();
    await client.createIfNotAlreadyCreated("late", Float32Array.of(5));
    await push(client, 1, "a");
    await restart(host, "kill");
    expect(await values(client, "late")).toEqual({ data: Float32Array.of(5), version: 1 });
  });
});

describe("a job that has lost its snapshots, too,", () => {
  /** Ends host and broker, and removes the snapshots and watermarks of these shards. */
  async function loseAllOf(host: TestHost, shards: readonly number[]): Promise<TestHost> {
    await host.kill();
    await job.broker.kill();
    await job.broker.start();
    const connection = await connectToBroker({ servers: job.broker.url });
    const { streams } = await jetstreamManager(connection);
    for (const shard of shards) {
      const subjects = new JobSubjects(job.job);
      await streams.purge(subjects.snapshotStream(), { filter: subjects.shardSnapshots(shard) });
      const bucket = subjects.bucket();
      await streams.purge(bucketStream(bucket), { filter: `$KV.${bucket}.${watermarkKey(shard)}` });
    }
    await connection.close();
    return await job.host();
  }

  test("is to be initialized anew", async () => {
    const first = await job.host();
    await initialized();
    const host = await loseAllOf(first, [0, 1]);
    await host.line(({ type, isJob }) => type === "parameters-lost" && isJob === true);
    const client = await trainer("u");
    expect((await client.status()).state).toBe("uninitialized");
    expect(await client.beginInit()).toBe(true);
    await client.initParam("a", Float32Array.of(1, 2, 3, 4), ADAM);
    await client.finishInit();
    expect(await values(client)).toEqual({ data: Float32Array.of(1, 2, 3, 4), version: 1 });
    await push(client, 1);
  });

  test("in one shard keeps what is left, and what is lost can be created anew", async () => {
    const first = await job.host();
    const old = await initialized();
    await old.createIfNotAlreadyCreated("kept", Float32Array.of(7));
    const kept = (await old.listParams()).find(({ name }) => name === "kept");
    const left = kept?.layout.firstShard ?? 0;
    const host = await loseAllOf(first, [1 - left]);
    await host.line(({ type, isJob }) => type === "parameters-lost" && isJob === false);
    const client = await trainer("u");
    expect(await values(client, "kept")).toEqual({ data: Float32Array.of(7), version: 1 });
    const there = (await client.listParams()).map(({ name }) => name);
    expect(there).toContain("kept");
    expect(there).not.toContain("large");
    const large = new Float32Array(2 * 1024 * 1024).fill(3);
    await client.createIfNotAlreadyCreated("large", large, ADAM);
    const [pulled] = await client.getParams(["large"]);
    // Element by element, the comparison would take a minute.
    expect(bytesOf(pulled?.data as Float32Array).equals(bytesOf(large))).toBe(true);
  });
});
