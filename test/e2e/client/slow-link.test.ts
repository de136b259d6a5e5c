// Proves through a real broker and host that a trainer on a slow link is slow and no more: it stays a member of a job
// whose trainers keep step, its gradients are applied in all blocks, and what moves is not sent or asked for again. A
// link in this process carries little in a second and counts the bytes; nothing here depends on how long it takes.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import { LEASE_MS } from "../../../src/protocol/limits.ts";
import { TestJob } from "../../support/host.ts";
import { HANG_MS } from "../../support/limits.ts";
import { SlowLink } from "../../support/slow-link.ts";

const MIB = 1024 ** 2;
/** A step takes three times as long as a lease lasts. */
const BYTES_PER_SECOND = 500_000;
/** Of 8 blocks, two of each shard. */
const ELEMENTS = (8 * MIB) / 4;
const PAYLOAD_BYTES = ELEMENTS * 4;
/** On a busy machine a host may take so long that one block is asked for twice. */
const MOST_BYTES = 1.5 * PAYLOAD_BYTES;

let job: TestJob;
let link: SlowLink;
let models: string;

afterEach(async () => {
  await job.remove();
  link.close();
  await rm(models, { recursive: true, force: true });
});

/** A trainer with the link, and one without, in a job that keeps step. Calls have no timeout of their own. */
async function start(): Promise<{ far: Client; near: Client }> {
  models = await mkdtemp(join(tmpdir(), "pserver-models-"));
  const synchronization = { mode: "sync", trainers: 2, reduce: "sum" } as const;
  job = await TestJob.start({ synchronization, leaseMs: LEASE_MS, modelDirectory: models });
  await job.host();
  link = await SlowLink.open(job.broker.port, BYTES_PER_SECOND);
  const far = await job.trainer("far", { url: link.url });
  const near = await job.trainer("near");
  return { far, near };
}

/** Bytes that the link has carried during `work`. */
async function carried(work: Promise<unknown>): Promise<{ sent: number; received: number }> {
  const before = { sent: link.sentBytes, received: link.receivedBytes };
  await work;
  return {
    sent: link.sentBytes - before.sent,
    received: link.receivedBytes - before.received,
  };
}

test("a trainer on a slow link loads, trains in step, pulls and saves, and sends nothing twice", async () => {
  const { far, near } = await start();
  const { session } = far;
  await far.beginInit();
  const first = new Float32Array(ELEMENTS).fill(100);
  const loaded = await carried(far.initParam("w", first, { learningRate: 1 }));
  expect(loaded.sent).toBeLessThan(MOST_BYTES);
  await far.finishInit();

  for (let step = 1; step <= 2; step++) {
    const nearly = near.sendGrads(
      { w: new Float32Array(ELEMENTS).fill(1) },
      { timeoutMs: HANG_MS },
    );
    const farther = far.sendGrads({ w: new Float32Array(ELEMENTS).fill(3) });
    const pushed = await carried(farther);
    expect([await nearly, await farther]).toEqual([{ lateBlocks: 0 }, { lateBlocks: 0 }]);
    expect(pushed.sent).toBeLessThan(MOST_BYTES);
  }
  expect(far.session).toBe(session);

  const pulling = far.pullFull("w");
  const pulled = await carried(pulling);
  expect(pulled.received).toBeLessThan(MOST_BYTES);
  expect(new Set((await pulling).data as Float32Array)).toEqual(new Set([100 - 2 * (1 + 3)]));

  const saved = await far.saveModel("model.safetensors");
  expect(saved.bytes).toBeGreaterThan(PAYLOAD_BYTES);
});
