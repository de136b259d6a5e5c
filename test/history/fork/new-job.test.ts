// Proves that a fork which is repeated leaves the entries of its own parameters and no others, whatever an
// interrupted one has written; that lost answers and lost requests do not end it; and that a run which another one has
// overtaken before any of its writes changes nothing any more, neither of the job that is complete and trained nor of
// one that was made anew under the same name. The bucket is in memory; a run is held up at one of its writes.
import { describe, expect, test } from "vitest";
import {
  forkOriginOf,
  newSettings,
  SETTINGS_KEY,
  withForkOrigin,
  withRemovalFlag,
} from "../../../src/actors/job/job-settings.ts";
import type { KvBucket } from "../../../src/actors/journal/kv-bucket.ts";
import { jobEntry, UNINITIALIZED } from "../../../src/actors/lifecycle/machine.ts";
import {
  changeParameter,
  type Parameter,
  readAllParameters,
} from "../../../src/actors/lifecycle/parameter.ts";
import { NewJob } from "../../../src/history/continue/new-job.ts";
import { toConfig } from "../../../src/protocol/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";

const NAMES = ["u", "v", "w"];

function parameter(name: string, epoch: number): Parameter {
  const { context } = UNINITIALIZED;
  return {
    declaration: { name, dtype: "float32", shape: [1], config: toConfig({}) },
    layout: { elements: 1, blockElements: 1, blocks: 1, firstShard: 0, shards: 1 },
    ...{ firstNumber: 1, blocksMax: 1, jobEpoch: 0, revision: 0 },
    lifecycle: { state: "ready", context: { ...context, epoch, trainer: "a" } },
  };
}

/** The parameters of a run, all under one epoch, which tells whose entries are there. */
function parameters(epoch: number, names: readonly string[] = NAMES): Parameter[] {
  return names.map((name) => parameter(name, epoch));
}

/** Takes the job over as a run does that begins: writes a token of its own. */
async function begin(bucket: MemoryBucket, token: string, as: KvBucket = bucket): Promise<NewJob> {
  const settings = await newSettings({ shards: 1, leases: "kv" }, async () => 1024);
  const origin = { of: "j", at: [], madeMs: 1, pending: token };
  const stored = await bucket.read(SETTINGS_KEY);
  const value = withForkOrigin(settings, origin);
  if (stored === undefined) await bucket.create(SETTINGS_KEY, value);
  else await bucket.update(SETTINGS_KEY, value, stored.revision);
  const space = { reserve: () => Promise.resolve() };
  return new NewJob({ job: "new", settings, bucket: as, origin, space });
}

/**
 * A bucket as one run sees it, whose writes reach it in order: `before` is called and awaited before each of them, with
 * its number.
 */
function held(bucket: KvBucket, before: (write: number) => Promise<void>): KvBucket {
  let writes = 0;
  let line: Promise<unknown> = Promise.resolve();
  const write =
    <Args extends unknown[], Result>(effect: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      const turn = line.then(() => before(++writes)).then(() => effect(...args));
      line = turn.catch(() => undefined);
      return await turn;
    };
  return {
    created: () => bucket.created(),
    read: (key) => bucket.read(key),
    lastRevision: () => bucket.lastRevision(),
    keys: (prefix) => bucket.keys(prefix),
    changes: (...args) => bucket.changes(...args),
    create: write((...args: Parameters<KvBucket["create"]>) => bucket.create(...args)),
    update: write((...args: Parameters<KvBucket["update"]>) => bucket.update(...args)),
    writeAfter: write((...args: Parameters<KvBucket["writeAfter"]>) => bucket.writeAfter(...args)),
    overwrite: write((...args: Parameters<KvBucket["overwrite"]>) => bucket.overwrite(...args)),
    remove: write((...args: Parameters<KvBucket["remove"]>) => bucket.remove(...args)),
  };
}

/** Every entry of the bucket with its revision. */
async function contents(bucket: MemoryBucket): Promise<unknown[]> {
  const keys = await bucket.keys("");
  return await Promise.all(keys.sort().map(async (key) => [key, await bucket.read(key)]));
}

/** Name and epoch of the parameters in a bucket, ascending. */
async function writtenTo(bucket: MemoryBucket): Promise<string[]> {
  const found = await readAllParameters(bucket);
  return found
    .map(({ declaration, lifecycle }) => `${declaration.name} ${lifecycle.context.epoch}`)
    .sort();
}

async function isComplete(bucket: MemoryBucket): Promise<boolean> {
  return forkOriginOf((await bucket.read(SETTINGS_KEY))?.value)?.pending === undefined;
}

/** Lets a run crash before its write number `at`. */
function crashAt(at: number): (write: number) => Promise<void> {
  return async (write) => {
    if (write >= at) throw new Error("killed");
  };
}

test("a repeated fork puts its entries in place of those of an interrupted one", async () => {
  const bucket = new MemoryBucket();
  const killed = await begin(bucket, "killed", held(bucket, crashAt(5)));
  await expect(killed.complete(parameters(1, ["t", "u", "v", "x"]))).rejects.toThrow("killed");
  expect(await writtenTo(bucket)).toEqual(["t 1", "u 1", "v 1"]);
  expect(await isComplete(bucket)).toBe(false);
  await (await begin(bucket, "again")).complete(parameters(2));
  expect(await writtenTo(bucket)).toEqual(["u 2", "v 2", "w 2"]);
  expect((await jobEntry.read({ bucket })).state).toBe("ready");
  expect(await isComplete(bucket)).toBe(true);
});

// The settings again, the parameters, the job, the settings without the token.
const WRITES = [1, 2, 3, 4, 5, 6] as const;

test("the writes of these tests are all that there are", async () => {
  const bucket = new MemoryBucket();
  let writes = 0;
  const counted = held(bucket, async (write) => {
    writes = write;
  });
  await (await begin(bucket, "one", counted)).complete(parameters(1));
  expect(writes).toBe(WRITES.length);
});

describe.each(WRITES)("write %i", (at) => {
  test.each(["losesAnswer", "losesRequest"] as const)(
    "%s once, and is made or found done",
    async (how) => {
      const bucket = new MemoryBucket();
      const run = await begin(bucket, "one");
      let writes = 0;
      bucket[how] = ({ action }) =>
        (action === "update" || action === "writeAfter") && ++writes === at;
      await run.complete(parameters(1));
      expect(await writtenTo(bucket)).toEqual(["u 1", "v 1", "w 1"]);
      expect((await jobEntry.read({ bucket })).state).toBe("ready");
      expect(await isComplete(bucket)).toBe(true);
    },
  );

  test("of a run that was overtaken changes nothing of a job that is complete and trained", async () => {
    const bucket = new MemoryBucket();
    let before: unknown[] = [];
    const slow = held(bucket, async (write) => {
      if (write !== at) return;
      await (await begin(bucket, "fast")).complete(parameters(2));
      const pause = async (): Promise<void> => undefined;
      await changeParameter({ bucket, pause }, "u", () => parameter("u", 7));
      await changeParameter({ bucket, pause }, "new", () => parameter("new", 1));
      before = await contents(bucket);
    });
    const run = await begin(bucket, "slow", slow);
    await expect(run.complete(parameters(1))).rejects.toMatchObject({ code: "BUSY" });
    expect(await contents(bucket)).toEqual(before);
    expect(await writtenTo(bucket)).toEqual(["new 1", "u 7", "v 2", "w 2"]);
  });

  test("of a run whose job is being removed does not make it a job again", async () => {
    const bucket = new MemoryBucket();
    let before: unknown[] = [];
    const slow = held(bucket, async (write) => {
      if (write !== at) return;
      const stored = await bucket.read(SETTINGS_KEY);
      await bucket.update(SETTINGS_KEY, withRemovalFlag(stored?.value), stored?.revision ?? 0);
      before = await contents(bucket);
    });
    const run = await begin(bucket, "slow", slow);
    await expect(run.complete(parameters(1))).rejects.toMatchObject({ code: "BUSY" });
    expect(await contents(bucket)).toEqual(before);
  });

  test("of a run that was overtaken by one that is not complete adds nothing to what that one writes", async () => {
    const bucket = new MemoryBucket();
    let fast: NewJob | undefined;
    const slow = held(bucket, async (write) => {
      if (write === at) fast = await begin(bucket, "fast");
    });
    const run = await begin(bucket, "slow", slow);
    await expect(run.complete(parameters(1, ["t", ...NAMES]))).rejects.toMatchObject({
      code: "BUSY",
    });
    await fast?.complete(parameters(2));
    expect(await writtenTo(bucket)).toEqual(["u 2", "v 2", "w 2"]);
    expect(await isComplete(bucket)).toBe(true);
  });
});
