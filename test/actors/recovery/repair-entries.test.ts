// Proves how damaged entries of a job's bucket are written again, with buckets and shards in memory: settings from what
// they were, before any host can serve a shard; parameters as initialized only if all their blocks are there, so that
// one that has lost blocks with a shard's records can be initialized again.
import { beforeEach, describe, expect, test } from "vitest";
import { newSettings, SETTINGS_KEY } from "../../../src/actors/job/job-settings.ts";
import { parameterKey } from "../../../src/actors/lifecycle/lock.ts";
import { readAllParameters } from "../../../src/actors/lifecycle/parameter.ts";
import { inspectEntries } from "../../../src/actors/recovery/inspect-entries.ts";
import { repairEntries } from "../../../src/actors/recovery/repair-entries.ts";
import { Rig, SHARDS, weights } from "../lifecycle/rig.ts";

const KEY = parameterKey("own");

let rig: Rig;
let settings: object;
/** The shard of the parameter's only block. */
let holder: number;

beforeEach(async () => {
  rig = new Rig();
  settings = await newSettings({ shards: SHARDS, leases: "kv" }, async () => 1 << 24);
  await rig.bucket.create(SETTINGS_KEY, settings);
  const session = await rig.makeReady("t", ["w"]);
  const { epoch, info } = await rig.create("t", session, weights("own"));
  rig.owners.initialize(info);
  holder = info.layout.firstShard;
  await rig.finish("t", session, epoch, { parameter: "own" });
  expect(await stateOf()).toBe("ready");
});

async function stateOf(): Promise<string | undefined> {
  const all = await readAllParameters(rig.bucket);
  return all.find(({ declaration }) => declaration.name === "own")?.lifecycle.state;
}

async function inspect(isServed: (shard: number) => boolean = () => true) {
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard);
  return await inspectEntries(rig.bucket, shards, async (shard) =>
    isServed(shard) ? await rig.owners.known(shard) : undefined,
  );
}

async function repair(isServed?: (shard: number) => boolean): Promise<string[]> {
  const deps = { bucket: rig.bucket, owners: rig.owners, settingsEntry: settings };
  return await repairEntries(deps, await inspect(isServed));
}

async function problems(): Promise<string[]> {
  return (await inspect()).problems.map(({ key }) => key);
}

describe("settings", () => {
  test.each([undefined, "{}"])(
    "that are lost or damaged are written as they were: %s",
    async (text) => {
      rig.bucket.damage(SETTINGS_KEY, text);
      expect(await problems()).toEqual([SETTINGS_KEY]);
      expect(await repair(() => false)).toEqual([SETTINGS_KEY]);
      expect((await rig.bucket.read(SETTINGS_KEY))?.value).toEqual(settings);
      expect(await problems()).toEqual([]);
    },
  );

  test("are written alone while shards cannot be asked, and with the rest once they can", async () => {
    rig.bucket.damage(SETTINGS_KEY, undefined);
    rig.bucket.damage(KEY, "{}");
    expect(await repair((shard) => shard !== holder)).toEqual([SETTINGS_KEY]);
    expect(await problems()).toEqual([KEY]);
    await expect(repair((shard) => shard !== holder)).rejects.toMatchObject({ code: "NO_OWNER" });
    rig.bucket.damage(SETTINGS_KEY, undefined);
    expect(await repair()).toEqual(expect.arrayContaining([SETTINGS_KEY, KEY]));
    expect(await stateOf()).toBe("ready");
  });
});

describe("a parameter's entry", () => {
  test("is written as initialized if its blocks are there", async () => {
    rig.bucket.damage(KEY, "{}");
    expect(await repair()).toContain(KEY);
    expect(await stateOf()).toBe("ready");
    expect(await problems()).toEqual([]);
  });

  test("is written so that the parameter can be initialized again if a block is lost", async () => {
    rig.bucket.damage(KEY, "{}");
    rig.owners.lose(holder);
    expect(await repair()).toContain(KEY);
    expect(await stateOf()).toBe("uninitialized");
    expect(await problems()).toEqual([]);
    // The next host tells the shards how often the job was revised.
    const next = new Rig({ bucket: rig.bucket, owners: rig.owners });
    await next.begin("t", await next.join("t"));
    expect(await problems()).toEqual([]);
  });
});
