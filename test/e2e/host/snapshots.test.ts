// Proves that snapshots taken while trainers push are consistent cuts: each one that is kept,
// restored by an independent reader, has the digest of a fold of the journal up to exactly its
// sequence. And that what nobody needs goes: pieces that no kept manifest names, old journal, and the
// consumers that looked for them.
import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, describe, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { bytesOf } from "../../../src/protocol/index.ts";
import { TestJob } from "../../support/host.ts";
import { QUICK_LEASE_MS } from "../../support/limits.ts";
import { snapshotAll } from "./control.ts";
import { Archive } from "./journal-fold.ts";

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

async function start(options: Record<string, number>): Promise<Client> {
  job = await TestJob.start({
    leaseMs: QUICK_LEASE_MS,
    shards: 1,
    snapshotBytes: 400_000,
    ...options,
  });
  await job.host();
  const client = await job.trainer("a");
  await client.beginInit();
  return client;
}

/** Pushes random numbers to every parameter, `rounds` times, several under way at once. */
async function push(
  client: Client,
  elements: Record<string, number>,
  rounds: number,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    await Promise.all(
      Object.entries(elements).map(([name, count]) =>
        client.sendGrads({ [name]: Float32Array.from({ length: count }, Math.random) }),
      ),
    );
  }
}

/**
 * Folds from the oldest kept manifest over all records and compares at every later one; gives the
 * number of manifests.
 */
async function checkManifests(archive: Archive): Promise<number> {
  const manifests = await archive.manifests(0);
  const [oldest] = manifests;
  if (oldest === undefined) return 0;
  const folded = await archive.restore(0, oldest.manifest);
  expect(folded.seq).toBe(oldest.manifest.seq);
  const records = await archive.records(0);
  for (const { manifest } of manifests) {
    for (const record of records) {
      if (record.seq > folded.seq && record.seq <= manifest.seq) folded.apply(record);
    }
    expect(folded.seq).toBe(manifest.seq);
    expect((await archive.restore(0, manifest)).digest()).toBe(folded.digest());
  }
  return manifests.length;
}

describe("under load", () => {
  test("every snapshot is a cut, and the fold from the first record meets each", async () => {
    const sizes = { a: 10_000, b: 1_000, c: 10 };
    const client = await start({});
    await Promise.all(
      Object.entries(sizes).map(([name, count]) =>
        client.initParam(name, new Float32Array(count), { learningRate: 1 }),
      ),
    );
    await client.finishInit();
    await push(client, sizes, 100);
    await snapshotAll(job);
    await using archive = await Archive.open(job.broker.url, job.job);
    expect(await checkManifests(archive)).toBeGreaterThan(2);
    const folded = await archive.fold(0);
    const newest = (await archive.manifests(0)).at(-1);
    if (newest === undefined) throw new Error("no manifest");
    expect((await archive.restore(0, newest.manifest)).digest()).toBe(folded.digest());
    for (const host of job.hosts.splice(0)) await host.kill();
    await job.host();
    for (const { name, data } of await client.getParams(Object.keys(sizes))) {
      const values = folded.block(name, 0)?.values() ?? Buffer.of();
      expect(Buffer.compare(values, bytesOf(data)), name).toBe(0);
    }
  });

  test("one of many blocks that change meanwhile is a cut, too", async () => {
    const names = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`p-${i}`, 2_000]));
    const elements = 3 * 1024 * 1024;
    const client = await start({ snapshotBytes: 1_000_000_000, retainBytes: 1_000_000_000 });
    await client.initParam("large", new Float32Array(elements), { learningRate: 1 });
    await Promise.all(
      Object.entries(names).map(([name, count]) =>
        client.initParam(name, new Float32Array(count), { learningRate: 1 }),
      ),
    );
    await client.finishInit();
    for (let round = 0; round < 2; round++) {
      await Promise.all([
        snapshotAll(job),
        push(client, { large: elements }, 2),
        push(client, names, 4),
      ]);
    }
    await snapshotAll(job);
    await using archive = await Archive.open(job.broker.url, job.job);
    expect(await checkManifests(archive)).toBeGreaterThanOrEqual(5);
  });
});

test("old journal and pieces that no kept manifest names are gone", async () => {
  const client = await start({ retainBytes: 1_000_000, snapshotBytes: 200_000 });
  await client.initParam("w", new Float32Array(10_000), { learningRate: 1 });
  await client.finishInit();
  await push(client, { w: 10_000 }, 200);
  await snapshotAll(job);
  await using archive = await Archive.open(job.broker.url, job.job);
  const { first, bytes } = await archive.journal(0);
  expect(first).toBeGreaterThan(100);
  expect(bytes).toBeLessThan(1_300_000);
  const manifests = await archive.manifests(0);
  const oldest = manifests[0]?.manifest.seq ?? 0;
  // Record `seq` itself stays: it shows that the journal is the one that was folded.
  expect(first).toBe(oldest);
  const named = manifests.flatMap(({ seq, manifest }) => [
    seq,
    ...manifest.state.map((piece) => piece.seq),
    ...manifest.pieces,
  ]);
  expect(await archive.snapshotMessages(0)).toEqual([...new Set(named)].sort((a, b) => a - b));
  expect(await checkManifests(archive)).toBeGreaterThanOrEqual(2);
  const { data } = await client.pullFull("w");
  for (const host of job.hosts.splice(0)) await host.kill();
  await job.host();
  expect((await client.pullFull("w")).data).toEqual(data);
});

test("snapshots leave no consumers behind", async () => {
  const client = await start({});
  await client.initParam("w", new Float32Array(10), { learningRate: 1 });
  await client.finishInit();
  for (let i = 0; i < 20; i++) {
    await push(client, { w: 10 }, 1);
    await snapshotAll(job);
  }
  await using archive = await Archive.open(job.broker.url, job.job);
  const manager = await jetstreamManager(archive.connection);
  const { state } = await manager.streams.info(archive.subjects.snapshotStream());
  expect(state.consumer_count).toBe(0);
});
