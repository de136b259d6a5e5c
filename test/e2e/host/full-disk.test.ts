// Proves that a job survives a broker whose disk was full, on a small file system of its own: while
// it is full trainers get JOURNAL_FULL and can pull, once there is room they go on without help, and
// exactly the acknowledged updates are in the values, also after the next owner has taken over. The
// broker gives out sequences to records that it could not write, so that the journal has a hole.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import type { PserverError } from "../../../src/protocol/index.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { Archive } from "./journal-fold.ts";

const DISK_BYTES = 128 * 1024 * 1024;

/** Elements of 4 MiB: as large as a record gets, so that each begins a file of the broker's. */
const ELEMENTS = 1024 * 1024;

/** Why a file system cannot be mounted here; "" where it can. */
const OBSTACLE = mountObstacle();

class SmallDisk {
  readonly path: string;

  constructor() {
    this.path = mkdtempSync(join(tmpdir(), "pserver-disk-"));
    mount(this.path);
  }

  /** Takes all room that is left, to the last byte. */
  async fill(): Promise<void> {
    const file = await open(join(this.path, "fill"), "w");
    try {
      for (const bytes of [1024 * 1024, 4096]) {
        const chunk = Buffer.alloc(bytes);
        while ((await written(file, chunk)) === bytes);
      }
    } finally {
      await file.close();
    }
  }

  async free(): Promise<void> {
    await rm(join(this.path, "fill"));
  }

  remove(): void {
    execFileSync("umount", [this.path]);
    rmSync(this.path, { recursive: true });
  }
}

/** Pushes whose traces in the values can be told apart: the k-th adds 2^k to every element. */
class Pushes {
  readonly acknowledged: number[] = [];
  readonly refused: number[] = [];
  readonly unknown: number[] = [];
  readonly #client: Client;
  #next = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  async push(timeoutMs = 20_000): Promise<void> {
    const bit = 2 ** this.#next++;
    try {
      const w = new Float32Array(ELEMENTS).fill(-bit);
      await this.#client.sendGrads({ w }, { timeoutMs });
      this.acknowledged.push(bit);
    } catch (error) {
      const { code } = error as PserverError;
      expect(["JOURNAL_FULL", "OUTCOME_UNKNOWN"]).toContain(code);
      (code === "JOURNAL_FULL" ? this.refused : this.unknown).push(bit);
    }
  }

  /** Holds the values against what the pushes were told. */
  async check(): Promise<number> {
    const { data } = await this.#client.pullFull("w");
    const values = new Set([...data].map(Number));
    expect(values.size).toBe(1);
    const [sum = 0] = values;
    for (const bit of this.acknowledged) expect(sum & bit).toBe(bit);
    for (const bit of this.refused) expect(sum & bit).toBe(0);
    return sum;
  }
}

/** A job whose journal has a hole, up to this sequence at least. */
interface Scene {
  readonly job: TestJob;
  readonly pushes: Pushes;
  readonly holeSeq: number;
}

let disk: SmallDisk | undefined;
let job: TestJob | undefined;

afterEach(async () => {
  await job?.remove();
  disk?.remove();
  [job, disk] = [undefined, undefined];
});

/** A job on a small disk, with three pushes done, then the disk full and a hole in the journal. */
async function fullDisk(): Promise<Scene & { host: TestHost }> {
  disk = new SmallDisk();
  job = await TestJob.start(
    { shards: 1, journalBytesMax: 32 * 1024 * 1024 },
    { storeDir: join(disk.path, "store") },
  );
  const host = await job.host();
  const client = await job.trainer("a");
  await client.createIfNotAlreadyCreated("w", new Float32Array(ELEMENTS), { learningRate: 1 });
  const pushes = new Pushes(client);
  for (let i = 0; i < 3; i++) await pushes.push();
  expect(pushes.acknowledged).toHaveLength(3);
  await disk.fill();
  while (pushes.refused.length < 2) await pushes.push(1_500);
  await using archive = await Archive.open(job.broker.url, job.job);
  let { last } = await archive.journal(0);
  // Not every push that the broker refuses leaves a hole, and without one nothing would be proved.
  while (last <= (await archive.lastRecord(0))) {
    await pushes.push(1_500);
    ({ last } = await archive.journal(0));
  }
  expect(await pushes.check()).toBe(7);
  return { job, host, pushes, holeSeq: last };
}

/** What any owner must do from now on: take pushes, and be succeeded by another that agrees. */
async function goOn(host: TestHost, { job, pushes, holeSeq }: Scene): Promise<void> {
  const before = pushes.acknowledged.length;
  await pushes.push();
  await pushes.push();
  expect(pushes.acknowledged).toHaveLength(before + 2);
  const sum = await pushes.check();
  await using archive = await Archive.open(job.broker.url, job.job);
  expect((await archive.journal(0)).first).toBeGreaterThan(holeSeq);
  await host.kill();
  await job.host();
  expect(await pushes.check()).toBe(sum);
  await pushes.push();
  expect(pushes.acknowledged).toHaveLength(before + 3);
  await pushes.check();
}

describe.skipIf(OBSTACLE !== "")(`after the broker's disk was full${OBSTACLE}`, () => {
  test("a host that lived through it goes on, and so does the one after it", async () => {
    const { host, ...scene } = await fullDisk();
    await disk?.free();
    await goOn(host, scene);
    expect(host.lines.filter(({ type }) => type === "shard-failed")).toEqual([]);
  });

  test("a host that takes over before anything was written again goes on, too", async () => {
    const { host, ...scene } = await fullDisk();
    await host.kill();
    await disk?.free();
    const second = await scene.job.host();
    expect(await scene.pushes.check()).toBe(7);
    await goOn(second, scene);
  });
});

/** Bytes of a chunk that the disk still took. */
async function written(
  file: { write(chunk: Buffer): Promise<{ bytesWritten: number }> },
  chunk: Buffer,
): Promise<number> {
  try {
    return (await file.write(chunk)).bytesWritten;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return 0;
    throw error;
  }
}

function mount(path: string): void {
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", path], {
    stdio: "pipe",
  });
}

function mountObstacle(): string {
  const path = mkdtempSync(join(tmpdir(), "pserver-disk-"));
  try {
    mount(path);
    execFileSync("umount", [path]);
    return "";
  } catch (error) {
    const [line] = (error as Error).message.split("\n").slice(-2);
    return ` (skipped: a file system cannot be mounted here: ${line})`;
  } finally {
    rmSync(path, { recursive: true });
  }
}
