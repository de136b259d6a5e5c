// Proves that an update which was answered is never lost in silence, on processes that are killed and
// files that are damaged while nothing runs: the owner's watermark of how far it had folded, kept outside
// the journal, tells the next owner what is missing; where the watermark says nothing yet, a trainer that
// has seen a later record than the journal holds is told so, while the shard goes on; and a shard
// whose snapshots are all lost tells its trainers at once.
import { jetstreamManager } from "@nats-io/jetstream";
import { afterEach, describe, expect, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host/host.ts";
import type { Client } from "../../../src/client/index.ts";
import {
  bucketStream,
  decodeMessage,
  encodePullRequest,
  throwIfError,
} from "../../../src/protocol/index.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS } from "../../support/limits.ts";
import { shardStatus, untilWatermarkReached } from "./control.ts";
import { failureOf, flipBitOf, streamDirectory } from "./damage.ts";
import { Archive } from "./journal-fold.ts";
import { storeAddition } from "./raw-trainer.ts";

const PUSHES = 100;
const ONE = BigInt64Array.of(1n);
/** The deadline of calls that must not come to it: their error is there at once. */
const FAR_OFF_MS = 2 * HANG_MS;

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

/** A job of one shard whose counter was raised `PUSHES` times, each acknowledged as applied. */
async function start(
  options: Partial<HostOptions> = {},
): Promise<{ host: TestHost; client: Client }> {
  job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 1, ...options });
  const host = await job.host();
  const client = await job.trainer("a");
  await client.createIfNotAlreadyCreated("count", BigInt64Array.of(0n));
  await raise(client, PUSHES);
  expect((await client.pullFull("count")).data).toEqual(BigInt64Array.of(BigInt(PUSHES)));
  return { host, client };
}

async function raise(client: Client, times: number): Promise<void> {
  await Promise.all(Array.from({ length: times }, () => client.pushFull("count", ONE, 1, 1)));
}

/** Sequence and bytes of the record of push number `push`, and the last sequence of the journal. */
async function pushed(push: number): Promise<{ seq: number; payload: Uint8Array; last: number }> {
  await using archive = await Archive.open(job.broker.url, job.job);
  const records = await archive.records(0);
  const found = records.filter(({ subject }) => subject.includes(".push."))[push - 1];
  if (found === undefined) throw new Error(`no push ${push}`);
  return { ...found, last: records.at(-1)?.seq ?? 0 };
}

/** Kills host and broker, changes a bit of a record, and starts the broker again. */
async function crash(host: TestHost, { payload }: { payload: Uint8Array }): Promise<void> {
  await host.kill();
  await job.broker.kill();
  await flipBitOf(streamDirectory(job, `PS_${job.job}_0`), payload);
  await job.broker.start();
}

/** Removes what tells how far the shard was folded, as if host and broker had died before it was noted. */
async function removeWatermark(): Promise<void> {
  await using archive = await Archive.open(job.broker.url, job.job);
  const bucket = archive.subjects.bucket();
  const manager = await jetstreamManager(archive.connection);
  // Without a marker of the removal, which would be a damaged entry.
  await manager.streams.purge(bucketStream(bucket), { filter: `$KV.${bucket}.head.0` });
}

/**
 * Stores so many records, as of a trainer that nothing has told of the fault: the client keeps its own until a host
 * answers.
 */
async function storeAdditions(session: number, count: number): Promise<void> {
  await using archive = await Archive.open(job.broker.url, job.job);
  for (let n = 1; n <= count; n++)
    await storeAddition(archive.connection, "a", session, PUSHES + 1 + n);
}

describe("records lost with host and broker", () => {
  test("are noticed by the next owner: it fails the shard, and every trainer is told at once", async () => {
    const { host, client } = await start();
    const hurt = await pushed(49);
    await untilWatermarkReached(job);
    await crash(host, hurt);
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("JOURNAL_LOST");
    const told = { code: "JOURNAL_LOST", details: { shard: 0, from: hurt.seq, to: hurt.last } };
    const other = await job.trainer("b");
    const options = { timeoutMs: FAR_OFF_MS };
    await expect(other.pullFull("count", options)).rejects.toMatchObject(told);
    await expect(client.pullFull("count", options)).rejects.toMatchObject(told);
    await expect(client.pushFull("count", ONE, 1, 1, options)).rejects.toMatchObject({
      code: "JOURNAL_LOST",
    });
  });

  test("are noticed although other records have got their numbers since", async () => {
    const { host, client } = await start();
    const hurt = await pushed(49);
    await untilWatermarkReached(job);
    await crash(host, hurt);
    await storeAdditions(client.session, hurt.last - hurt.seq + 2);
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe("JOURNAL_DAMAGED");
    await expect(client.pullFull("count", { timeoutMs: FAR_OFF_MS })).rejects.toMatchObject({
      code: "JOURNAL_DAMAGED",
      details: { shard: 0, seq: hurt.last },
    });
  });

  test("are noticed after a host that was stopped in order, however long its lease", async () => {
    const { host } = await start({ leaseMs: 600_000 });
    const hurt = await pushed(49);
    expect((await shardStatus(job))["markedSeq"]).toBeLessThan(hurt.seq);
    await host.stop();
    await crash(host, hurt);
    expect(await failureOf(await job.host(), 0)).toBe("JOURNAL_LOST");
  });

  test("are reported to a trainer that has seen them, if there was no watermark; the shard keeps serving", async () => {
    const { host, client } = await start();
    const hurt = await pushed(49);
    await host.kill();
    await removeWatermark();
    await crash(host, hurt);
    const second = await job.host();
    const options = { timeoutMs: FAR_OFF_MS };
    await expect(client.pullFull("count", options)).rejects.toMatchObject({
      code: "JOURNAL_LOST",
      details: {
        shard: 0,
        expected: { generation: 1, seq: hurt.seq - 1 },
        received: { generation: 1, seq: hurt.last },
      },
    });
    const other = await job.trainer("b");
    expect((await other.pullFull("count")).data).toEqual(BigInt64Array.of(48n));
    await raise(other, 1);
    expect((await other.pullFull("count")).data).toEqual(BigInt64Array.of(49n));
    const report = await second.line(({ type }) => type === "loss-reported");
    expect(report).toMatchObject({
      shard: 0,
      error: { code: "JOURNAL_LOST", details: { asker: "a" } },
    });
    expect(await shardStatus(job)).toMatchObject({
      state: "serving",
      reportedLoss: { asker: "a", generation: 1, seq: hurt.last },
    });
  });
});

test("a position that never existed is refused at once, and no other trainer notices", async () => {
  const { client } = await start();
  await using archive = await Archive.open(job.broker.url, job.job);
  const { connection, subjects } = archive;
  const request = encodePullRequest({ epoch: 1, generation: 1, seq: 10 ** 9, waitMs: 10_000 });
  const replies = Array.from({ length: 50 }, () =>
    connection.request(subjects.pull("count", 0, "mallory"), request, {
      timeout: HANG_MS,
      noMux: true,
      reply: `${subjects.inbox("mallory")}.${Math.random().toString(36).slice(2)}`,
    }),
  );
  await raise(client, 10);
  for (const { data } of await Promise.all(replies)) {
    expect(() => throwIfError(decodeMessage(data).fields)).toThrow(
      expect.objectContaining({ code: "JOURNAL_LOST" }),
    );
  }
  expect((await client.pullFull("count")).data).toEqual(BigInt64Array.of(BigInt(PUSHES + 10)));
  expect(await shardStatus(job)).toMatchObject({
    state: "serving",
    reportedLoss: { asker: "mallory", seq: 10 ** 9, count: 50 },
  });
});

describe("a shard that has lost all its snapshots", () => {
  test.each([
    ["has failed with SNAPSHOT_DAMAGED if its journal is there", false, "SNAPSHOT_DAMAGED"],
    ["has failed with JOURNAL_LOST if that is gone, too", true, "JOURNAL_LOST"],
  ])("%s, and trainers are told at once", async (_what, withJournal, code) => {
    const { host } = await start();
    await untilWatermarkReached(job);
    await host.kill();
    await using archive = await Archive.open(job.broker.url, job.job);
    const manager = await jetstreamManager(archive.connection);
    await manager.streams.purge(archive.subjects.snapshotStream());
    if (withJournal) await manager.streams.delete(archive.subjects.journalStream(0, 1));
    const second = await job.host();
    expect(await failureOf(second, 0)).toBe(code);
    const other = await job.trainer("b");
    await expect(other.pullFull("count", { timeoutMs: FAR_OFF_MS })).rejects.toMatchObject({
      code,
    });
  });
});
