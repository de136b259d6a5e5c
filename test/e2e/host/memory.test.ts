// Proves that a host takes no shard over that does not fit into its memory: another one that has enough
// memory gets it; while none has, requests get NO_MEMORY, which `status` and `doctor` show, too; and that new
// parameters that fit nowhere are refused before their values are sent.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { placeShard } from "../../../src/actors/host/shard-claims.ts";
import type { Client } from "../../../src/client/index.ts";
import { atDeadline } from "../../support/at-deadline.ts";
import { type TestHost, TestJob } from "../../support/host.ts";
import { HANG_MS, MORTAL_LEASE_MS } from "../../support/limits.ts";
import { control, snapshotAll } from "./control.ts";

const COMMAND = join(import.meta.dirname, "../../../dist/pserver.js");
const MIB = 1024 * 1024;
const SMALL = { id: "small", memoryLimitBytes: 4 * MIB };
const WAIT = { timeout: HANG_MS, interval: 50 };
/** For reads that wait until a shard has moved, of more bytes than a busy machine passes on in half a minute. */
const CALL = { timeoutMs: HANG_MS };

let job: TestJob;
let big: TestHost;
let client: Client;

/** Eight MiB of values, four on each of two shards, which a host must load from a snapshot. */
beforeEach(async () => {
  job = await TestJob.start({ leaseMs: MORTAL_LEASE_MS, shards: 2, workers: 1 });
  big = await job.host({ id: "big" });
  client = await job.trainer("t");
  await client.beginInit();
  await client.initParam("w", new Float32Array(2 * MIB).fill(3), { learningRate: 1 });
  await client.finishInit();
  await snapshotAll(job);
});

afterEach(async () => {
  await job.remove();
});

interface Shown {
  readonly shard: number;
  readonly state: string;
  readonly error?: { readonly code: string };
}

async function shards(): Promise<readonly Shown[]> {
  return (await control(job, "hosts", {}))["shards"] as Shown[];
}

async function doctor(): Promise<string> {
  const at = ["--url", job.broker.url, "--job", job.job];
  const args = [COMMAND, "doctor", ...at];
  return await new Promise((resolve) => {
    execFile(process.execPath, args, (_error, stdout) => resolve(stdout));
  });
}

test("a shard that does not fit goes to a host that has enough memory", async () => {
  // By placement alone the small one would own a shard.
  const placed = [0, 1].map((shard) => placeShard(job.job, shard, ["big", "small"]));
  expect(placed).toContain("small");
  const from = big.lines.length;
  const small = await job.host(SMALL);
  const { shard } = await small.line(({ type }) => type === "no-memory");
  await big.line((line) => line.type === "serving" && line.shard === shard, from);
  await vi.waitFor(async () => {
    expect((await shards()).map(({ state }) => state)).toEqual(["serving", "serving"]);
  }, WAIT);
  expect((await client.pullFull("w", CALL)).data[0]).toBe(3);
  expect(small.lines.filter(({ type }) => type === "serving")).toEqual([]);
});

test("values that are only in the journal yet count like those of a snapshot", async () => {
  // The snapshots of both shards fit, and what has come since fits once.
  await client.createIfNotAlreadyCreated("late", new Float32Array(2 * MIB).fill(4));
  const small = await job.host({ ...SMALL, memoryLimitBytes: 14 * MIB });
  await big.kill();
  await vi.waitFor(async () => {
    expect((await shards()).map(({ state }) => state).sort()).toEqual(["no-memory", "serving"]);
  }, WAIT);
  expect(small.lines.filter(({ type }) => type === "shard-failed")).toEqual([]);
  await job.host({ id: "other" });
  expect((await client.pullFull("late", CALL)).data).toEqual(new Float32Array(2 * MIB).fill(4));
  expect((await client.pullFull("w", CALL)).data[0]).toBe(3);
});

test("while no host has enough memory, requests get NO_MEMORY until one comes", async () => {
  const small = await job.host(SMALL);
  await big.kill();
  await vi.waitFor(async () => {
    expect((await shards()).map(({ state }) => state)).toEqual(["no-memory", "no-memory"]);
  }, WAIT);
  const [first] = await shards();
  expect(first?.error?.code).toBe("NO_MEMORY");
  expect(await doctor()).toMatch(/shards.*no-memory.*NO_MEMORY: shard 0: expected \d+ bytes/);
  expect(
    await atDeadline("NO_MEMORY", (timeoutMs) => client.pullFull("w", { timeoutMs })),
  ).toMatchObject({ code: "NO_MEMORY" });
  expect(small.lines.filter(({ type }) => type === "stopped")).toEqual([]);
  await job.host({ id: "other" });
  await vi.waitFor(async () => {
    expect((await client.pullFull("w", CALL)).data[0]).toBe(3);
  }, WAIT);
});

test("a parameter that fits nowhere is refused before its values are sent", async () => {
  await big.stop();
  await job.host({ id: "limited", memoryLimitBytes: 14 * MIB });
  const before = (await shards()).map((shown) => (shown as { seq?: number }).seq);
  const values = new Float32Array(4 * MIB);
  const refused = await atDeadline("NO_MEMORY", (timeoutMs) =>
    client.createIfNotAlreadyCreated("large", values, {}, { timeoutMs }),
  );
  expect(refused).toMatchObject({ code: "NO_MEMORY" });
  expect((await shards()).map((shown) => (shown as { seq?: number }).seq)).toEqual(before);
  await client.createIfNotAlreadyCreated("little", new Float32Array(1_000));
  expect((await client.pullFull("little")).data).toHaveLength(1_000);
});
