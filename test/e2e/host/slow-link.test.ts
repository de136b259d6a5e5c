// Proves through a real broker that a host on a slow link is slow and no more: it loads a shard from its snapshot, serves
// it and stores a snapshot, though each of these takes longer than one request to the broker may without progress, and
// moves each byte once. The link carries little in a second and counts the bytes; nothing here depends on how long it
// takes.
import { afterEach, expect, onTestFinished, test } from "vitest";
import { LEASE_MS } from "../../../src/protocol/limits.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { SlowLink } from "../../support/slow-link.ts";
import { shardStatus, snapshotAll } from "./control.ts";

/** A block; its elements are all of the model. */
const PAYLOAD_BYTES = 1024 ** 2;
/** 1.5 Mbit/s: the payload takes more than 5 s. */
const BYTES_PER_SECOND = 190_000;
const SETTINGS = { shards: 1, workers: 1, leaseMs: LEASE_MS };

let job: TestJob;

afterEach(() => job.remove());

test("a host on a slow link takes a shard over from its snapshot, serves it, and stores the next one", async () => {
  job = await TestJob.start(SETTINGS);
  const near = await job.host();
  const trainer = await job.trainer("t");
  await trainer.beginInit();
  const values = new Float32Array(PAYLOAD_BYTES / 4).fill(7);
  await trainer.initParam("w", values, { learningRate: 1 });
  await trainer.finishInit();
  await snapshotAll(job);
  await near.stop();

  const link = await SlowLink.open(job.broker.port, BYTES_PER_SECOND);
  onTestFinished(() => link.close());
  await job.host({ connection: { servers: [link.url], timeoutMs: HANG_MS } });
  expect(link.receivedBytes).toBeLessThan(1.1 * PAYLOAD_BYTES);
  // One element changes, so that the next snapshot holds the block again.
  await trainer.pushAsPart("w", Float32Array.of(1), [[0]], 1, 1);
  const { sentBytes } = link;
  await snapshotAll(job);
  expect(link.sentBytes - sentBytes).toBeLessThan(1.1 * PAYLOAD_BYTES);
  expect(link.sentBytes - sentBytes).toBeGreaterThan(PAYLOAD_BYTES);
  expect(await shardStatus(job)).toMatchObject({ state: "serving" });
});
