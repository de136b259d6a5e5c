// Proves what declare writes and whom it refuses: layouts and epochs come from the records, a
// refusal changes nothing, and an attempt that was replaced cannot declare any more.
import { describe, expect, test } from "vitest";
import type { Fields } from "../../../src/protocol/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { Rig, refused, weights } from "./rig.ts";

async function selected(rig: Rig, trainer = "a"): Promise<number> {
  const session = await rig.join(trainer);
  await rig.begin(trainer, session);
  return session;
}

async function recordOf(rig: Rig, name: string): Promise<Fields | undefined> {
  return (await rig.bucket.read(`param.${name}`))?.value as Fields | undefined;
}

describe("declare", () => {
  test("answers layouts and epochs in request order, repeats included", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    const large = weights("large", { shape: [3, 1024, 1024] });
    const infos = await rig.declare("a", session, 1, [large, weights("w"), large]);
    expect(infos.map(({ name, epoch, ready }) => ({ name, epoch, ready }))).toEqual([
      { name: "large", epoch: 1, ready: false },
      { name: "w", epoch: 1, ready: false },
      { name: "large", epoch: 1, ready: false },
    ]);
    expect(infos.map(({ layout }) => layout.blocks)).toEqual([12, 1, 12]);
  });

  test("keeps any name a parameter may have", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    const names = ["emb:sparse-0", "a.b", "größe", "*>"];
    await rig.declare(
      "a",
      session,
      1,
      names.map((name) => weights(name)),
    );
    const { parameters } = await rig.status({ names });
    expect(parameters.map((info) => info?.name)).toEqual(names);
  });

  test("repeated, also with lost answers, writes once", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    let lost = 0;
    rig.bucket.losesAnswer = (call) =>
      call.key === "param.w" && call.action === "create" && lost++ < 1;
    const first = await rig.declare("a", session, 1, [weights("w")]);
    expect(lost).toBe(1);
    expect(await rig.declare("a", session, 1, [weights("w")], 1)).toEqual(first);
    const writes = rig.bucket.calls.filter(
      ({ key, action }) => key === "param.w" && action !== "read",
    );
    expect(writes).toHaveLength(1);
  });

  test("costs one write for each new parameter", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    await rig.declare("a", session, 1, [weights("v"), weights("w")]);
    const calls = rig.bucket.calls.filter(
      ({ key }) => key.startsWith("param.") && key !== "param.",
    );
    const actions = calls.map(({ action }) => action).toSorted();
    expect(actions).toEqual(["create", "create"]);
  });

  test.each([{ dtype: "float64" }, { shape: [4, 2] }, { config: { learningRate: 0.1 } }])(
    "a contradiction in %j is refused and nothing of the request is written",
    async (changes) => {
      const rig = new Rig();
      const session = await selected(rig);
      await rig.declare("a", session, 1, [weights("w")]);
      const before = await recordOf(rig, "w");
      const request = [weights("new"), weights("w", changes)];
      await refused(
        "BAD_CONFIG",
        rig.declare("a", session, 1, request),
        '"w"',
        "expected",
        "received",
      );
      expect(await recordOf(rig, "w")).toEqual(before);
      expect(await recordOf(rig, "new")).toBeUndefined();
    },
  );

  test("a contradiction within one request is refused", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    const request = [weights("w"), weights("w", { dtype: "float64" })];
    await refused("BAD_CONFIG", rig.declare("a", session, 1, request), '"w"');
    expect(await recordOf(rig, "w")).toBeUndefined();
  });

  test("an empty request, a wrong shape or a wrong type is refused", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    await refused("EMPTY", rig.declare("a", session, 1, []));
    await refused("BAD_SHAPE", rig.declare("a", session, 1, [weights("w", { shape: [0] })]));
    await refused("BAD_DTYPE", rig.declare("a", session, 1, [weights("w", { dtype: "float8" })]));
  });

  test.each([[[2 ** 34]], [[2 ** 50]]])("shape %j is too large for four shards", async (shape) => {
    const rig = new Rig();
    const session = await selected(rig);
    await refused("TOO_LARGE", rig.declare("a", session, 1, [weights("w", { shape })]), '"w"');
  });

  test("what the optimizer keeps beside the values counts", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    const shape = [2 ** 31];
    const adam = weights("w", { shape, config: { optimizer: "adam" } });
    await refused("TOO_LARGE", rig.declare("a", session, 1, [adam]), String(3 * 4 * 2 ** 31));
    await rig.declare("a", session, 1, [weights("w", { shape })]);
  });

  test("a sparse parameter whose rows are longer than a block is refused", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    const sparse = (shape: readonly number[]): Fields =>
      weights("w", { shape, config: { sparse: true } });
    await refused("TOO_LARGE", rig.declare("a", session, 1, [sparse([5, 300_000])]), "1200004");
    const [info] = await rig.declare("a", session, 1, [sparse([6, 200_000])]);
    expect(info?.layout).toMatchObject({ blocks: 6, blockElements: 200_000 });
  });

  test("by one that is not selected is refused, naming both", async () => {
    const rig = new Rig();
    const b = await rig.join("b");
    await refused("NOT_SELECTED", rig.declare("b", b, 1, [weights("w")]), "nobody", '"b"');
    await selected(rig);
    await refused("NOT_SELECTED", rig.declare("b", b, 1, [weights("w")]), '"a"', '"b"');
  });

  test("of an attempt that was replaced is refused", async () => {
    const rig = new Rig();
    const a = await selected(rig);
    const b = await rig.join("b");
    await rig.ask("a", "abort", { session: a, epoch: 1 });
    await rig.begin("b", b);
    await refused("STALE_EPOCH", rig.declare("a", a, 1, [weights("w")]), "epoch 1", "epoch is 2");
  });

  test("after finish is refused", async () => {
    const rig = new Rig();
    const session = await rig.makeReady("a", ["w"]);
    const late = rig.declare("a", session, 1, [weights("new")]);
    await refused("ALREADY_INITIALIZED", late, '"a"');
    expect(await recordOf(rig, "new")).toBeUndefined();
  });
});

describe("declaring what an earlier attempt declared", () => {
  test("is a new initialization with the next epoch, of another shape if need be", async () => {
    const rig = new Rig();
    const a = await selected(rig);
    await rig.declare("a", a, 1, [weights("w")]);
    await rig.ask("a", "abort", { session: a, epoch: 1 });
    await rig.begin("a", a);
    const [info] = await rig.declare("a", a, 2, [weights("w", { shape: [5, 5] })]);
    expect(info).toMatchObject({ epoch: 2, shape: [5, 5] });
  });

  test("is refused to an attempt that was replaced while its declare was on its way", async () => {
    const bucket = new MemoryBucket();
    const rig = new Rig({ bucket });
    const a = await selected(rig);
    const b = await rig.join("b");
    // The first host has read the job for a's declare; before it writes, b replaces a.
    let replaced = false;
    const original = bucket.create.bind(bucket);
    bucket.create = async (key, value) => {
      if (key === "param.w" && !replaced) {
        replaced = true;
        await rig.ask("a", "leave", { session: a });
        await rig.begin("b", b, 1);
        await rig.declare("b", b, 2, [weights("w", { shape: [3] })], 1);
      }
      return await original(key, value);
    };
    await refused("STALE_EPOCH", rig.declare("a", a, 1, [weights("w")]), '"w"', "epoch 2");
    expect(await recordOf(rig, "w")).toMatchObject({ shape: [3], jobEpoch: 2 });
  });
});

describe("declaring what somebody creates by itself", () => {
  test("is refused while that one may be alive", async () => {
    const rig = new Rig();
    const b = await rig.join("b");
    await rig.create("b", b, weights("w"));
    const a = await selected(rig);
    await refused("NOT_SELECTED", rig.declare("a", a, 1, [weights("w")]), '"w"', '"b"', '"a"');
  });

  test("is allowed to a newer session of that one", async () => {
    const rig = new Rig();
    await rig.create("a", await rig.join("a"), weights("w"));
    const a = await selected(rig);
    expect((await rig.declare("a", a, 1, [weights("w")]))[0]?.epoch).toBe(2);
  });

  test("is allowed once it has left, under the next epoch", async () => {
    const rig = new Rig();
    const b = await rig.join("b");
    await rig.create("b", b, weights("w"));
    await rig.ask("b", "leave", { session: b });
    const a = await selected(rig);
    expect((await rig.declare("a", a, 1, [weights("w")]))[0]?.epoch).toBe(2);
  });

  test("is refused once it is ready", async () => {
    const rig = new Rig();
    const b = await rig.join("b");
    const { info } = await rig.create("b", b, weights("w"));
    rig.owners.initialize(info);
    await rig.finish("b", b, 1, { parameter: "w" });
    const a = await selected(rig);
    await refused("ALREADY_INITIALIZED", rig.declare("a", a, 1, [weights("w")]), '"w"', '"b"');
  });
});

test("1,000 parameters are declared with the writes of one request under way at most", async () => {
  let under = 0;
  let most = 0;
  const between = async (): Promise<void> => {
    under += 1;
    most = Math.max(most, under);
    await new Promise(setImmediate);
    under -= 1;
  };
  const rig = new Rig({ bucket: new MemoryBucket({ between }) });
  const session = await selected(rig);
  for (let from = 0; from < 1000; from += 250) {
    const names = Array.from({ length: 250 }, (_, i) => `p_${from + i}`);
    await rig.declare(
      "a",
      session,
      1,
      names.map((name) => weights(name)),
    );
  }
  expect(most).toBeGreaterThan(8);
  expect(most).toBeLessThanOrEqual(256);
  expect(await rig.bucket.keys("param.")).toHaveLength(1000);
});
