// Proves what becomes of the records of parameters that a shard in memory has lost: they can be initialized again,
// as can the job if nothing is left of it; other hosts notice; and journals on file are left alone. Buckets and
// owners are in memory.
import { beforeEach, describe, expect, test } from "vitest";
import { jobEntry } from "../../../src/actors/lifecycle/machine.ts";
import type { LifecycleService } from "../../../src/actors/lifecycle/service.ts";
import type { ParameterInfo } from "../../../src/protocol/index.ts";
import { Rig, refused, SHARDS, weights } from "./rig.ts";

let rig: Rig;

beforeEach(() => {
  rig = new Rig({ journal: "memory" });
});

function host(number = 0): LifecycleService {
  const service = rig.hosts[number];
  if (service === undefined) throw new Error(`no host ${number}`);
  return service;
}

/** A parameter of one block, created by itself on the shard of its name. */
async function create(name: string, session: number): Promise<ParameterInfo> {
  const { info, epoch } = await rig.create("t", session, weights(name));
  rig.owners.initialize(info);
  await rig.finish("t", session, epoch, { parameter: name });
  return info;
}

/** Loses everything on a shard, and has the host look that serves it then. */
async function lose(shard: number): ReturnType<LifecycleService["takeBackLost"]> {
  rig.owners.lose(shard);
  return await host().takeBackLost(shard);
}

async function stateOf(name: string, asked = 0): Promise<string> {
  const reply = await rig.ask("observer", "status", { names: [name] }, asked);
  const [info] = reply["parameters"] as ({ ready: boolean } | null)[];
  return info === null || info === undefined ? "gone" : info.ready ? "ready" : "initializing";
}

describe("a shard that has its blocks", () => {
  test("changes nothing", async () => {
    await rig.makeReady("t", ["w", "v"]);
    const before = await jobEntry.read(rig);
    for (let shard = 0; shard < SHARDS; shard++) {
      expect(await host().takeBackLost(shard)).toEqual({ parameters: [], isJob: false });
    }
    expect(await jobEntry.read(rig)).toEqual(before);
  });
});

describe("a shard that has lost all that was declared for the job", () => {
  test("makes the job initializable, under the next epoch and by whoever is first", async () => {
    await rig.makeReady("t", ["w", "v"]);
    const taken = await Promise.all(Array.from({ length: SHARDS }, (_, each) => lose(each)));
    expect(taken.flatMap(({ parameters }) => parameters).sort()).toEqual(["v", "w"]);
    expect(taken.filter(({ isJob }) => isJob)).toHaveLength(1);
    expect((await rig.status()).state).toBe("uninitialized");
    const session = await rig.join("u");
    expect(await rig.begin("u", session, 1)).toMatchObject({ selected: true, epoch: 2 });
    const [w] = await rig.declare("u", session, 2, [weights("w")], 1);
    expect(w).toMatchObject({ name: "w", epoch: 2 });
    if (w !== undefined) rig.owners.initialize(w);
    await rig.finish("u", session, 2);
    expect(await stateOf("w")).toBe("ready");
  });

  test("which a host finds again, after one that died on the way", async () => {
    await rig.makeReady("t", ["w"]);
    for (let shard = 0; shard < SHARDS; shard++) rig.owners.lose(shard);
    // The parameter's record was changed, and the job's was not.
    rig.bucket.losesRequest = ({ action, key }) => action === "update" && key === "job";
    for (let shard = 0; shard < SHARDS; shard++) {
      await host()
        .takeBackLost(shard)
        .catch(() => undefined);
    }
    expect((await rig.status()).state).toBe("ready");
    rig.bucket.losesRequest = () => false;
    expect(await host(1).takeBackLost(0)).toEqual({ parameters: [], isJob: true });
    expect((await rig.status()).state).toBe("uninitialized");
  });
});

describe("a shard that has lost one parameter of several", () => {
  test("makes that one creatable, and the job stays initialized", async () => {
    const session = await rig.makeReady("t", ["w"]);
    const kept = await create("kept", session);
    const names = Array.from({ length: 20 }, (_, i) => `p${i}`);
    let lost: ParameterInfo | undefined;
    for (const name of names) {
      const info = await create(name, session);
      if (info.layout.firstShard !== kept.layout.firstShard) lost ??= info;
    }
    const { name = "", layout } = lost ?? {};
    // The other host knows it as ready.
    expect(await stateOf(name, 1)).toBe("ready");
    const taken = await lose(layout?.firstShard ?? 0);
    expect(taken.parameters).toContain(name);
    expect(taken).toMatchObject({ isJob: false });
    expect([await stateOf(name), await stateOf(name, 1)]).toEqual(["gone", "gone"]);
    expect(await stateOf("kept", 1)).toBe("ready");
    expect((await rig.status()).state).toBe("ready");
    const { selected, epoch, info } = await rig.create("t", session, weights(name), 1);
    expect([selected, epoch]).toEqual([true, 2]);
    rig.owners.initialize(info);
    await rig.finish("t", session, epoch, { parameter: name });
    expect(await stateOf(name, 1)).toBe("ready");
  });
});

test("a parameter that is initialized anew meanwhile is not taken back", async () => {
  const session = await rig.makeReady("t", ["w", "v"]);
  const info = await create("own", session);
  const shard = info.layout.firstShard;
  rig.owners.lose(shard);
  const check = rig.owners.check.bind(rig.owners);
  rig.owners.check = async (asked, want) => {
    const answer = await check(asked, want);
    rig.owners.check = check;
    // Between the look at the shard and the change of the record, another host has done all of it.
    await host(1).takeBackLost(asked);
    await create("own", session);
    return answer;
  };
  await host().takeBackLost(shard);
  expect(await stateOf("own")).toBe("ready");
});

test("a job with its journals on file is left alone", async () => {
  rig = new Rig();
  await rig.makeReady("t", ["w"]);
  for (let shard = 0; shard < SHARDS; shard++) {
    expect(await lose(shard)).toEqual({ parameters: [], isJob: false });
  }
  expect((await rig.status()).state).toBe("ready");
});

describe("a finish", () => {
  test("comes after snapshots that hold what was initialized", async () => {
    const session = await rig.makeReady("t", ["w"]);
    expect(rig.owners.snapshots.map(({ shard }) => shard).sort()).toEqual([0, 1, 2, 3]);
    const { layout } = await create("own", session);
    const { shard, at } = rig.owners.snapshots.at(-1) ?? {};
    expect(shard).toBe(layout.firstShard);
    const end = rig.owners.position(layout.firstShard);
    // Only then is the shard told that it is initialized.
    expect(rig.owners.appended.at(-1)).toMatchObject({ shard, record: { verb: "ready" } });
    expect(at).toEqual({ ...end, seq: end.seq - 1 });
  });

  test("fails if a snapshot cannot be stored, and nothing is initialized", async () => {
    const session = await rig.join("t");
    const { epoch } = await rig.begin("t", session);
    const [w] = await rig.declare("t", session, epoch, [weights("w")]);
    if (w !== undefined) rig.owners.initialize(w);
    rig.owners.snapshotFailure = "JOURNAL_FULL";
    await refused("JOURNAL_FULL", rig.finish("t", session, epoch));
    expect((await rig.status()).state).toBe("initializing");
    rig.owners.snapshotFailure = undefined;
    await rig.finish("t", session, epoch);
    expect((await rig.status()).state).toBe("ready");
  });

  test("of a job with its journals on file makes none: the journals hold it", async () => {
    rig = new Rig();
    await rig.makeReady("t", ["w"]);
    expect(rig.owners.snapshots).toEqual([]);
  });
});
