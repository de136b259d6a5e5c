// Proves what becomes of a job whose broker comes back with an empty store while hosts and trainers run: hosts end
// with the reason, what they had does not get into the job that is made anew, and it can be initialized by trainers that
// connect anew; those that were there are told. A host that was away meanwhile does no harm when it is back.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Client, connect } from "../../../src/client/index.ts";
import { ensureError } from "../../../src/protocol/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestEtcd } from "../../support/etcd.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS, MORTAL_LEASE_MS } from "../../support/limits.ts";
import { control } from "./control.ts";

const WAIT = { timeout: HANG_MS, interval: 50 };

let job: TestJob;

afterEach(() => job.remove());

async function initialize(client: Client, value: number): Promise<void> {
  expect(await client.beginInit()).toBe(true);
  await client.initParam("w", Float32Array.of(value), { learningRate: 1 });
  await client.finishInit();
}

async function emptyBroker(): Promise<void> {
  await job.broker.kill();
  await rm(job.broker.storeDir, { recursive: true });
  await job.broker.start();
}

/** Waits until a host has ended by itself, and returns the code of the reason. */
async function endOf(host: TestHost): Promise<string | undefined> {
  await host.exited;
  return host.lines.find(({ type }) => type === "stopped")?.error?.code;
}

/** Whether the job is initialized, according to etcd. */
async function done(etcd: TestEtcd): Promise<string | undefined> {
  return (await etcd.list("/init_ps/done"))[0]?.value;
}

async function states(): Promise<unknown> {
  const { shards } = await control(job, "hosts", {});
  return (shards as { state: string }[]).map(({ state }) => state);
}

test("a job with its leases in etcd, which outlast the broker's data, can be joined and initialized again", async () => {
  const etcd = await TestEtcd.start();
  onTestFinished(() => etcd.remove());
  const endpoints = [etcd.url];
  job = await TestJob.start({
    shards: 2,
    workers: 1,
    leaseMs: LASTING_LEASE_MS,
    etcd: { endpoints },
  });
  const host = await job.host();
  // Its session is a later one than the first of the job that is made anew.
  for (const other of ["x", "y"]) await (await job.trainer(other)).close();
  await initialize(await job.trainer("t"), 1);
  expect(await done(etcd)).toBe("1");
  await emptyBroker();
  expect(await endOf(host)).toBe("JOB_DAMAGED");
  const next = await job.host();
  await expect.poll(() => done(etcd), WAIT).toBeUndefined();
  const again = await job.trainer("t");
  await initialize(again, 7);
  expect((await again.pullFull("w")).data).toEqual(Float32Array.of(7));
  expect(next.lines.filter(({ type }) => type === "shard-failed")).toEqual([]);
});

describe.each(["file", "memory"] as const)("a job with its journals in %s", (journal) => {
  test("is made anew by the next host; new trainers initialize it again, and those that were there are told", async () => {
    job = await TestJob.start({ shards: 2, workers: 1, journal, leaseMs: MORTAL_LEASE_MS });
    const host = await job.host();
    const client = await job.trainer("t");
    await initialize(client, 1);
    for (let i = 0; i < 9; i++) await client.pushFull("w", Float32Array.of(1), 1, 1);
    await emptyBroker();
    expect(await endOf(host)).toBe("JOB_DAMAGED");
    const next = await job.host();
    const fresh = await job.trainer("fresh");
    expect((await fresh.status()).state).toBe("uninitialized");
    await initialize(fresh, 7);
    // More records than the former trainer has seen.
    for (let i = 0; i < 20; i++) await fresh.pushFull("w", Float32Array.of(1), 1, 1);
    const message = expect.stringMatching(/connect it anew/);
    const replaced = { code: "JOB_REPLACED", message };
    await expect(client.pushFull("w", Float32Array.of(100), 1, 1)).rejects.toMatchObject(replaced);
    await expect(client.pullFull("w")).rejects.toMatchObject(replaced);
    expect((await fresh.pullFull("w")).data).toEqual(Float32Array.of(27));
    await next.stop();
    await job.host();
    expect(await states()).toEqual(["serving", "serving"]);
    expect((await fresh.pullFull("w")).data).toEqual(Float32Array.of(27));
  });

  test("gets nothing from a host that was away while it was made anew", async () => {
    job = await TestJob.start({ shards: 2, workers: 1, journal, leaseMs: MORTAL_LEASE_MS });
    const away = await job.host();
    const client = await job.trainer("t");
    await initialize(client, 1);
    for (let i = 0; i < 9; i++) await client.pushFull("w", Float32Array.of(1), 1, 1);
    await freeze(away.pid);
    await emptyBroker();
    const next = await job.host();
    thaw(away.pid);
    expect(await endOf(away)).toBe("JOB_DAMAGED");
    const fresh = await connect({ url: job.broker.url, job: job.job, trainer: "fresh" });
    await initialize(fresh, 7);
    await vi.waitFor(async () => expect(await states()).toEqual(["serving", "serving"]), WAIT);
    await next.kill();
    await job.host();
    await vi.waitFor(async () => expect(await states()).toEqual(["serving", "serving"]), WAIT);
    expect((await fresh.pullFull("w")).data).toEqual(Float32Array.of(7));
    await fresh.close();
  });
});

test("a host says what can be done, and a job goes on from its archive and a saved model as the host says", async () => {
  const directory = await mkdtemp(join(tmpdir(), "pserver-emptied-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const pserver = (...args: string[]): Promise<Finished> => run([...args, "--url", job.broker.url]);
  job = await TestJob.start({
    ...{ shards: 2, workers: 1, leaseMs: MORTAL_LEASE_MS, modelDirectory: directory },
  });
  const host = await job.host();
  const client = await job.trainer("t");
  await initialize(client, 1);
  for (let i = 0; i < 9; i++) await client.pushFull("w", Float32Array.of(1), 1, 1);
  const archive = join(directory, "archive");
  expect(await pserver("archive", archive, "--once", "--job", "j")).toMatchObject({ code: 0 });
  expect(await pserver("save", "m.safetensors", "--job", "j")).toMatchObject({ code: 0 });
  await emptyBroker();
  await host.exited;
  const reason = host.lines.find(({ type }) => type === "stopped")?.error?.message;
  expect(reason).toMatch(
    /pserver load.*pserver fork j --archive DIR --no-broker --at now --as NEW/,
  );

  const fork = ["fork", "j", "--archive", archive, "--no-broker", "--at", "now", "--as", "k"];
  expect(await pserver(...fork)).toMatchObject({ code: 0 });
  await job.host({ job: "k", leaseMs: MORTAL_LEASE_MS });
  const forked = await connect({ url: job.broker.url, job: "k", trainer: "t" });
  onTestFinished(() => forked.close());
  expect((await forked.pullFull("w")).data).toEqual(Float32Array.of(10));

  await job.host();
  // Its session was of the former job, and it is told.
  const refused = await client.pullFull("w", { timeoutMs: HANG_MS }).then(
    () => undefined,
    (error: unknown) => ensureError(error).code,
  );
  expect(refused).toBe("JOB_REPLACED");
  const load = ["load", join(directory, "m.safetensors"), "--job", "j"];
  expect(await pserver(...load)).toMatchObject({ code: 0 });
  const again = await connect({ url: job.broker.url, job: "j", trainer: "t" });
  onTestFinished(() => again.close());
  expect((await again.pullFull("w")).data).toEqual(Float32Array.of(10));
});
