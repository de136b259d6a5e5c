// Proves where small parameters lie: those that are declared one after the other together, a batch of them on
// each shard; and that the place of a parameter does not change when it is declared again.
import { expect, test } from "vitest";
import { SmallParameters } from "../../../src/actors/lifecycle/declare.ts";
import { type Fields, hashName, type ParameterInfo } from "../../../src/protocol/index.ts";
import { Rig, SHARDS, weights } from "./rig.ts";

const KIB_64 = { shape: [16_384] };

async function selected(rig: Rig): Promise<number> {
  const session = await rig.join("a");
  await rig.begin("a", session);
  return session;
}

function named(count: number, changes: Fields, from = 0): Fields[] {
  return Array.from({ length: count }, (_, i) => weights(`p_${from + i}`, changes));
}

function shardsOf(infos: readonly ParameterInfo[]): number[] {
  return infos.map(({ layout }) => layout.firstShard);
}

/** The shard that is so many after the one of a name's hash. */
function after(name: string, count = 0): number {
  return (hashName(name) + count) % SHARDS;
}

test("16 of 64 KiB share the shard of the first name, and the next 16 the next shard", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  const infos = await rig.declare("a", session, 1, named(40, KIB_64));
  const expected = Array.from({ length: 40 }, (_, i) => after("p_0", Math.floor(i / 16)));
  expect(shardsOf(infos)).toEqual(expected);
});

test("those of requests one after the other are placed as those of one request", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  const infos: ParameterInfo[] = [];
  for (const parameter of named(20, KIB_64)) {
    infos.push(...(await rig.declare("a", session, 1, [parameter])));
  }
  const expected = Array.from({ length: 20 }, (_, i) => after("p_0", Math.floor(i / 16)));
  expect(shardsOf(infos)).toEqual(expected);
});

test("10,000 of 64 KiB lie on all shards alike, as do 10,000 of a few bytes", async () => {
  for (const changes of [KIB_64, {}]) {
    const rig = new Rig();
    const session = await selected(rig);
    const counts = new Array<number>(SHARDS).fill(0);
    for (let from = 0; from < 10_000; from += 250) {
      const infos = await rig.declare("a", session, 1, named(250, changes, from));
      for (const shard of shardsOf(infos)) counts[shard] = (counts[shard] ?? 0) + 1;
    }
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1_024);
  }
});

test("large ones lie where their names' hashes say, also between small ones", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  const large = { shape: [65_536] };
  const infos = await rig.declare("a", session, 1, [
    weights("small", KIB_64),
    weights("big", large),
    weights("small too", KIB_64),
    weights("bigger", { shape: [2_000_000] }),
  ]);
  const [first, ...others] = shardsOf(infos);
  expect(first).toBe(after("small"));
  expect(others).toEqual([after("big"), first, after("bigger")]);
});

test("another initialization begins at the hash of its own first name", () => {
  const small = new SmallParameters(16);
  const place = (name: string, session: number, epoch: number): number => {
    const hashed = { elements: 1, blockElements: 1, blocks: 1, firstShard: 0, shards: 16 };
    const layout = { ...hashed, firstShard: hashName(name) % 16 };
    const declaration = weights(name) as unknown as ParameterInfo;
    return small.place(layout, declaration, { session, epoch }).firstShard;
  };
  expect(hashName("w") % 16).not.toBe(hashName("v") % 16);
  expect([place("w", 1, 1), place("v", 1, 1)]).toEqual([hashName("w") % 16, hashName("w") % 16]);
  expect(place("v", 1, 2)).toBe(hashName("v") % 16);
  expect(place("w", 2, 2)).toBe(hashName("w") % 16);
});

test("a parameter that is declared again keeps its shard, through any host and in any order", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  const parameters = named(40, KIB_64);
  const before = await rig.declare("a", session, 1, parameters);
  const repeated = await rig.declare("a", session, 1, parameters.toReversed(), 1);
  expect(repeated.map(({ layout }) => layout)).toEqual(
    before.map(({ layout }) => layout).reverse(),
  );
  await rig.ask("a", "abort", { session, epoch: 1 });
  await rig.begin("a", session);
  const again = await rig.declare("a", session, 2, parameters.toReversed(), 1);
  expect(shardsOf(again)).toEqual(shardsOf(before).reverse());
});

test("blocks of an earlier, larger layout are dropped where they are", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  const small = named(16, KIB_64);
  const [, , third] = await rig.declare("a", session, 1, small);
  await rig.ask("a", "abort", { session, epoch: 1 });
  await rig.begin("a", session);
  // Three blocks now, and again one after that.
  await rig.declare("a", session, 2, [weights("p_2", { shape: [700_000 * 3] })]);
  await rig.ask("a", "abort", { session, epoch: 2 });
  await rig.begin("a", session);
  const infos = await rig.declare("a", session, 3, [weights("p_2", KIB_64)]);
  for (const info of infos) rig.owners.initialize(info);
  await rig.finish("a", session, 3);
  const dropped = rig.owners
    .of("drop")
    .filter(({ record }) => record.verb === "drop" && record.parameter === "p_2")
    .map(({ shard }) => shard);
  const first = third?.layout.firstShard ?? 0;
  expect(dropped.toSorted()).toEqual([1, 2, 3, 4].map((i) => (first + i) % SHARDS).toSorted());
});
