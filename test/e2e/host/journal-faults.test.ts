// Proves what a full, damaged, shortened, deleted or replaced journal does: a typed error and no
// wrong value, never silence. Damage is done to the broker's files while it is stopped.
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, describe, expect, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import type { Client } from "../../../src/client/index.ts";
import { hashName, type PserverError } from "../../../src/protocol/index.ts";
import { freeze, thaw } from "../../support/freeze.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { control, shardStatus, snapshotAll } from "./control.ts";
import { failureOf, flipBitOf, streamDirectory } from "./damage.ts";
import { Archive } from "./journal-fold.ts";

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

/** A counter on each shard: the names differ in their hash. */
const COUNTERS = [0, 1].map((shard) => {
  const names = Array.from({ length: 100 }, (_, i) => `count-${i}`);
  return names.find((name) => hashName(name) % 2 === shard) ?? "";
});
const ONE = BigInt64Array.of(1n);

async function start(
  options: Partial<HostOptions> = {},
): Promise<{ host: TestHost; client: Client }> {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 2, ...options });
  const host = await job.host();
  const client = await job.trainer("a");
  // Each by itself, so that it lies where its name's hash says.
  for (const name of COUNTERS) {
    await client.createIfNotAlreadyCreated(name, BigInt64Array.of(0n));
  }
  return { host, client };
}

/** Raises every counter `times` times, one after the other. */
async function raise(client: Client, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    await Promise.all(COUNTERS.map((name) => client.pushFull(name, ONE, 1, 1)));
  }
}

async function counts(client: Client): Promise<bigint[]> {
  const pulled = await client.getParams(COUNTERS);
  return pulled.map(({ data }) => BigInt(data[0] ?? -1));
}

/** Directory of a journal in the broker's store. */
function journalDirectory(shard: number): string {
  return streamDirectory(job, `PS_${job.job}_${shard}`);
}

describe("a full journal", () => {
  test("is waited for until the owner has made room", async () => {
    const { client } = await start({ shards: 1, journalBytesMax: 1024 * 1024 });
    const elements = 8 * 1024;
    const ones = new Float32Array(elements).fill(-1);
    await client.createIfNotAlreadyCreated("w", new Float32Array(elements), { learningRate: 1 });
    // 6 MiB through 1 MiB, more at once than the journal holds.
    await Promise.all(Array.from({ length: 200 }, () => client.sendGrads({ w: ones })));
    const { data } = await client.pullFull("w");
    expect(new Set<unknown>(data)).toEqual(new Set([200]));
    await using archive = await Archive.open(job.broker.url, job.job);
    const { first, bytes } = await archive.journal(0);
    expect(first).toBeGreaterThan(100);
    expect(bytes).toBeLessThanOrEqual(1024 * 1024);
  });

  test("that nobody trims is an error at the deadline; nothing counts twice after it", async () => {
    const { host, client } = await start({ shards: 1, journalBytesMax: 1024 * 1024 });
    const elements = 8 * 1024;
    const ones = new Float32Array(elements).fill(-1);
    await client.createIfNotAlreadyCreated("w", new Float32Array(elements), { learningRate: 1 });
    await freeze(host.pid);
    const codes: string[] = [];
    const full = (): number => codes.filter((code) => code === "JOURNAL_FULL").length;
    // On a busy machine the first may end before the broker has refused them.
    for (let timeoutMs = 4_000; full() <= 20 && timeoutMs <= HANG_MS; timeoutMs *= 4) {
      const results = await Promise.allSettled(
        Array.from({ length: 60 }, () => client.sendGrads({ w: ones }, { timeoutMs })),
      );
      for (const result of results) {
        codes.push(result.status === "rejected" ? (result.reason as PserverError).code : "");
      }
    }
    // Some are stored and not folded; of the others the error says why, and that none was applied,
    // unless the broker was just about to refuse it once more.
    expect(full()).toBeGreaterThan(20);
    const unknown = codes.filter((code) => code !== "JOURNAL_FULL");
    expect(new Set(unknown)).toEqual(new Set(["OUTCOME_UNKNOWN"]));
    await using archive = await Archive.open(job.broker.url, job.job);
    const records = await archive.records(0);
    const stored = records.filter(({ subject }) => subject.includes(".push.w.")).length;
    expect(stored).toBeGreaterThan(0);
    expect(stored).toBeLessThanOrEqual(unknown.length);
    thaw(host.pid);
    await client.sendGrads({ w: ones });
    const { data } = await client.pullFull("w");
    expect(new Set<unknown>(data)).toEqual(new Set([stored + 1]));
  });
});

describe("a journal with a changed bit", () => {
  test("stops its shard with JOURNAL_DAMAGED; pulls say so, the other shard serves", async () => {
    const { host, client } = await start();
    await raise(client, 20);
    await using archive = await Archive.open(job.broker.url, job.job);
    const hurt = (await archive.records(0))[10];
    if (hurt === undefined) throw new Error("no record");
    await archive.close();
    await host.kill();
    await job.broker.stop();
    await flipBitOf(journalDirectory(0), hurt.payload);
    await job.broker.start();
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
    await expect(client.pullFull(COUNTERS[0] ?? "")).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { shard: 0, expected: hurt.seq },
    });
    expect((await client.pullFull(COUNTERS[1] ?? "")).data).toEqual(BigInt64Array.of(20n));
    await client.pushFull(COUNTERS[1] ?? "", ONE, 1, 1);
    // Long before the deadline: a shard that has stopped will not fold it.
    await expect(
      client.pushFull(COUNTERS[0] ?? "", ONE, 1, 1, { timeoutMs: 2 * HANG_MS }),
    ).rejects.toMatchObject({ code: "JOURNAL_DAMAGED", details: { unknown: [{ shard: 0 }] } });
  });
});

describe("a journal that lost its newest records", () => {
  test("under a running host: JOURNAL_LOST names them", async () => {
    const { host, client } = await start();
    await raise(client, 5);
    await using archive = await Archive.open(job.broker.url, job.job);
    const { last } = await archive.journal(0);
    await archive.close();
    const copy = join(job.broker.storeDir, "copy");
    await job.broker.stop();
    await cp(journalDirectory(0), copy, { recursive: true });
    await job.broker.start();
    await raise(client, 5);
    // What the host has folded is in the watermark, or in its own memory.
    const { seq: folded } = await shardStatus(job);
    await job.broker.stop();
    await rm(journalDirectory(0), { recursive: true });
    await cp(copy, journalDirectory(0), { recursive: true });
    await job.broker.start();
    expect(await failureOf(host, 0)).toBe("JOURNAL_LOST");
    await expect(client.pullFull(COUNTERS[0] ?? "")).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      details: { shard: 0, from: last + 1, to: folded },
    });
    expect((await client.pullFull(COUNTERS[1] ?? "")).data).toEqual(BigInt64Array.of(10n));
  });

  test("below a snapshot: a host that starts later finds out", async () => {
    const { host, client } = await start();
    await raise(client, 2);
    const copy = join(job.broker.storeDir, "copy");
    await job.broker.stop();
    await cp(journalDirectory(0), copy, { recursive: true });
    await job.broker.start();
    await raise(client, 5);
    await snapshotAll(job);
    await host.kill();
    await job.broker.stop();
    await rm(journalDirectory(0), { recursive: true });
    await cp(copy, journalDirectory(0), { recursive: true });
    await job.broker.start();
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("JOURNAL_LOST");
    await expect(client.pullFull(COUNTERS[0] ?? "")).rejects.toMatchObject({
      code: "JOURNAL_LOST",
    });
  });

  test("by being deleted under a running host", async () => {
    const { host, client } = await start();
    await raise(client, 5);
    await using archive = await Archive.open(job.broker.url, job.job);
    const manager = await jetstreamManager(archive.connection);
    await manager.streams.delete(archive.subjects.journalStream(0, 1));
    expect(await failureOf(host, 0)).toBe("JOURNAL_LOST");
    await expect(client.pullFull(COUNTERS[0] ?? "")).rejects.toMatchObject({
      code: "JOURNAL_LOST",
    });
    expect(await client.pullFull(COUNTERS[1] ?? "")).toMatchObject({ data: BigInt64Array.of(5n) });
  });
});

describe("a snapshot with a changed bit", () => {
  /** Damages the pieces of the newest snapshots of shard 0 while nothing runs. */
  async function damage(client: Client, host: TestHost, snapshots: number): Promise<void> {
    await using archive = await Archive.open(job.broker.url, job.job);
    const pieces: Uint8Array[] = [];
    for (let i = 0; i < 2; i++) {
      await raise(client, 3);
      await snapshotAll(job);
      const newest = (await archive.manifests(0)).at(-1)?.manifest.pieces[0];
      if (newest !== undefined) pieces.push(await archive.snapshotMessage(newest));
    }
    await raise(client, 1);
    await archive.close();
    await host.kill();
    await job.broker.stop();
    const streams = streamDirectory(job, `PS_${job.job}_SNAPSHOT`);
    for (const piece of pieces.slice(-snapshots)) await flipBitOf(streams, piece);
    await job.broker.start();
  }

  test("is skipped for the one before it", async () => {
    const { host, client } = await start();
    await damage(client, host, 1);
    await job.host();
    expect(await counts(client)).toEqual([7n, 7n]);
    await raise(client, 1);
    await snapshotAll(job);
    expect(await counts(client)).toEqual([8n, 8n]);
  });

  test("stops its shard with SNAPSHOT_DAMAGED if no other is left", async () => {
    const { host, client } = await start({ retainBytes: 1 });
    await damage(client, host, 2);
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("SNAPSHOT_DAMAGED");
    expect((await client.pullFull(COUNTERS[1] ?? "")).data).toEqual(BigInt64Array.of(7n));
    expect(await control(job, "hosts", {})).toMatchObject({
      shards: [{ error: { code: "SNAPSHOT_DAMAGED" } }, { shard: 1, state: "serving" }],
    });
  });
});

describe("a journal in memory", () => {
  test("whose broker is killed under load loses at most what no owner had answered", async () => {
    const { client } = await start({ journal: "memory", snapshotBytes: 20_000 });
    const [name = ""] = COUNTERS;
    let [applied, unknown, started] = [0n, 0n, 0];
    const push = async (): Promise<void> => {
      started++;
      try {
        await client.pushFull(name, ONE, 1, 1, { timeoutMs: HANG_MS });
        applied++;
      } catch (error) {
        const { code } = error as PserverError;
        // Of some the owner knows that they were stored and lost before it folded them.
        if (code !== "JOURNAL_REPLACED") {
          expect(code).toBe("OUTCOME_UNKNOWN");
          unknown++;
        }
      }
    };
    for (let round = 0; round < 3; round++) {
      const pushes: Promise<void>[] = [];
      for (let i = 0; i < 300; i++) pushes.push(push());
      await Promise.race(pushes);
      await job.broker.kill();
      await job.broker.start();
      await Promise.all(pushes);
    }
    const [count = 0n] = await counts(client);
    expect(count).toBeGreaterThanOrEqual(applied);
    expect(count).toBeLessThanOrEqual(applied + unknown);
    expect(applied).toBeGreaterThan(0n);
    await raise(client, 1);
    expect((await counts(client))[0]).toBe(count + 1n);
    expect(started).toBe(900);
  });

  test("survives its host, and its host survives the broker: values stay, trainers continue", async () => {
    const { host, client } = await start({ journal: "memory" });
    await raise(client, 10);
    await host.kill();
    await job.host();
    expect(await counts(client)).toEqual([10n, 10n]);
    await raise(client, 10);
    await job.broker.kill();
    await job.broker.start();
    await raise(client, 10);
    expect(await counts(client)).toEqual([30n, 30n]);
    await using archive = await Archive.open(job.broker.url, job.job);
    const generations = await Promise.all([0, 1].map((shard) => archive.manifests(shard)));
    expect(generations.map((kept) => kept.at(-1)?.manifest.generation)).toEqual([2, 2]);
  });

  test("whose broker is away for longer than a lease keeps its values, too", async () => {
    const { host, client } = await start({ journal: "memory" });
    await raise(client, 10);
    await job.broker.kill();
    // Nobody renews: the host notices that its own lease has ended.
    await host.line(({ type, error }) => type === "error" && error?.code === "NOT_OWNER");
    await job.broker.start();
    expect(await counts(client)).toEqual([10n, 10n]);
    await raise(client, 10);
    expect(await counts(client)).toEqual([20n, 20n]);
  });
});
