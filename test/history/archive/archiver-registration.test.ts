// Proves that an archiver's registration is in the job's bucket from the start, follows what is archived, is the newest
// run's alone, also if an earlier one comes late, is known to be lost where hosts have removed it, and is gone at the
// end, on a bucket in memory whose requests and answers can be lost.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  ARCHIVERS_MAX,
  type ArchivedShard,
  archiverKey,
  parseArchiverEntry,
  stoppedArchiverKey,
} from "../../../src/actors/journal/archivers.ts";
import { ArchiverRegistration } from "../../../src/history/archive/archiver-registration.ts";
import { PserverError } from "../../../src/protocol/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

const KEY = archiverKey("an-archive");
const GRACE_MS = 10_000;
let bucket: MemoryBucket;
let archived: ArchivedShard[];
let completeMs: number | undefined;
let failures: string[];

beforeEach(() => {
  vi.useFakeTimers();
  bucket = new MemoryBucket();
  archived = [];
  completeMs = undefined;
  failures = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function registration(): ArchiverRegistration {
  return new ArchiverRegistration({
    ...{ bucket, archive: "an-archive", directory: "there", graceMs: GRACE_MS },
    archived: () => archived,
    completeMs: () => completeMs,
    onFailure: ({ code }) => failures.push(code),
  });
}

async function stored() {
  const entry = await bucket.read(KEY);
  return entry && { ...parseArchiverEntry(entry.value, KEY), revision: entry.revision };
}

function copied(seq: number): ArchivedShard {
  return { record: { generation: 1, seq }, snapshot: { generation: 1, seq } };
}

test("is there from the start, and follows what is archived", async () => {
  const own = registration();
  await own.start();
  expect(await stored()).toMatchObject({ archiver: "an-archive", graceMs: GRACE_MS, shards: [] });
  archived = [copied(7)];
  await vi.advanceTimersByTimeAsync(GRACE_MS / 10);
  expect((await stored())?.shards).toEqual([copied(7)]);
  await own.end();
});

test("is left alone at the end by an archiver whose successor has taken it over", async () => {
  const [late, next] = [registration(), registration()];
  await late.start();
  late.stop();
  vi.setSystemTime(Date.now() + 1);
  archived = [copied(9)];
  await next.start();
  await late.end();
  expect((await stored())?.shards).toEqual([copied(9)]);
  await next.end();
  expect(await stored()).toBeUndefined();
});

test("is renewed although nothing has changed", async () => {
  const own = registration();
  await own.start();
  const first = (await stored())?.revision ?? 0;
  await vi.advanceTimersByTimeAsync(GRACE_MS);
  expect((await stored())?.revision).toBeGreaterThanOrEqual(first + 10);
  await own.end();
});

test("is lost where hosts have removed it, and comes back with another run", async () => {
  const own = registration();
  const run = await own.start();
  await bucket.remove(KEY, (await stored())?.revision ?? 0);
  await vi.advanceTimersByTimeAsync(GRACE_MS / 10);
  expect([own.isForgotten, own.lost.aborted, failures]).toEqual([true, true, ["TIMEOUT"]]);
  expect(await stored()).toBeUndefined();
  expect(await own.start()).toBeGreaterThan(run);
  expect([own.isForgotten, own.lost.aborted]).toEqual([false, false]);
  expect(await stored()).toBeDefined();
  await own.end();
});

test("of a run that another one has taken over from is neither written nor removed by it any more", async () => {
  const [late, next] = [registration(), registration()];
  const run = await late.start();
  expect(await next.start()).toBeGreaterThan(run);
  next.stop();
  const taken = await stored();
  await vi.advanceTimersByTimeAsync(GRACE_MS / 10);
  expect([late.lost.reason.code, late.isForgotten]).toEqual(["STORE_IN_USE", false]);
  // It ends by that, and need not be told.
  expect(failures).toEqual([]);
  for (const write of [late.renew(), late.fail(new PserverError("DISK_FULL", "no space"))]) {
    await expect(write).rejects.toMatchObject({ code: "STORE_IN_USE" });
  }
  await late.end();
  expect(await stored()).toEqual(taken);
});

test("takes over that of an archiver that died", async () => {
  const dead = registration();
  await dead.start();
  dead.stop();
  archived = [copied(9)];
  const own = registration();
  await own.start();
  expect((await stored())?.shards).toEqual([copied(9)]);
  await own.end();
});

test("a renewal that fails is told and repeated", async () => {
  const own = registration();
  await own.start();
  bucket.losesAnswer = ({ action }) => action === "update";
  await vi.advanceTimersByTimeAsync(GRACE_MS / 10);
  expect(failures).toEqual(["TIMEOUT"]);
  bucket.losesAnswer = () => false;
  archived = [copied(3)];
  await vi.advanceTimersByTimeAsync(GRACE_MS / 10);
  expect((await stored())?.shards).toEqual([copied(3)]);
  expect(failures).toHaveLength(1);
  await own.end();
});

test("is gone at the end, and not when it is only stopped", async () => {
  const own = registration();
  await own.start();
  own.stop();
  await vi.advanceTimersByTimeAsync(GRACE_MS);
  expect(await stored()).toBeDefined();
  await own.end();
  expect(await stored()).toBeUndefined();
});

test("says when it was complete, and why the archiver has ended", async () => {
  const own = registration();
  await own.start();
  expect(await stored()).not.toHaveProperty("completeMs");
  completeMs = 1_234;
  await vi.advanceTimersByTimeAsync(GRACE_MS / 10);
  expect(await stored()).toMatchObject({ completeMs });
  expect(await stored()).not.toHaveProperty("failure");
  await own.fail(new PserverError("DISK_FULL", "no space"));
  const failed = await stored();
  expect(failed?.failure).toEqual({ code: "DISK_FULL", message: "no space" });
  // It is not renewed any more.
  await vi.advanceTimersByTimeAsync(GRACE_MS);
  expect(await stored()).toEqual(failed);
});

test("takes back that the archiver has stopped", async () => {
  const key = stoppedArchiverKey("an-archive");
  await bucket.create(key, {});
  const own = registration();
  await own.start();
  expect(await bucket.read(key)).toBeUndefined();
  await own.end();
});

test("is refused where the job has as many archivers as it may, unless it is there already", async () => {
  const own = registration();
  await own.start();
  for (let i = 1; i < ARCHIVERS_MAX; i++) await bucket.create(archiverKey(`${i}`), { n: 1 });
  await registration().start();
  await own.end();
  await bucket.create(archiverKey("another"), { n: 1 });
  if ((await stored()) !== undefined)
    await bucket.remove(KEY, (await bucket.read(KEY))?.revision ?? 0);
  await expect(registration().start()).rejects.toMatchObject({
    code: "QUOTA",
    message: expect.stringContaining(`at most ${ARCHIVERS_MAX} archivers`),
  });
  expect(await stored()).toBeUndefined();
});
