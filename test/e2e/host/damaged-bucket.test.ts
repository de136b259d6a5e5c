// Proves that a trained model is not reset by damage to its job's bucket: whichever bit of the broker's file has
// changed while all was down, the same trainer started again reads what was trained, or is told JOB_DAMAGED, as hosts
// tell; and once the entries are written again from what the shards know, it reads what was trained.
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { ensureError } from "../../../src/protocol/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, TEST_MS } from "../../support/limits.ts";
import { streamDirectory } from "./damage.ts";

const TRAINED = 50;
const PLACES = 14;

/** What the README's trainer does: initializes if it is selected; returns what it then reads, or the code. */
async function trainer(job: TestJob, trained = 1): Promise<number | string> {
  try {
    const client = await connect({
      url: job.broker.url,
      job: job.job,
      trainer: "t",
      timeoutMs: HANG_MS,
    });
    try {
      if (await client.beginInit()) {
        await client.initParam("w", Float32Array.of(1), { learningRate: 1 });
        await client.finishInit();
      }
      for (let i = 1; i < trained; i++) await client.pushFull("w", Float32Array.of(1), 1, 1);
      return (await client.pullFull("w")).data[0] as number;
    } finally {
      await client.close();
    }
  } catch (error) {
    return ensureError(error).code;
  }
}

/** What the trainer finds, or why no host serves the job. */
async function found(job: TestJob): Promise<{ host: TestHost; what: number | string }> {
  const host = job.spawnHost();
  const { type, error } = await host.line(
    (line) => line.type === "started" || line.type === "refused",
  );
  return { host, what: type === "refused" ? (error?.code ?? "") : await trainer(job) };
}

function recover(job: TestJob, ...flags: string[]): Promise<Finished> {
  const args = ["recover", "--job", job.job, ...flags];
  return run(args, { environment: { PSERVER_URL: job.broker.url } });
}

test.each(["stop", "kill"] as const)(
  "no changed bit resets a model that was trained, after a %s of the broker",
  async (end) => {
    const job = await TestJob.start({ shards: 1 });
    onTestFinished(() => job.remove());
    const store = join(await mkdtemp(join(tmpdir(), "pserver-bucket-")), "store");
    onTestFinished(() => rm(join(store, ".."), { recursive: true }));
    const first = await job.host();
    expect(await trainer(job, TRAINED)).toBe(TRAINED);
    await first.stop();
    await job.broker[end]();
    await cp(job.broker.storeDir, store, { recursive: true });
    const file = join(streamDirectory(job, "KV_PS_j"), "msgs", "1.blk");
    const sound = await readFile(file);
    const told = new Set<number | string>();
    for (let place = 0; place < PLACES; place++) {
      await rm(job.broker.storeDir, { recursive: true });
      await cp(store, job.broker.storeDir, { recursive: true });
      const at = Math.floor(((place + 0.5) * sound.length) / PLACES);
      const hurt = Buffer.from(sound);
      hurt[at] = (hurt[at] ?? 0) ^ (1 << (place % 8));
      await writeFile(file, hurt);
      await job.broker.start();
      const { host, what } = await found(job);
      told.add(what);
      expect([TRAINED, "JOB_DAMAGED"], `byte ${at}`).toContain(what);
      if (what !== TRAINED) {
        const { code, stdout, stderr } = await recover(job, "--entries", "--yes");
        console.log(end, at, code, stdout, stderr);
      }
      await host.kill();
      await job.broker.kill();
    }
    expect([...told].sort()).toEqual([TRAINED, "JOB_DAMAGED"]);
  },
  2 * TEST_MS,
);
