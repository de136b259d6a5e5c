// Proves on a real broker that an archiver which is behind when an operator accepts the loss of a shard's end
// loses nothing that could be read: it copies the rest of the abandoned journal afterwards, and goes on with
// the new one.
import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { checkArchive } from "../../../src/history/archive/check-archive.ts";
import { failureOf, flipBitOf, streamDirectory } from "../host/damage.ts";
import { Archive } from "../host/journal-fold.ts";
import { archivedJobOfEachTest, expectReplayed, pullAll } from "./archived-job.ts";

const { signal } = new AbortController();
const each = archivedJobOfEachTest();

test("the rest of an abandoned journal is archived after the recovery", async () => {
  // No snapshot covers the damaged record.
  const archived = await each.start({ shards: 1, snapshotBytes: 1024 ** 3 });
  const { job, directory, client } = archived;
  await archived.archiveOnce();
  await archived.train(4);
  const pulled = await pullAll(archived);
  await archived.train(3);
  const broker = await Archive.open(job.broker.url, job.job);
  const { streams } = await jetstreamManager(broker.connection);
  const damagedSeq = (await broker.lastRecord(0)) - 1;
  const damaged = await streams.getMessage("PS_j_0", { seq: damagedSeq });
  const payload = Uint8Array.from(damaged?.data ?? []);
  await broker.close();
  for (const host of job.hosts.splice(0)) await host.kill();
  await job.broker.stop();
  await flipBitOf(streamDirectory(job, "PS_j_0"), payload);
  await job.broker.start();
  const host = await job.host();
  expect(await failureOf(host, 0)).toBe("JOURNAL_DAMAGED");
  const recovered = await archived.pserver("recover", "--from", "prefix", "--yes");
  expect(recovered.code, outputOf(recovered)).toBe(0);
  await host.until(() => host.serving.includes(0));
  await client.pullFull("w");
  await archived.train(1);
  await archived.archiveOnce();
  const { shards, damage } = await checkArchive(directory, signal);
  expect(damage).toEqual([]);
  // Nobody can give the damaged record.
  expect(shards[0]?.missing).toEqual([
    { generation: 1, firstSeq: damagedSeq, lastSeq: damagedSeq },
  ]);
  expect(shards[0]?.spans).toMatchObject([
    { generation: 1, firstSeq: 1, lastSeq: damagedSeq - 1 },
    { generation: 1, firstSeq: damagedSeq + 1 },
    { generation: 2, firstSeq: 1 },
  ]);
  const alone = await archived.alone();
  await expectReplayed(alone, [...pulled, ...(await pullAll(archived))]);
});

/** What a command said. */
function outputOf({ stdout, stderr }: { stdout: string; stderr: string }): string {
  return `${stdout}\n${stderr}`;
}
