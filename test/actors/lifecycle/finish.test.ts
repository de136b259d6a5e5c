// Proves when a job becomes ready: only by the selected session, only with every declared block
// at its epoch, once; that the answer can be repeated; and that dead attempts are swept away.
import { describe, expect, test } from "vitest";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { Rig, refused, SHARDS, weights } from "./rig.ts";

/** A job that is being initialized, with these parameters declared. */
async function declaring(rig: Rig, names: readonly string[]): Promise<number> {
  const session = await rig.join("a");
  const { epoch } = await rig.begin("a", session);
  await rig.declare(
    "a",
    session,
    epoch,
    names.map((name) => weights(name)),
  );
  return session;
}

async function initialize(rig: Rig, names: readonly string[]): Promise<void> {
  for (const info of (await rig.status({ names })).parameters) {
    if (info !== null) rig.owners.initialize(info);
  }
}

describe("finish", () => {
  test("lists what is missing and makes the job ready once it is there", async () => {
    const rig = new Rig();
    const session = await declaring(rig, ["v", "w"]);
    await initialize(rig, ["v"]);
    const early = await refused("INCOMPLETE", rig.finish("a", session, 1), '"w" block 0', "2");
    expect(early.details).toMatchObject({ expected: 2, missing: 1, blocks: [["w", 0]] });
    expect((await rig.status()).state).toBe("initializing");
    await initialize(rig, ["w"]);
    expect(await rig.finish("a", session, 1)).toMatchObject({ state: "ready", epoch: 1 });
    const { state, parameters } = await rig.status({ names: ["w", "v"] });
    expect(state).toBe("ready");
    expect(parameters.map((info) => info?.ready)).toEqual([true, true]);
  });

  test("does not count blocks of an earlier attempt", async () => {
    const rig = new Rig();
    await declaring(rig, ["w"]);
    await initialize(rig, ["w"]);
    const session = await declaring(rig, ["w"]);
    await refused("INCOMPLETE", rig.finish("a", session, 2), '"w" block 0');
  });

  test("waits for what the client has published and stores a position for every shard", async () => {
    const rig = new Rig();
    const session = await declaring(rig, ["w"]);
    await initialize(rig, ["w"]);
    const at = [
      { shard: 1, generation: 1, seq: 40 },
      { shard: 1, generation: 1, seq: 9 },
    ];
    const reply = await rig.finish("a", session, 1, { at });
    expect(rig.owners.awaited).toHaveLength(SHARDS);
    expect(rig.owners.awaited).toContainEqual({ shard: 1, at: { generation: 1, seq: 40 } });
    const positions = (await rig.status()).at;
    expect(positions).toHaveLength(SHARDS);
    expect(positions[1]).toEqual({ generation: 1, seq: 40 });
    expect(reply["at"]).toEqual(positions.map((position, shard) => ({ shard, ...position })));
  });

  test("repeated by the session that finished gets the same answer", async () => {
    const rig = new Rig();
    const session = await declaring(rig, ["w"]);
    await initialize(rig, ["w"]);
    const first = await rig.finish("a", session, 1);
    rig.owners.silent = true;
    expect(await rig.finish("a", session, 1)).toEqual(first);
  });

  test.each([1, 2, 3])("whose answer number %i is lost still succeeds", async (number) => {
    const rig = new Rig();
    const session = await declaring(rig, ["w"]);
    await initialize(rig, ["w"]);
    let answers = 0;
    rig.bucket.losesAnswer = ({ key, action }) =>
      key === "job" && action === "update" && ++answers <= number && answers >= number - 1;
    expect(await rig.finish("a", session, 1)).toMatchObject({ state: "ready" });
    expect(await rig.begin("b", await rig.join("b"))).toMatchObject({ state: "ready", epoch: 1 });
  });

  test("through two hosts at once succeeds on both, with one answer", async () => {
    const between = (): Promise<unknown> => new Promise(setImmediate);
    const rig = new Rig({ bucket: new MemoryBucket({ between }) });
    const session = await declaring(rig, ["w"]);
    await initialize(rig, ["w"]);
    const fields = { session, epoch: 1, at: [] };
    const replies = await Promise.all([0, 1].map((host) => rig.ask("a", "finish", fields, host)));
    expect(replies[0]).toEqual(replies[1]);
  });

  test("after another has finished is refused", async () => {
    const rig = new Rig();
    await rig.makeReady("a", ["w"]);
    const b = await rig.join("b");
    await refused("ALREADY_INITIALIZED", rig.finish("b", b, 1), '"a"', "epoch 1");
  });

  test("of nothing is refused as empty, whatever was created beside the job", async () => {
    const rig = new Rig();
    const b = await rig.join("b");
    const { info } = await rig.create("b", b, weights("own"));
    rig.owners.initialize(info);
    await rig.finish("b", b, 1, { parameter: "own" });
    const session = await declaring(rig, ["w"]);
    await rig.ask("a", "abort", { session, epoch: 1 });
    await rig.begin("a", session);
    await refused("EMPTY", rig.finish("a", session, 2), "epoch 2");
  });

  test("of an attempt that was replaced is refused and leaves the new one alone", async () => {
    const rig = new Rig();
    const a = await declaring(rig, ["w"]);
    await initialize(rig, ["w"]);
    const b = await rig.join("b");
    await rig.ask("a", "abort", { session: a, epoch: 1 });
    await rig.begin("b", b);
    await refused("STALE_EPOCH", rig.finish("a", a, 1), "epoch 1", "epoch is 2");
    expect(await rig.status()).toMatchObject({ state: "initializing", by: "b" });
  });

  test("by one not selected, without storage, without owners or with a wrong shard is refused", async () => {
    const rig = new Rig();
    const session = await declaring(rig, ["w"]);
    await initialize(rig, ["w"]);
    const b = await rig.join("b");
    await refused("NOT_SELECTED", rig.finish("b", b, 1), '"a"', '"b"');
    const at = [{ shard: SHARDS, generation: 1, seq: 1 }];
    await refused("BAD_VALUE", rig.finish("a", session, 1, { at }));
    rig.owners.storageBytes = 31;
    await refused("NO_SPACE", rig.finish("a", session, 1));
    rig.owners.storageBytes = 32;
    rig.owners.silent = true;
    await refused("NO_OWNER", rig.finish("a", session, 1));
    rig.owners.silent = false;
    await rig.finish("a", session, 1);
  });

  test("asks for storage for the parameters that are ready by themselves, too", async () => {
    const rig = new Rig();
    const b = await rig.join("b");
    const { info } = await rig.create("b", b, weights("own"));
    rig.owners.initialize(info);
    await rig.finish("b", b, 1, { parameter: "own" });
    const session = await declaring(rig, ["w"]);
    await initialize(rig, ["w"]);
    rig.owners.storageBytes = 63;
    await refused("NO_SPACE", rig.finish("a", session, 1), "63", "64");
  });

  test("of more than a shard holds is refused before anybody is asked", async () => {
    const rig = new Rig();
    const session = await rig.join("a");
    await rig.begin("a", session);
    const half = { shape: [2 ** 31] };
    await rig.declare("a", session, 1, [weights("x", half), weights("y", half)]);
    await refused("TOO_LARGE", rig.finish("a", session, 1), "shard 0");
    expect(rig.owners.awaited).toEqual([]);
  });

  test("asks for the blocks of 3,000 parameters in requests that fit any broker", async () => {
    const rig = new Rig();
    const names = Array.from({ length: 3000 }, (_, i) => `p_${i}`);
    const session = await rig.join("a");
    await rig.begin("a", session);
    for (let from = 0; from < names.length; from += 250) {
      const page = names.slice(from, from + 250).map((name) => weights(name));
      for (const info of await rig.declare("a", session, 1, page)) rig.owners.initialize(info);
    }
    const sizes: number[] = [];
    const check = rig.owners.check.bind(rig.owners);
    rig.owners.check = async (shard, want) => {
      sizes.push(want.blocks.length);
      return await check(shard, want);
    };
    await rig.finish("a", session, 1);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(3000);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1000);
  });
});

describe("what failed attempts left behind", () => {
  test("is dropped on every shard that may hold it, and nothing else is", async () => {
    const rig = new Rig();
    const a = await rig.join("a");
    await rig.begin("a", a);
    const large = weights("dead", { shape: [6, 1024, 1024] });
    await rig.declare("a", a, 1, [large, weights("again")]);
    await rig.ask("a", "abort", { session: a, epoch: 1 });
    const c = await rig.join("c");
    await rig.create("c", c, weights("creating"));
    await rig.begin("a", a);
    await rig.declare("a", a, 2, [weights("again")]);
    await initialize(rig, ["again"]);
    await rig.finish("a", a, 2);
    const dropped = rig.owners.of("drop").map(({ shard, record }) => [shard, record]);
    const record = { verb: "drop", parameter: "dead", epoch: 1 };
    expect(dropped.toSorted()).toEqual([0, 1, 2, 3].map((shard) => [shard, record]));
    expect((await rig.status({ limit: 10 })).parameters.map((info) => info?.name)).toEqual([
      "again",
      "creating",
    ]);
  });

  test("can be declared again by nobody but created by anybody, above its old epoch", async () => {
    const rig = new Rig();
    const a = await declaring(rig, ["dead"]);
    await rig.ask("a", "abort", { session: a, epoch: 1 });
    await rig.begin("a", a);
    for (const info of await rig.declare("a", a, 2, [weights("w")])) rig.owners.initialize(info);
    await rig.finish("a", a, 2);
    const created = await rig.create("a", a, weights("dead"));
    expect(created).toMatchObject({ selected: true, epoch: 2 });
  });

  test.each(["before", "after"])(
    "includes a parameter whose declare arrived just %s finish looked",
    async (moment) => {
      const bucket = new MemoryBucket();
      const rig = new Rig({ bucket });
      const session = await declaring(rig, ["w"]);
      await initialize(rig, ["w"]);
      // A declare that was given up long ago writes while finish is under way.
      let late: Promise<unknown> | undefined;
      const declareLate = (): Promise<unknown> => {
        late ??= rig.declare("a", session, 1, [weights("late")], 1);
        return late;
      };
      const changes = bucket.changes.bind(bucket);
      // The reading of finish; the declare has one of its own, for the quotas.
      bucket.changes = async (...wanted) => {
        bucket.changes = changes;
        if (moment === "before") await declareLate();
        const readUpTo = await changes(...wanted);
        await declareLate();
        return readUpTo;
      };
      await rig.finish("a", session, 1);
      expect(await late).toMatchObject([{ name: "late" }]);
      const { parameters } = await rig.status({ names: ["w", "late"] });
      expect(parameters.map((info) => info?.ready)).toEqual([true, undefined]);
    },
  );
});
