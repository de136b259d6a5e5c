// Proves that hosts which make a job at one time agree on its settings: one writes them, and the others, whose
// writes are refused while that one cannot be read yet, wait for it, write themselves if it was lost, and fail
// with an error that can pass if neither happens.
import { expect, test } from "vitest";
import { SETTINGS_KEY, settleSettings } from "../../../src/actors/job/job-settings.ts";

import { toGuard } from "../../../src/protocol/config/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

const WANTED = { leases: "kv", journalBytesMax: 1 << 24 } as const;

/** A bucket in which a write of another host is under way until so many attempts have been refused. */
class BusyBucket extends MemoryBucket {
  refusals = 0;
  readonly #until: number;
  readonly #settled: unknown;

  constructor(until: number, settled: unknown) {
    super();
    this.#until = until;
    this.#settled = settled;
  }

  override async create(key: string, value: unknown): Promise<number | undefined> {
    if (this.refusals === this.#until) return await super.create(key, value);
    this.refusals += 1;
    if (this.refusals === this.#until && this.#settled !== undefined) {
      await super.create(key, this.#settled);
    }
    return undefined;
  }
}

function settle(bucket: MemoryBucket, shards: number, hasSnapshots = false) {
  const findJournalBytes = () => Promise.reject(new Error("the limit is given"));
  const deps = {
    ...{ bucket, job: "j", findJournalBytes, pause: () => Promise.resolve() },
    hasSnapshots: () => Promise.resolve(hasSnapshots),
  };
  return settleSettings(deps, { ...WANTED, shards });
}

test("the first host writes the settings, and the next one finds them", async () => {
  const bucket = new MemoryBucket();
  const written = await settle(bucket, 4);
  expect(written).toMatchObject({ shards: 4, replicas: 1 });
  expect(await settle(bucket, 4)).toEqual(written);
  await expect(settle(bucket, 5)).rejects.toMatchObject({ code: "JOB_EXISTS" });
});

test("a job has the guard of its first host, or none, and no other host can ask for another one", async () => {
  const deps = (bucket: MemoryBucket) => ({
    ...{
      bucket,
      job: "j",
      findJournalBytes: () => Promise.reject(new Error("the limit is given")),
    },
    hasSnapshots: () => Promise.resolve(false),
  });
  const [guard, other] = [toGuard({ factor: 3 }), toGuard({ factor: 4 })];
  const guarded = new MemoryBucket();
  expect(await settleSettings(deps(guarded), { ...WANTED, guard })).toMatchObject({ guard });
  expect(await settleSettings(deps(guarded), WANTED)).toMatchObject({ guard });
  await expect(settleSettings(deps(guarded), { ...WANTED, guard: other })).rejects.toMatchObject({
    ...{ code: "JOB_EXISTS", details: { setting: "guard" } },
  });
  const plain = new MemoryBucket();
  expect(await settleSettings(deps(plain), WANTED)).not.toHaveProperty("guard");
  await expect(settleSettings(deps(plain), { ...WANTED, guard })).rejects.toMatchObject({
    ...{ code: "JOB_EXISTS", details: { expected: "none" } },
  });
});

test("settings that another host is writing are waited for", async () => {
  const others = await settle(new MemoryBucket(), 4);
  const bucket = new BusyBucket(3, others);
  expect(await settle(bucket, 4)).toEqual(others);
  expect(bucket.refusals).toBe(3);
});

test("settings that another host's write has lost are written", async () => {
  const bucket = new BusyBucket(3, undefined);
  const written = await settle(bucket, 4);
  expect((await bucket.read(SETTINGS_KEY))?.value).toMatchObject({ shards: 4 });
  expect(written.shards).toBe(4);
});

test("a write whose answer is lost is found done", async () => {
  const bucket = new MemoryBucket();
  bucket.losesAnswer = ({ action }) => action === "create";
  expect(await settle(bucket, 4)).toMatchObject({ shards: 4 });
});

test("a write that never comes to an end is an error that can pass", async () => {
  const settling = settle(new BusyBucket(Number.POSITIVE_INFINITY, undefined), 4);
  await expect(settling).rejects.toMatchObject({ code: "JETSTREAM_UNAVAILABLE", retryable: true });
});
