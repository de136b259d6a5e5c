// Proves the lifecycle of one parameter by itself: one creator however many ask, takeover as for
// the job, and how it goes together with a job that declares the same name.
import { describe, expect, test } from "vitest";
import type { Fields } from "../../../src/protocol/index.ts";
import { LEASE_MS, Rig, refused, weights } from "./rig.ts";

describe("create", () => {
  test("selects the first, tells the others who it is, and is finished by the first", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    const first = await rig.create("a", a, weights("w"));
    expect(first).toMatchObject({ selected: true, state: "initializing", epoch: 1, by: "a" });
    expect(await rig.create("a", a, weights("w"), 1)).toEqual(first);
    expect(await rig.create("b", b, weights("w"), 1)).toMatchObject({ selected: false, by: "a" });
    rig.owners.initialize(first.info);
    await rig.finish("a", a, 1, { parameter: "w" });
    for (const [trainer, session] of [
      ["a", a],
      ["b", b],
    ] as const) {
      expect(await rig.create(trainer, session, weights("w"))).toMatchObject({
        selected: false,
        state: "ready",
        epoch: 1,
        by: "a",
        info: { ready: true },
      });
    }
  });

  test("tells a later creator the declaration that counts, not its own", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.create("a", a, weights("w"));
    const { info } = await rig.create("b", b, weights("w", { shape: [2, 2] }));
    expect(info.shape).toEqual([8]);
  });

  test("repeated by the same session with another declaration is refused", async () => {
    const rig = new Rig();
    const a = await rig.join("a");
    await rig.create("a", a, weights("w"));
    const other = rig.create("a", a, weights("w", { dtype: "float64" }));
    await refused("BAD_CONFIG", other, '"w"', "float32", "float64");
  });

  test("of a name that the job has made ready selects nobody", async () => {
    const rig = new Rig();
    await rig.makeReady("a", ["w"]);
    const b = await rig.join("b");
    const reply = await rig.create("b", b, weights("w"));
    expect(reply).toMatchObject({ selected: false, state: "ready", by: "a", epoch: 1 });
    expect(reply.info.ready).toBe(true);
  });

  test("of another name works beside a ready job, and that parameter counts", async () => {
    const rig = new Rig();
    await rig.makeReady("a", ["w"]);
    const b = await rig.join("b");
    const { info } = await rig.create("b", b, weights("own"));
    rig.owners.initialize(info);
    await rig.finish("b", b, 1, { parameter: "own" });
    const { parameters } = await rig.status({ limit: 10 });
    expect(parameters.map((each) => [each?.name, each?.ready])).toEqual([
      ["own", true],
      ["w", true],
    ]);
  });
});

describe("taking over a creation", () => {
  test("by a new session of the creator happens at once, with its own declaration", async () => {
    const rig = new Rig();
    await rig.create("a", await rig.join("a"), weights("w"));
    const fresh = await rig.join("a");
    const reply = await rig.create("a", fresh, weights("w", { shape: [3] }), 1);
    expect(reply).toMatchObject({ selected: true, epoch: 2, info: { epoch: 2, shape: [3] } });
  });

  test("by another happens once the lease was lost, and fences the first", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    const { info } = await rig.create("a", a, weights("w"));
    await rig.watch();
    expect((await rig.create("b", b, weights("w"))).selected).toBe(false);
    await rig.clock.advance(2 * LEASE_MS);
    expect(await rig.create("b", b, weights("w"))).toMatchObject({ selected: true, epoch: 2 });
    rig.owners.initialize(info);
    const late = rig.finish("a", a, 1, { parameter: "w" });
    await refused("STALE_EPOCH", late, '"w"', "epoch 1", "epoch is 2");
  });

  test("after an abort is open to anybody", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.create("a", a, weights("w"));
    await rig.ask("a", "abort", { session: a, epoch: 1, parameter: "w" });
    expect((await rig.status({ names: ["w"] })).parameters).toEqual([null]);
    expect(await rig.create("b", b, weights("w"))).toMatchObject({ selected: true, epoch: 2 });
    const again = rig.ask("a", "abort", { session: a, epoch: 1, parameter: "w" });
    await refused("STALE_EPOCH", again, '"w"');
  });
});

describe("create of a name that the job's initialization has declared", () => {
  test("waits for the job while its initializer may be alive", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    await rig.declare("a", a, 1, [weights("w")]);
    const waiting = { selected: false, state: "initializing", by: "a" };
    expect(await rig.create("b", b, weights("w"))).toMatchObject(waiting);
  });

  test("by the initializer itself is refused: it would wait for itself", async () => {
    const rig = new Rig();
    const a = await rig.join("a");
    await rig.begin("a", a);
    await rig.declare("a", a, 1, [weights("w")]);
    await refused("NOT_SELECTED", rig.create("a", a, weights("w")), '"w"', '"a"');
  });

  test("ends that initialization once its initializer is gone", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    await rig.declare("a", a, 1, [weights("w"), weights("x")]);
    await rig.ask("a", "leave", { session: a });
    expect(await rig.create("b", b, weights("w"))).toMatchObject({ selected: true, epoch: 2 });
    expect((await rig.status()).state).toBe("uninitialized");
    expect((await rig.status({ names: ["x"] })).parameters).toEqual([null]);
  });

  test("is free after an abort of the job", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    await rig.declare("a", a, 1, [weights("w")]);
    await rig.ask("a", "abort", { session: a, epoch: 1 });
    expect(await rig.create("b", b, weights("w"))).toMatchObject({ selected: true, epoch: 2 });
  });

  test("cannot be finished or aborted by itself", async () => {
    const rig = new Rig();
    const a = await rig.join("a");
    await rig.begin("a", a);
    await rig.declare("a", a, 1, [weights("w")]);
    await refused("NOT_SELECTED", rig.finish("a", a, 1, { parameter: "w" }), '"w"', "job");
    const abort = rig.ask("a", "abort", { session: a, epoch: 1, parameter: "w" });
    await refused("NOT_SELECTED", abort, '"w"', "job");
  });
});

describe("finish of one parameter", () => {
  test("lists its missing blocks and can be repeated until they are there", async () => {
    const rig = new Rig();
    const a = await rig.join("a");
    const { info } = await rig.create("a", a, weights("w", { shape: [6, 1024, 1024] }));
    rig.owners.initialize(info, [0, 1, 2, 4, 5]);
    const early = rig.finish("a", a, 1, { parameter: "w" });
    await refused("INCOMPLETE", early, '"w" block 3', '"w" block 6');
    rig.owners.initialize(info);
    expect(await rig.finish("a", a, 1, { parameter: "w" })).toMatchObject({ state: "ready" });
  });

  test("answers a repeat as the first time and refuses everybody else", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    const { info } = await rig.create("a", a, weights("w"));
    rig.owners.initialize(info);
    let lost = 0;
    rig.bucket.losesAnswer = (call) =>
      call.key === "param.w" && call.action === "update" && lost++ < 1;
    const first = await rig.finish("a", a, 1, { parameter: "w" });
    expect(lost).toBe(1);
    expect(await rig.finish("a", a, 1, { parameter: "w" })).toEqual(first);
    const other = rig.finish("b", b, 1, { parameter: "w" });
    await refused("ALREADY_INITIALIZED", other, '"w"', '"a"');
  });

  test("says where the journals of its blocks stood, and so do create and status", async () => {
    const rig = new Rig();
    const a = await rig.join("a");
    const { info } = await rig.create("a", a, weights("w"));
    rig.owners.initialize(info);
    const shard = info.layout.firstShard;
    const { at } = await rig.finish("a", a, 1, {
      parameter: "w",
      at: [{ shard, generation: 1, seq: 1 }],
    });
    // After the declaration and the init.
    expect(at).toEqual([{ shard, generation: 1, seq: 2 }]);
    expect(rig.owners.awaited).toEqual([{ shard, at: { generation: 1, seq: 1 } }]);
    const reply = await rig.ask("a", "create", { session: a, parameter: weights("w") });
    expect(reply["at"]).toEqual(at);
    const status = await rig.status({ names: ["w"] });
    expect(status.at[shard]).toEqual({ generation: 1, seq: 2 });
    expect((await rig.status()).at).toEqual([]);
  });

  test("of an unknown name, by one not selected, without storage or with a wrong shard is refused", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    const { info } = await rig.create("a", a, weights("w"));
    await refused("UNKNOWN_PARAMETER", rig.finish("a", a, 1, { parameter: "no" }), '"no"');
    await refused("NOT_SELECTED", rig.finish("b", b, 1, { parameter: "w" }), '"w"', '"a"', '"b"');
    const at = [{ shard: 4, generation: 1, seq: 1 }];
    await refused("BAD_VALUE", rig.finish("a", a, 1, { parameter: "w", at }), "0 to 3", "4");
    rig.owners.initialize(info);
    rig.owners.storageBytes = 31;
    await refused("NO_SPACE", rig.finish("a", a, 1, { parameter: "w" }), "31", "32");
  });

  test("drops the blocks that a larger cut under an earlier epoch may have left", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    const blocks = (count: number): Fields => weights("w", { shape: [count, 512, 512] });
    const first = await rig.create("a", a, blocks(10));
    expect(first.info.layout.blocks).toBe(10);
    rig.owners.initialize(first.info);
    await rig.ask("a", "leave", { session: a });
    const { info } = await rig.create("b", b, blocks(7));
    rig.owners.initialize(info);
    await rig.finish("b", b, 2, { parameter: "w" });
    const record = { verb: "drop", parameter: "w", epoch: 1 };
    const shards = [7, 8, 9].map((index) => (info.layout.firstShard + index) % 4);
    expect(rig.owners.of("drop")).toEqual(shards.map((shard) => ({ shard, record })));
  });
});
