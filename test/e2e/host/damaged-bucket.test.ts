// Proves that a trained model is not reset by damage to its job's bucket: whichever bit of the broker's file has
// changed while all was down, the same trainer started again reads what was trained, or is told JOB_DAMAGED, as hosts
// tell; and once the entries are written again from what the shards know, it reads what was trained. Nothing is written
// after an entry that the broker cannot read: it may lose that.
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { ensureError } from "../../../src/protocol/index.ts";
import { type Finished, run } from "../../cli/spawn-command.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, QUICK_LEASE_MS, TEST_MS } from "../../support/limits.ts";
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
async function found(
  job: TestJob,
): Promise<{ host: TestHost; isServed: boolean; what: number | string }> {
  const host = job.spawnHost();
  // A host whose shard has failed has started, too.
  const line = await host.line(({ type }) => type === "started" || type === "refused");
  const isServed = line.type === "started";
  return { host, isServed, what: isServed ? await trainer(job) : (line.error?.code ?? "") };
}

function pserver(job: TestJob, command: string, ...flags: string[]): Promise<Finished> {
  const args = [command, "--job", job.job, ...flags];
  return run(args, { environment: { PSERVER_URL: job.broker.url } });
}

test.each(["stop", "kill"] as const)(
  "no changed bit resets a model that was trained, after a %s of the broker",
  async (end) => {
    const job = await TestJob.start({ leaseMs: QUICK_LEASE_MS, shards: 1 });
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
    let mended = 0;
    for (let place = 0; place < PLACES; place++) {
      await rm(job.broker.storeDir, { recursive: true });
      await cp(store, job.broker.storeDir, { recursive: true });
      const at = Math.floor(((place + 0.5) * sound.length) / PLACES);
      const hurt = Buffer.from(sound);
      hurt[at] = (hurt[at] ?? 0) ^ (1 << (place % 8));
      await writeFile(file, hurt);
      await job.broker.start();
      const { host, isServed, what } = await found(job);
      told.add(what);
      expect([TRAINED, "JOB_DAMAGED"], `byte ${at}`).toContain(what);
      // Without its settings, no host serves the job.
      if (what !== TRAINED && isServed) {
        for (const command of ["verify", "doctor"]) {
          const { code, stdout, stderr } = await pserver(job, command);
          expect(code, `byte ${at}: ${command}: ${stdout} ${stderr}`).toBe(1);
          expect(stdout + stderr).toMatch(/entr(y|ies)\b.*damaged/);
        }
        const entries = await pserver(job, "recover", "--entries", "--yes");
        const isRead = !`${entries.stdout}${entries.stderr}`.includes("the broker cannot read");
        if (!isRead) expect(entries.code).toBe(1);
        else {
          expect(entries.code, `byte ${at}: ${entries.stdout} ${entries.stderr}`).toBe(0);
          expect(await trainer(job), `byte ${at}: ${entries.stderr}`).toBe(TRAINED);
          expect((await pserver(job, "verify")).code).toBe(0);
          mended += 1;
        }
      }
      await host.kill();
      await job.broker.kill();
    }
    expect([...told].sort()).toEqual([TRAINED, "JOB_DAMAGED"]);
    if (end === "kill") expect(mended).toBeGreaterThan(0);
  },
  2 * TEST_MS,
);
