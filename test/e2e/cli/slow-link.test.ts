// Proves through a real broker and host that commands which move a whole model do so over a slow link, too, with their
// default settings: each ends well, moves each byte once, and takes the link from no trainer that is on it. The link
// carries little in a second and counts the bytes; nothing here depends on how long it takes. What a command reads in
// one piece, a block or a piece of a snapshot, takes longer than any one request may without progress.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { LEASE_MS } from "../../../src/protocol/limits.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { TestJob } from "../../support/host.ts";
import { SlowLink } from "../../support/slow-link.ts";
import { snapshotAll } from "../host/control.ts";

/** A block, and its record; its elements are all of the model. */
const PAYLOAD_BYTES = 1024 ** 2;
/** 1.5 Mbit/s: the payload takes longer than a request to the broker may without progress. */
const BYTES_PER_SECOND = 190_000;

/** A job that keeps step with one trainer on a slow link, and the command on the same link. */
async function start() {
  const directory = await mkdtemp(join(tmpdir(), "pserver-slow-link-"));
  const synchronization = { mode: "sync", trainers: 1, reduce: "sum" } as const;
  const job = await TestJob.start({
    ...{ synchronization, leaseMs: LEASE_MS, modelDirectory: directory },
    ...{ shards: 1, workers: 1 },
  });
  onTestFinished(async () => {
    await job.remove();
    await rm(directory, { recursive: true, force: true });
  });
  await job.host();
  const near = await job.trainer("near");
  await near.beginInit();
  const values = new Float32Array(PAYLOAD_BYTES / 4).fill(7);
  await near.initParam("w", values, { learningRate: 1 });
  await near.finishInit();
  const link = await SlowLink.open(job.broker.port, BYTES_PER_SECOND);
  onTestFinished(() => link.close());
  const trainer = await job.trainer("far", { url: link.url });
  const { session } = trainer;
  /** Runs a command with nothing but the job and the link; returns how it ended, and the bytes that it moved. */
  const command = async (...args: string[]) => {
    const { sentBytes, receivedBytes } = link;
    const ended: Finished = await run([...args, "--job", job.job, "--url", link.url]);
    return {
      ended,
      sent: link.sentBytes - sentBytes,
      received: link.receivedBytes - receivedBytes,
    };
  };
  /** Expects that the trainer on the link has never been out. */
  const expectAlive = () => expect(trainer.session).toBe(session);
  return { directory, job, near, command, expectAlive };
}

test("a model is saved and loaded again", async () => {
  const { directory, near, command, expectAlive } = await start();
  const saved = await command("save", "model.safetensors");
  expect(saved.ended).toMatchObject({ code: 0 });
  expect(saved.sent + saved.received).toBeLessThan(PAYLOAD_BYTES / 10);
  await near.setParams({ w: new Float32Array(PAYLOAD_BYTES / 4) });
  const loaded = await command("load", "--overwrite", join(directory, "model.safetensors"));
  expect(loaded.ended).toMatchObject({ code: 0 });
  expect(loaded.sent).toBeLessThan(1.1 * PAYLOAD_BYTES);
  expect(loaded.received).toBeLessThan(PAYLOAD_BYTES / 10);
  expect(new Set((await near.pullFull("w")).data as Float32Array)).toEqual(new Set([7]));
  expectAlive();
});

test("the values of a parameter are read", async () => {
  const { directory, command, expectAlive } = await start();
  const got = await command("get", "w", "--out", join(directory, "w.npy"));
  expect(got.ended).toMatchObject({ code: 0 });
  expect(got.received).toBeLessThan(1.1 * PAYLOAD_BYTES);
  expect(got.sent).toBeLessThan(PAYLOAD_BYTES / 10);
  expectAlive();
});

test("records and snapshots are archived", async () => {
  const { directory, job, command, expectAlive } = await start();
  await snapshotAll(job);
  const archive = join(directory, "archive");
  const archived = await command("archive", "--once", archive);
  expect(archived.ended).toMatchObject({ code: 0 });
  // The record that has initialized the block, and of the snapshot its values and the gradients of the open step.
  expect(archived.received).toBeLessThan(1.1 * 3 * PAYLOAD_BYTES);
  expect(archived.sent).toBeLessThan(PAYLOAD_BYTES / 10);
  expectAlive();
  const checked = await run(["archive", "--check", archive, "--json"]);
  expect(checked).toMatchObject({ code: 0 });
  const { shards } = JSON.parse(checked.stdout);
  expect(shards).toMatchObject([{ spans: [{ firstSeq: 1 }], missing: [] }]);
  expect(shards[0].snapshots).toBeGreaterThan(0);
});
