// Proves that a job survives a broker whose disk was full, on a small file system of its own: while it is
// full trainers get JOURNAL_FULL and can pull, once there is space they continue, and exactly the
// acknowledged updates are in the values, also after the next owner has taken over. The broker gives out
// sequences to records of which it could write nothing, so that the journal has a gap. Of which it could
// write a part, it writes nothing any more until it is started again: JOURNAL_FAULT. One that is started on the
// full disk without a limit of its own takes what is free as its limit, and stays at it: it stores nothing until it is
// started again; with a limit it goes on by itself.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { BrokerOptions } from "../../../src/broker/start-broker.ts";
import type { Fields } from "../../../src/protocol/index.ts";
import { run } from "../../cli/spawn-command.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { mountObstacle, SmallDisk } from "../../support/small-disk.ts";
import { Archive } from "./journal-fold.ts";
import { TracedPushes } from "./traced-pushes.ts";

/** Why there can be no small disk here; "" where there can. */
const OBSTACLE = mountObstacle();

/** A job on a small disk, with three pushes done. */
interface Scene {
  readonly disk: SmallDisk;
  readonly job: TestJob;
  readonly host: TestHost;
  readonly pushes: TracedPushes;
}

let disk: SmallDisk | undefined;
let job: TestJob | undefined;

afterEach(async () => {
  await job?.remove();
  disk?.remove();
  [job, disk] = [undefined, undefined];
});

async function started(config: Partial<BrokerOptions> = {}): Promise<Scene> {
  disk ??= new SmallDisk();
  job = await TestJob.start(
    { shards: 1, journalBytesMax: 32 * 1024 * 1024 },
    { storeDir: join(disk.path, "store"), ...config },
  );
  const host = await job.host();
  const pushes = new TracedPushes(await job.trainer("a"));
  await pushes.begin();
  await pushes.pushAll(3);
  return { disk, job, host, pushes };
}

/** Fills the disk so that the journal gets a gap; gives the last sequence of it. */
async function makeHole({ disk, job, pushes }: Scene): Promise<number> {
  await using archive = await Archive.open(job.broker.url, job.job);
  let last = 0;
  await disk.fill();
  await pushes.pushUntil(
    async () => {
      ({ last } = await archive.journal(0));
      return last > (await archive.lastRecord(0));
    },
    async () => {
      // A page that the broker gave back in between took a part of the record: that leaves no gap.
      if (pushes.refusals.at(-1) === "JOURNAL_FAULT") {
        await disk.free();
        await job.broker.stop();
        await job.broker.start();
        await pushes.pushAll(1);
      }
      await disk.fill();
    },
  );
  expect(await pushes.check()).toBe(pushes.sum);
  return last;
}

/** What any owner must do from now on: take pushes, and be succeeded by another that agrees. */
async function goOn(host: TestHost, { job, pushes }: Scene): Promise<void> {
  await pushes.pushAll(2);
  const sum = await pushes.check();
  await job.crash(host);
  await job.host();
  expect(await pushes.check()).toBe(sum);
  await pushes.pushAll(1);
  await pushes.check();
}

/** Where the journal begins now. */
async function firstSeq({ job }: Scene): Promise<number> {
  await using archive = await Archive.open(job.broker.url, job.job);
  return (await archive.journal(0)).first;
}

describe.skipIf(OBSTACLE !== "")(`after the broker's disk was full${OBSTACLE}`, () => {
  test("a host that lived through it goes on, and so does the one after it", async () => {
    const scene = await started();
    const holeSeq = await makeHole(scene);
    await scene.disk.free();
    await goOn(scene.host, scene);
    expect(await firstSeq(scene)).toBeGreaterThan(holeSeq);
    expect(scene.host.lines.filter(({ type }) => type === "shard-failed")).toEqual([]);
  });

  test("a host that takes over before anything was written again goes on, too", async () => {
    const scene = await started();
    const holeSeq = await makeHole(scene);
    await scene.host.kill();
    await scene.disk.free();
    await scene.job.crash(scene.host);
    const second = await scene.job.host();
    expect(await scene.pushes.check()).toBe(scene.pushes.sum);
    await goOn(second, scene);
    expect(await firstSeq(scene)).toBeGreaterThan(holeSeq);
  });

  test("a broker that wrote half a record refuses all until it is started again", async () => {
    const { disk, pushes, ...rest } = await started();
    await disk.fillButAPage();
    await pushes.pushUntil(
      () => pushes.refusals.at(-1) === "JOURNAL_FAULT",
      () => disk.fillButAPage(),
    );
    expect(await pushes.check()).toBe(pushes.sum);
    await disk.free();
    await pushes.push(1_500);
    expect(pushes.refusals.at(-1)).toBe("JOURNAL_FAULT");
    await rest.job.broker.stop();
    await rest.job.broker.start();
    await goOn(rest.host, { disk, pushes, ...rest });
    expect(rest.host.lines.filter(({ type }) => type === "shard-failed")).toEqual([]);
  });

  describe("and it was killed and started again on the full disk", () => {
    /** The broker's configuration: a limit, or what a user writes who does not know of it. */
    async function startedAgain(config: Partial<BrokerOptions>): Promise<Scene> {
      const scene = await started(config);
      const { disk, job, pushes } = scene;
      await disk.fill();
      await pushes.push(1_500);
      expect(pushes.acknowledged).toHaveLength(3);
      await job.broker.kill();
      // What the broker writes at its start fits, a record does not.
      await disk.fillBut(64 * 1024);
      await job.broker.start();
      await disk.free();
      return scene;
    }

    async function limitCheck({ job }: Scene): Promise<Fields | undefined> {
      const at = ["--url", job.broker.url, "--job", job.job];
      const { stdout } = await run(["doctor", "--json", ...at]);
      const { checks } = JSON.parse(stdout) as { checks: Fields[] };
      return checks.find(({ name }) => name === "broker's limit");
    }

    test("with a limit of its own it goes on as soon as there is space", async () => {
      const scene = await startedAgain({ jetstreamConfig: "max_file: 96MB" });
      await goOn(scene.host, scene);
      expect(await limitCheck(scene)).toMatchObject({ status: "ok" });
    });

    test("without one it refuses all until it is started once more, and doctor says so", async () => {
      disk = new SmallDisk();
      const configFile = join(disk.path, "own.conf");
      await writeFile(configFile, "max_payload: 8MB\njetstream {}\n");
      const scene = await startedAgain({ configFile });
      const { job, pushes } = scene;
      // The broker stores nothing, so nothing is acknowledged.
      await pushes.push(1_500);
      expect(pushes.acknowledged).toHaveLength(3);
      expect(await limitCheck(scene)).toMatchObject({
        status: "warn",
        advice: expect.stringMatching(/restart it; max_file .* prevents that/),
      });
      await job.broker.stop();
      await job.broker.start();
      await goOn(scene.host, scene);
      expect(await limitCheck(scene)).toMatchObject({ status: "ok" });
    });
  });
});
