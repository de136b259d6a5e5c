// Proves what hosts do with --etcd, with real brokers, etcds and processes: leases and discovery are in
// etcd, seen through its own HTTP gateway; dead trainers and hosts are replaced; training goes on
// through outages of etcd and broker with every value right; and hosts with other settings are refused.
import { connect } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  JobSubjects,
  type LifecycleVerb,
  type PserverError,
} from "../../../src/protocol/index.ts";
import { TestEtcd } from "../../support/etcd.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, LASTING_LEASE_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { SilentLine } from "../../support/silent-line.ts";
import { checkValues, initialize, Training } from "./training.ts";

const ALL = [0, 1, 2, 3];

let etcd: TestEtcd;
let job: TestJob;

beforeEach(async () => {
  etcd = await TestEtcd.start();
});

afterEach(async () => {
  await job.remove();
  await etcd.remove();
});

async function startJob(prefix?: string, leaseMs = QUICK_LEASE_MS): Promise<TestJob> {
  const settings = { endpoints: [etcd.url], ...(prefix === undefined ? {} : { prefix }) };
  job = await TestJob.start({ etcd: settings, leaseMs });
  return job;
}

/** Keys and values below a prefix, without those that are there for good. */
async function keys(prefix = ""): Promise<Record<string, string>> {
  const entries = await etcd.list(`${prefix}/`);
  const passing = entries.filter(({ lease }) => lease !== undefined);
  return Object.fromEntries(passing.map(({ key, value }) => [key, value]));
}

async function servesAll(host: TestHost): Promise<void> {
  await host.until(() => host.serving.join() === ALL.join());
}

/** Why a host with these options does not start. */
async function refusal(options: Parameters<TestJob["spawnHost"]>[0]): Promise<unknown> {
  return (await job.spawnHost(options).line(({ type }) => type === "refused")).error;
}

/** Has a trainer selected that is never heard of again. */
async function beginAndDie(trainer: string): Promise<void> {
  const subjects = new JobSubjects(job.job);
  const connection = await connect({
    servers: job.broker.url,
    inboxPrefix: subjects.inbox(trainer),
  });
  const ask = async (verb: LifecycleVerb, fields: Fields): Promise<Fields> => {
    const subject = subjects.lifecycle(trainer, verb);
    const reply = await connection.request(subject, encodeMessage(fields), { timeout: HANG_MS });
    return decodeMessage(reply.data).fields;
  };
  const { session } = await ask("join", { token: "its-only-life" });
  expect(await ask("begin", { session })).toMatchObject({ selected: true });
  await connection.close();
}

test("broker, job, leases and the initialization are in etcd, and go with their holders", async () => {
  // No lease ends here by its time: a busy machine can pause a host for longer than the usual second.
  await startJob(undefined, LASTING_LEASE_MS);
  const one = await job.host({ id: "one" });
  const { url } = job.broker;
  expect(await keys()).toEqual({
    "/ps/0": url,
    "/ps/job": "j",
    "/ps_desired": "1",
    "/leases/j/host.one": expect.stringContaining('"one"'),
    ...Object.fromEntries(
      ALL.map((shard) => [`/leases/j/shard.${shard}`, expect.stringContaining('"one"')]),
    ),
  });
  const two = await job.host({ id: "two" });
  await etcd.until("/ps", (entries) => entries.some(({ value }) => value === "2"));
  expect(await keys()).toMatchObject({ "/ps/0": url, "/ps/1": url, "/ps_desired": "2" });

  const a = await job.trainer("a");
  expect(await a.beginInit()).toBe(true);
  expect(JSON.parse((await etcd.read("/init_ps/lock")) ?? "")).toEqual({
    trainer: "a",
    session: 1,
    epoch: 1,
  });
  const leases = await etcd.list("/leases/j/trainer.");
  const lock = (await etcd.list("/init_ps/")).find(({ key }) => key === "/init_ps/lock");
  expect(leases.map(({ key }) => key)).toEqual(["/leases/j/trainer.a"]);
  expect(lock?.lease).toBe(leases[0]?.lease);
  await a.initParam("w", Float32Array.of(1, 2));
  await a.finishInit();
  expect(await etcd.list("/init_ps/")).toEqual([
    { key: "/init_ps/done", value: "1", lease: undefined },
  ]);

  await a.close();
  await one.stop();
  await servesAll(two);
  await etcd.until("/ps", (entries) => entries.some(({ value }) => value === "1"));
  expect(await keys()).toMatchObject({ "/ps/1": url, "/ps/job": "j", "/ps_desired": "1" });
  await two.stop();
  expect(await keys()).toEqual({});
  expect((await etcd.list("/")).map(({ key }) => key)).toEqual(["/init_ps/done", "/ps_id"]);
});

test("a selected trainer that dies loses the lock, and another takes its place", async () => {
  await startJob();
  await job.host({ id: "one" });
  await beginAndDie("dead");
  expect(await etcd.read("/init_ps/lock")).toContain('"dead"');
  const next = await job.trainer("next");
  expect(await next.beginInit({ wait: false })).toBe(false);
  expect(await next.beginInit()).toBe(true);
  expect(await etcd.read("/init_ps/lock")).toContain('"next"');
  await next.initParam("w", Float32Array.of(1));
  await next.finishInit();
  expect(await etcd.read("/init_ps/done")).toBe("1");
});

test("trains on through the death of a host, and its keys vanish", async () => {
  await startJob("/team/mnist");
  const one = await job.host({ id: "one" });
  const clients = [await job.trainer("a"), await job.trainer("b")] as const;
  await initialize(clients[0], 2);
  const training = new Training(clients);
  const two = await job.host({ id: "two" });
  await two.until(() => two.serving.length > 0);
  await training.progress();
  await two.kill();
  await servesAll(one);
  await training.progress();
  await etcd.until("/team/mnist/ps/", (entries) => !entries.some(({ key }) => key.endsWith("/1")));
  await etcd.until("/team/mnist/leases/j/host.", (entries) => entries.length === 1);
  expect(await keys("/ps")).toEqual({});
  await checkValues(job, clients[0], await training.end());
});

test("etcd dies and comes back: hosts stop answering, take their leases again and continue", async () => {
  await startJob();
  const one = await job.host({ id: "one" });
  const clients = [await job.trainer("a"), await job.trainer("b")] as const;
  await initialize(clients[0], 2);
  const training = new Training(clients);
  await training.progress();
  await etcd.kill();
  await one.line(({ type }) => type === "etcd-lost");
  // The host's own lease has run out on its clock, so those of its shards have.
  await one.line(({ type, error }) => type === "error" && error?.code === "NOT_OWNER");
  const answer = (): Promise<unknown> =>
    clients[0].pullFull("count-0", { timeoutMs: 500 }).then(
      () => "answered",
      ({ retryable }: PserverError) => ({ retryable }),
    );
  await expect.poll(answer, { timeout: HANG_MS }).toEqual({ retryable: true });
  await etcd.start();
  await one.line(({ type }) => type === "etcd-back");
  await training.progress();
  await etcd.until("/ps/", (entries) => entries.length === 2);
  expect(await etcd.read("/init_ps/done")).toBe("1");
  await checkValues(job, clients[0], await training.end());
  const failed = one.lines.filter(
    ({ type, error }) => type === "shard-failed" && error?.code !== "NOT_OWNER",
  );
  expect(failed).toEqual([]);
});

test("etcd comes back without its data: all keys of the running job are written again", async () => {
  await startJob();
  await job.host({ id: "one" });
  const client = await job.trainer("a");
  await initialize(client, 1);
  const training = new Training([client]);
  await training.progress();
  await etcd.kill();
  await etcd.forget();
  // Back before the host has asked again, maybe: then it never was away.
  await etcd.start();
  await training.progress();
  await etcd.until("/leases/j/", (entries) => entries.length === ALL.length + 2);
  await etcd.until("/ps/", (entries) => entries.length === 2);
  await etcd.until("/init_ps/", (entries) => entries.some(({ value }) => value === "1"));
  await checkValues(job, client, await training.end());
});

test("an etcd that is frozen for less than a lease is not noticed by trainers", async () => {
  job = await TestJob.start({ etcd: { endpoints: [etcd.url] }, leaseMs: 12_000 });
  const one = await job.host({ id: "one" });
  const client = await job.trainer("a");
  await initialize(client, 1);
  const training = new Training([client]);
  await training.progress();
  await freeze(etcd.pid);
  await one.line(({ type }) => type === "etcd-lost");
  await training.progress();
  thaw(etcd.pid);
  await one.line(({ type }) => type === "etcd-back");
  await training.progress();
  await checkValues(job, client, await training.end());
  expect(one.lines.filter(({ type }) => type === "error")).toEqual([]);
});

test("while the broker is away nobody holds a lease, and nobody is replaced for it", async () => {
  await startJob();
  await job.host({ id: "one" });
  const selected = await job.trainer("selected");
  const other = await job.trainer("other");
  expect(await selected.beginInit()).toBe(true);
  await selected.initParam("w", Float32Array.of(1, 2));
  await job.broker.kill();
  await etcd.until("/leases/", (entries) => entries.length === 0);
  await etcd.until("/ps/", (entries) => entries.length === 0);
  await job.broker.start();
  expect(await other.beginInit({ wait: false })).toBe(false);
  await selected.finishInit();
  expect([...(await other.pullFull("w")).data]).toEqual([1, 2]);
});

test("a host that has lost the broker, but not etcd, loses its shards", async () => {
  await startJob();
  const one = await job.host({ id: "one" });
  await using line = await SilentLine.open(job.broker.port);
  const two = await job.host({
    id: "two",
    connection: { servers: [line.url], timeoutMs: HANG_MS },
    etcd: { endpoints: [etcd.url], advertise: [job.broker.url] },
  });
  await two.until(() => two.serving.length > 0);
  expect(await keys()).toMatchObject({ "/ps/1": job.broker.url });
  line.silence();
  await servesAll(one);
  await etcd.until("/ps/", (entries) => entries.length === 2);
});

test("a host stops in order while etcd is away", async () => {
  await startJob();
  const one = await job.host({ id: "one" });
  await etcd.kill();
  await one.line(({ type }) => type === "etcd-lost");
  await one.stop();
  expect(one.lines.at(-1)).toEqual({ type: "stopped" });
});

describe("a host is refused", () => {
  test("where there is no etcd, with a typed error in bounded time", async () => {
    await startJob();
    await etcd.kill();
    expect(await refusal({})).toMatchObject({
      code: "NO_ETCD",
      message: expect.stringContaining(etcd.url),
    });
    // Nothing of the job was made.
    await etcd.start();
    await job.host({ etcd: { endpoints: [etcd.url] } });
  });

  test("with a setting that is none", async () => {
    await startJob();
    const settings = { endpoints: [etcd.url], prefix: "without-a-slash" };
    expect(await refusal({ etcd: settings })).toMatchObject({ code: "BAD_VALUE" });
  });

  test("with leases elsewhere than the job's: none, another prefix, another etcd", async () => {
    await startJob();
    await job.host({ id: "one" });
    const id = await etcd.read("/ps_id");
    const other = await TestEtcd.start();
    try {
      const refused = { code: "JOB_EXISTS", message: expect.stringContaining(`etcd ${id}`) };
      const kv = new TestHost({
        connection: { servers: [job.broker.url], timeoutMs: HANG_MS },
        job: job.job,
      });
      job.hosts.push(kv);
      expect((await kv.line(({ type }) => type === "refused")).error).toMatchObject({
        ...refused,
        details: { setting: "leases", expected: `etcd ${id}`, received: "kv" },
      });
      const settings = { endpoints: [etcd.url], prefix: "/p" };
      expect(await refusal({ etcd: settings })).toMatchObject(refused);
      expect(await refusal({ etcd: { endpoints: [other.url] } })).toMatchObject(refused);
    } finally {
      await other.remove();
    }
  });

  test("with the prefix of another job whose hosts are alive; without them it may have it", async () => {
    await startJob();
    const one = await job.host({ id: "one" });
    expect(await refusal({ job: "k" })).toMatchObject({
      code: "JOB_EXISTS",
      details: { expected: "j", received: "k" },
    });
    await one.stop();
    await job.host({ job: "k" });
    expect(await keys()).toMatchObject({ "/ps/job": "k" });
  });

  test("by a job whose etcd has lost its data, until its identity is put back", async () => {
    await startJob();
    const one = await job.host({ id: "one" });
    const id = (await etcd.read("/ps_id")) ?? "";
    await one.stop();
    await etcd.delete("/ps_id");
    expect(await refusal({})).toMatchObject({ code: "JOB_EXISTS" });
    await etcd.put("/ps_id", id);
    await job.host();
  });
});
