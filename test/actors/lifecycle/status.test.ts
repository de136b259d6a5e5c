// Proves what status says: pages in order of names that lose nothing and end, names in request
// order with null for what does not count, and the job's state.
import fc from "fast-check";
import { expect, test } from "vitest";
import { jobEntry } from "../../../src/actors/lifecycle/machine.ts";
import { parameterEntry } from "../../../src/actors/lifecycle/parameter.ts";
import type { ParameterInfo } from "../../../src/protocol/index.ts";
import { Rig, refused, weights } from "./rig.ts";

async function allPages(rig: Rig, limit: number): Promise<string[]> {
  const names: string[] = [];
  for (let pages = 0; pages < 100; pages++) {
    const after = names.at(-1);
    const reply = await rig.status({ limit, ...(after === undefined ? {} : { after }) });
    const infos = reply.parameters.filter((info): info is ParameterInfo => info !== null);
    expect(infos.length).toBeLessThanOrEqual(limit);
    names.push(...infos.map(({ name }) => name));
    if (!reply.more) return names;
    expect(infos.length).toBeGreaterThan(0);
  }
  throw new Error("the pages do not end");
}

test("a job in which nothing has happened", async () => {
  const rig = new Rig();
  expect(await rig.status()).toEqual({
    state: "uninitialized",
    epoch: 0,
    by: "",
    shards: 4,
    parameters: [],
    more: false,
    at: [],
  });
  expect(await rig.status({ limit: 5 })).toMatchObject({ parameters: [], more: false });
});

test("names come in request order, null for what is not known, and may repeat", async () => {
  const rig = new Rig();
  await rig.makeReady("a", ["v", "w"]);
  const { parameters } = await rig.status({ names: ["w", "no", "v", "w"] });
  expect(parameters.map((info) => info?.name)).toEqual(["w", undefined, "v", "w"]);
  expect(parameters[0]).toMatchObject({ dtype: "float32", shape: [8], epoch: 1, ready: true });
});

test("declared parameters are listed as not ready while the job is initialized", async () => {
  const rig = new Rig();
  const session = await rig.join("a");
  await rig.begin("a", session);
  await rig.declare("a", session, 1, [weights("w")]);
  const { state, by, parameters } = await rig.status({ limit: 5 });
  expect({ state, by }).toEqual({ state: "initializing", by: "a" });
  expect(parameters).toMatchObject([{ name: "w", ready: false }]);
});

test("a page is cut where the broker takes no reply of all of it", async () => {
  const rig = new Rig({ maxPayloadBytes: 80 * 1024 });
  const names = Array.from({ length: 20 }, (_, i) => `w${String(i).padStart(2, "0")}`);
  await rig.makeReady("a", names);
  const { parameters, more } = await rig.status({ limit: 20 });
  expect(parameters.map((info) => info?.name)).toEqual(names.slice(0, 8));
  expect(more).toBe(true);
  expect(await allPages(rig, 20)).toEqual(names);
});

test("pages of any size hold every parameter once, in order of names", async () => {
  const names = fc.uniqueArray(fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 }), {
    minLength: 1,
    maxLength: 20,
  });
  await fc.assert(
    fc.asyncProperty(names, fc.integer({ min: 1, max: 21 }), async (each, limit) => {
      const rig = new Rig({ hosts: 1 });
      await rig.makeReady("a", each);
      expect(await allPages(rig, limit)).toEqual(each.toSorted());
    }),
    { numRuns: 30 },
  );
});

test("pages skip parameters of failed attempts without ending early", async () => {
  const rig = new Rig();
  const session = await rig.join("a");
  await rig.begin("a", session);
  const dead = Array.from({ length: 9 }, (_, i) => weights(`dead_${i}`));
  await rig.declare("a", session, 1, [weights("a"), ...dead, weights("z")]);
  await rig.ask("a", "abort", { session, epoch: 1 });
  await rig.begin("a", session);
  await rig.declare("a", session, 2, [weights("a"), weights("z")]);
  expect(await allPages(rig, 2)).toEqual(["a", "z"]);
});

test("a name that cannot be one, or a page that is too long, is refused", async () => {
  const rig = new Rig();
  await refused("BAD_NAME", rig.status({ names: [""] }));
  await refused("BAD_MESSAGE", rig.status({ limit: 257 }), "limit");
});

test("a host asks for other hosts' records unless everything asked for is known to be ready", async () => {
  const rig = new Rig();
  await rig.makeReady("a", ["w"]);
  await rig.create("b", await rig.join("b"), weights("open"), 1);
  const lookUps = (): number =>
    rig.bucket.calls.filter(({ action }) => action === "changes").length;
  const before = lookUps();
  const { parameters } = await rig.status({ names: ["w", "open", "no"] });
  expect(parameters).toMatchObject([{ ready: true }, { ready: false }, null]);
  expect(lookUps()).toBe(before + 1);
  await rig.status({ names: ["w"] });
  expect(lookUps()).toBe(before + 1);
  await rig.status({ names: ["w", "open"] });
  expect(lookUps()).toBe(before + 2);
});

test("parameters that were known as ready are read again after a rewind", async () => {
  const rig = new Rig();
  await rig.makeReady("a", ["v", "w"]);
  const names = ["v", "w"];
  expect((await rig.status({ names })).parameters).toMatchObject([
    { ready: true },
    { ready: true },
  ]);
  const deps = { bucket: rig.bucket, pause: () => Promise.resolve() };
  const job = await jobEntry.read(deps);
  await parameterEntry("w").change(deps, (known) => {
    if (known === undefined) throw new Error("expected w");
    const context = { ...known.lifecycle.context };
    return { ...known, jobEpoch: 0, lifecycle: { state: "uninitialized", context } };
  });
  const context = { ...job.context, revised: job.context.revised + 1 };
  await jobEntry.change(deps, () => ({ ...job, context }));
  const { parameters } = await rig.status({ names: ["w"] });
  expect(parameters).toEqual([null]);
});
