// Proves on a real broker what the lifecycle builds on: records change by compare-and-swap across
// connections, leases end at the broker and that is noticed, both survive its crash, and several
// hosts on connections of their own make one job. Each file of tests has a broker of its own.

import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { quotasOf } from "../../src/actors/job/job-settings.ts";
import { KvLeases, LeaseKeeper, LeaseView } from "../../src/actors/job/leases.ts";
import { BucketChain } from "../../src/actors/journal/bucket-chain.ts";
import {
  type KvBucket,
  openBucket,
  openExistingBucket,
} from "../../src/actors/journal/kv-bucket.ts";

import { createLifecycle, type LifecycleService } from "../../src/actors/lifecycle/service.ts";
import {
  decodeMessage,
  encodeMessage,
  type Fields,
  type LifecycleVerb,
  PserverError,
  parseBeginReply,
  parseParameters,
} from "../../src/protocol/index.ts";
import { startTestBroker, type TestBroker } from "../support/broker.ts";
import { HANG_MS, LASTING_LEASE_MS } from "../support/limits.ts";
import { MemoryOwners } from "../support/memory-owners.ts";

const LEASE_MS = 1_000;

/** Of a lease that is kept: a request may take a fifth of it, also on a busy machine. */
const KEPT_LEASE_MS = 6_000;

let broker: TestBroker;
let one: NatsConnection;
let two: NatsConnection;
let buckets = 0;

beforeAll(async () => {
  broker = await startTestBroker();
  const options = { servers: broker.url, maxReconnectAttempts: -1, reconnectTimeWait: 50 };
  [one, two] = await Promise.all([connect(options), connect(options)]);
});

afterAll(async () => {
  await Promise.all([one?.close(), two?.close()]);
  await broker?.remove();
});

/** The same new bucket over both connections. */
async function openBoth(ttlMs?: number): Promise<{ name: string; records: [KvBucket, KvBucket] }> {
  const name = `PS_test${++buckets}`;
  const times = ttlMs === undefined ? { timeoutMs: HANG_MS } : { ttlMs };
  const options = { bucket: name, storage: "file" as const, ...times };
  const open = (connection: NatsConnection): Promise<KvBucket> =>
    openBucket({ ...options, connection });
  return { name, records: await Promise.all([open(one), open(two)]) };
}

/** Asks again until `check` gives something; the test's own time limit ends it. */
async function eventually<Result>(check: () => Promise<Result | undefined>): Promise<Result> {
  for (;;) {
    const result = await check();
    if (result !== undefined) return result;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The result of `run` once the broker is back. */
function onceBack<Result>(run: () => Promise<Result>): Promise<{ result: Result }> {
  return eventually(async () => {
    try {
      return { result: await run() };
    } catch (error) {
      if (error instanceof PserverError && error.code !== "INTERNAL") return undefined;
      throw error;
    }
  });
}

describe("records", () => {
  test("of 50 concurrent creates over two connections one wins", async () => {
    const { records } = await openBoth();
    const creates = await Promise.all(
      Array.from({ length: 50 }, (_, i) => records[i % 2 ? 1 : 0].create("job", { winner: i })),
    );
    const winners = creates.flatMap((revision, i) => (revision === undefined ? [] : [i]));
    expect(winners).toHaveLength(1);
    expect((await records[0].read("job"))?.value).toEqual({ winner: winners[0] });
  });

  test("change only at the revision that was read, on either connection", async () => {
    const { records } = await openBoth();
    const [first, second] = records;
    const created = (await first.create("param.a=2Eb-_1", { n: 1 })) ?? 0;
    const updated = await second.update("param.a=2Eb-_1", { n: 2 }, created);
    expect(updated).toBeGreaterThan(created);
    expect(await first.update("param.a=2Eb-_1", { n: 3 }, created)).toBeUndefined();
    expect(await first.remove("param.a=2Eb-_1", created)).toBe(false);
    expect(await first.read("param.a=2Eb-_1")).toEqual({ value: { n: 2 }, revision: updated });
    expect(await first.read("param.other")).toBeUndefined();
    expect(await first.update("param.other", {}, 1)).toBeUndefined();
  });

  test("once removed are gone from lists and can be created again", async () => {
    const { records } = await openBoth();
    const [first, second] = records;
    const revision = (await first.create("param.a", 1)) ?? 0;
    await first.create("param.b", 2);
    await first.create("job", 3);
    expect((await second.keys("param.")).toSorted()).toEqual(["param.a", "param.b"]);
    expect(await second.remove("param.a", revision)).toBe(true);
    expect(await second.remove("param.a", revision)).toBe(false);
    expect(await first.keys("param.")).toEqual(["param.b"]);
    expect(await first.read("param.a")).toBeUndefined();
    expect(await first.create("param.a", 4)).toBeGreaterThan(revision);
  });

  test("of a chain are stored in order, thousands at a time, until somebody else writes anything", async () => {
    const { records } = await openBoth();
    const [first, second] = records;
    const created = (await first.create("settings", 0)) ?? 0;
    const start = (await first.update("settings", 1, created, BucketChain.firstId("run"))) ?? 0;
    const overtaken = new PserverError("BUSY", "overtaken");
    const chain = new BucketChain(first, "run", () => overtaken);
    const entries = Array.from({ length: 3_000 }, (_, i) => [`param.${i}`, { i }] as const);
    await chain.write(entries);
    expect(await first.read("param.2999")).toEqual({
      value: { i: 2_999 },
      revision: start + 3_000,
    });
    await chain.write([["param.0", { again: true }]]);
    await second.create("other", 1);
    await expect(
      chain.write([
        ["param.1", 1],
        ["param.new", 1],
      ]),
    ).rejects.toBe(overtaken);
    expect((await second.read("param.1"))?.value).toEqual({ i: 1 });
    expect(await second.read("param.new")).toBeUndefined();
  });

  test("of a chain are made once if they are repeated", async () => {
    const [first] = (await openBoth()).records;
    const created = (await first.create("settings", 0)) ?? 0;
    await first.update("settings", 1, created, "run-0");
    const revision = await first.writeAfter("param.a", 1, "run-1", "run-0");
    expect(revision).toBe(created + 2);
    expect(await first.writeAfter("param.a", 1, "run-1", "run-0")).toBe(revision);
    expect(await first.writeAfter("param.b", 1, "run-2", "run-0")).toBeUndefined();
    expect(await first.writeAfter("param.b", 1, "run-2", "run-1")).toBe(created + 3);
  });

  test("in a bucket that is kept in another way are refused, naming both ways", async () => {
    const { name } = await openBoth();
    const opened = openBucket({ connection: one, bucket: name, storage: "memory" });
    await expect(opened).rejects.toMatchObject({
      code: "JOB_EXISTS",
      message: expect.stringMatching(/expected .*memory.*; received .*file/),
    });
    const expiring = openBucket({ connection: one, bucket: name, storage: "file", ttlMs: 1000 });
    await expect(expiring).rejects.toMatchObject({ code: "JOB_EXISTS" });
  });

  test("in a bucket that does not exist are not readable, and reading makes none", async () => {
    const missing = await openExistingBucket(one, "PS_missing");
    const refusal = { code: "JETSTREAM_UNAVAILABLE" };
    await expect(missing.read("job")).rejects.toMatchObject(refusal);
    await expect(missing.keys("param.")).rejects.toMatchObject(refusal);
    const manager = await jetstreamManager(one);
    await expect(manager.streams.info("KV_PS_missing")).rejects.toThrow("stream not found");
  });

  test("are followed over another connection, each as it was written last", async () => {
    const { records } = await openBoth();
    const [first, second] = records;
    const follow = async (after: number): Promise<{ seen: unknown[]; upTo: number }> => {
      const seen: unknown[] = [];
      const upTo = await second.changes("param.", after, (key, { value, revision }) => {
        seen.push([key, value, revision]);
      });
      return { seen, upTo };
    };
    expect(await follow(0)).toEqual({ seen: [], upTo: 0 });
    const keys = Array.from({ length: 5_000 }, (_, i) => `param.p_${i}`);
    const revisions = await Promise.all(keys.map((key) => first.create(key, { v: 1 })));
    const all = await follow(0);
    expect(all.seen).toEqual(keys.map((key, i) => [key, { v: 1 }, revisions[i]]));
    const job = (await first.create("job", { v: 2 })) ?? 0;
    expect(await follow(all.upTo)).toEqual({ seen: [], upTo: job });
    const again = (await first.update("param.p_7", { v: 3 }, revisions[7] ?? 0)) ?? 0;
    expect(await follow(all.upTo)).toEqual({ seen: [["param.p_7", { v: 3 }, again]], upTo: again });
  });

  test("10,000 are listed over another connection", async () => {
    const { records } = await openBoth();
    const names = Array.from({ length: 10_000 }, (_, i) => `param.p_${i}`);
    for (let from = 0; from < names.length; from += 500) {
      const page = names.slice(from, from + 500);
      await Promise.all(page.map((key) => records[0].create(key, { key })));
    }
    expect((await records[1].keys("param.")).toSorted()).toEqual(names.toSorted());
  });

  test("that somebody else has written as no JSON are refused by name", async () => {
    const { name, records } = await openBoth();
    await one.request(`$KV.${name}.job`, "{");
    await expect(records[0].read("job")).rejects.toMatchObject({
      code: "JOB_DAMAGED",
      message: expect.stringContaining("entry job"),
    });
  });

  test("in a bucket that was deleted give an error that says so", async () => {
    const manager = await jetstreamManager(one);
    const { name, records } = await openBoth();
    await manager.streams.delete(`KV_${name}`);
    const [first] = records;
    const missing = { code: "JETSTREAM_UNAVAILABLE", details: { bucket: name } };
    await expect(first.create("k", 1)).rejects.toMatchObject(missing);
    await expect(first.update("k", 1, 1)).rejects.toMatchObject(missing);
    await expect(first.keys("k.")).rejects.toMatchObject(missing);
  });
});

describe("leases", () => {
  test("end by themselves, and a view on another connection notices", async () => {
    const { records } = await openBoth(LEASE_MS);
    const [first, second] = records.map((each) => new KvLeases(each));
    if (first === undefined || second === undefined) throw new Error("two leases expected");
    const view = new LeaseView({ leases: second, prefix: "trainer.", leaseMs: LEASE_MS });
    await view.start();
    expect(await first.claim("trainer.a", { owner: "a" })).toBe(true);
    expect(await second.claim("trainer.a", { owner: "b" })).toBe(false);
    await eventually(async () => view.present.has("trainer.a") || undefined);
    expect(view.isLost("trainer.a")).toBe(false);
    await eventually(async () => view.isLost("trainer.a") || undefined);
    expect(await second.claim("trainer.a", { owner: "b" })).toBe(true);
    expect(await first.renew("trainer.a", { owner: "a" })).toBe(false);
    await view.stop();
  });

  test("that are kept outlast their time, and stop frees them at once", async () => {
    const { records } = await openBoth(KEPT_LEASE_MS);
    const [first, second] = records.map((each) => new KvLeases(each));
    if (first === undefined || second === undefined) throw new Error("two leases expected");
    const losses: unknown[] = [];
    const onLost = (reason: unknown): void => void losses.push(reason);
    const keeper = new LeaseKeeper({
      leases: first,
      key: "shard.0",
      value: () => ({ owner: "a" }),
      leaseMs: KEPT_LEASE_MS,
      onLost,
    });
    expect(await keeper.start()).toBe(true);
    const untilMs = performance.now() + 1.5 * KEPT_LEASE_MS;
    await eventually(async () => {
      expect(await second.claim("shard.0", { owner: "b" })).toBe(false);
      return performance.now() > untilMs || undefined;
    });
    expect(keeper.held).toBe(true);
    await keeper.stop();
    expect(await second.claim("shard.0", { owner: "b" })).toBe(true);
    expect(losses).toEqual([]);
  });
});

/** A host's service on one connection. */
async function hostOn(
  connection: NatsConnection,
  job: string,
  owners: MemoryOwners,
  leaseMs: number = LASTING_LEASE_MS,
): Promise<LifecycleService> {
  const open = { connection, storage: "file" as const };
  const service = createLifecycle({
    job: {
      job,
      made: "now",
      shards: 4,
      journal: "file",
      leaseMs,
      synchronization: { mode: "async" },
      quotas: quotasOf(),
    },
    bucket: await openBucket({ ...open, bucket: `PS_${job}` }),
    leases: new KvLeases(await openBucket({ ...open, bucket: `PS_${job}_LEASE`, ttlMs: leaseMs })),
    owners,
    hostId: "h",
    maxPayloadBytes: 1024 * 1024,
    madeNow: async () => "now",
  });
  await service.start();
  return service;
}

async function ask(
  service: LifecycleService,
  trainer: string,
  verb: LifecycleVerb,
  fields: Fields,
): Promise<Fields> {
  return await service.handle(trainer, verb, decodeMessage(encodeMessage(fields)));
}

describe("a job on two hosts", () => {
  test("is initialized once by one of three trainers, with 1,000 parameters", async () => {
    const owners = new MemoryOwners();
    const hosts = await Promise.all([hostOn(one, "many", owners), hostOn(two, "many", owners)]);
    const [first, second] = hosts;
    const begins = await Promise.all(
      ["a", "b", "c"].map(async (trainer, i) => {
        const host = i % 2 ? second : first;
        const session = (await ask(host, trainer, "join", { token: trainer }))["session"];
        const reply = parseBeginReply(await ask(host, trainer, "begin", { session }));
        return { trainer, session, ...reply };
      }),
    );
    const winners = begins.filter(({ selected }) => selected);
    expect(winners).toHaveLength(1);
    const { trainer, session, epoch } = winners[0] ?? { trainer: "" };
    const names = Array.from({ length: 1000 }, (_, i) => `p_${i}`);
    for (let from = 0; from < names.length; from += 250) {
      const parameters = names
        .slice(from, from + 250)
        .map((name) => ({ name, dtype: "float32", shape: [from + 1], config: {} }));
      const reply = await ask(first, trainer, "declare", { session, epoch, parameters });
      for (const info of parseParameters(reply)) if (info !== null) owners.initialize(info);
    }
    await ask(second, trainer, "finish", { session, epoch, at: [] });
    const status = await ask(first, "observer", "status", { names: ["p_999", "p_0"] });
    expect(status).toMatchObject({ state: "ready", by: trainer });
    expect(parseParameters(status).map((info) => info?.ready)).toEqual([true, true]);
    await Promise.all(hosts.map((host) => host.close()));
  });

  test("survives the broker's crash in the middle of an initialization", async () => {
    const owners = new MemoryOwners();
    const hosts = await Promise.all([hostOn(one, "crash", owners), hostOn(two, "crash", owners)]);
    const [first, second] = hosts;
    const session = (await ask(first, "a", "join", { token: "a" }))["session"];
    await ask(first, "a", "begin", { session });
    const w = { name: "w", dtype: "float32", shape: [2], config: {} };
    await ask(first, "a", "declare", { session, epoch: 1, parameters: [w] });
    await broker.kill();
    await broker.start();
    const joined = await onceBack(() => ask(second, "b", "join", { token: "b" }));
    expect(joined.result["session"]).toBe(Number(session) + 1);
    const begun = await onceBack(() => ask(first, "a", "begin", { session }));
    expect(begun.result).toMatchObject({ selected: true, epoch: 1 });
    const declare = { session, epoch: 1, parameters: [w] };
    const { result } = await onceBack(() => ask(second, "a", "declare", declare));
    for (const info of parseParameters(result)) if (info !== null) owners.initialize(info);
    const finish = { session, epoch: 1, at: [] };
    expect(await ask(first, "a", "finish", finish)).toMatchObject({ state: "ready" });
    await Promise.all(hosts.map((host) => host.close()));
  });

  test("replaces a selected trainer that has gone silent", async () => {
    const owners = new MemoryOwners();
    const hosts = await Promise.all([
      hostOn(one, "silent", owners, LEASE_MS),
      hostOn(two, "silent", owners, LEASE_MS),
    ]);
    const [first, second] = hosts;
    const a = (await ask(first, "a", "join", { token: "a" }))["session"];
    await ask(first, "a", "begin", { session: a });
    const b = (await ask(second, "b", "join", { token: "b" }))["session"];
    const taken = await eventually(async () => {
      const reply = parseBeginReply(await ask(second, "b", "begin", { session: b }));
      return reply.selected ? reply : undefined;
    });
    expect(taken.epoch).toBe(2);
    const late = ask(first, "a", "declare", {
      session: a,
      epoch: 1,
      parameters: [{ name: "w", dtype: "float32", shape: [1], config: {} }],
    });
    await expect(late).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await Promise.all(hosts.map((host) => host.close()));
  });
});
