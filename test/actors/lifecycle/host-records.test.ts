// Proves that journals are told of a declaration before its trainer: in one record for each shard that
// has a block of it, within the largest message; again with every repeat; and not at all under version 1.
import { describe, expect, test } from "vitest";
import { encodeHostRecord, PserverError } from "../../../src/protocol/index.ts";
import { Rig, refused, SHARDS, weights } from "./rig.ts";

async function selected(rig: Rig): Promise<number> {
  const session = await rig.join("a");
  await rig.begin("a", session);
  return session;
}

describe("a declare", () => {
  test("is told each shard that has blocks of it, all parameters in one record", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    const names = Array.from({ length: 60 }, (_, i) => `p${i}`);
    const infos = await rig.declare("a", session, 1, [
      ...names.map((name) => weights(name)),
      weights("large", { shape: [40, 1024, 1024] }),
    ]);
    const told = rig.owners.of("declare");
    expect(told.map(({ shard }) => shard).sort()).toEqual([0, 1, 2, 3]);
    for (const { shard, record } of told) {
      const here = infos.filter(({ layout }) => layout.blocks > 1 || layout.firstShard === shard);
      expect(record).toEqual({
        verb: "declare",
        trainer: "a",
        parameters: here.map(({ ready: _ready, ...info }) => info),
      });
    }
  });

  test("of much is cut into messages that the broker takes", async () => {
    const rig = new Rig({ maxPayloadBytes: 80 * 1024 });
    const session = await selected(rig);
    const table = Array.from({ length: 16 }, (_, i): [number, number] => [i, 1 / (i + 1)]);
    const config = { learningRate: { schedule: "step", table } };
    const many = Array.from({ length: 256 }, (_, i) =>
      weights(`${"x".repeat(150)}${i}`, { config }),
    );
    const infos = await rig.declare("a", session, 1, many);
    const told = rig.owners.of("declare");
    expect(told.length).toBeGreaterThan(SHARDS);
    for (const { record } of told) expect(encodeHostRecord(record).length).toBeLessThan(80 * 1024);
    const names = told.flatMap(({ record }) =>
      record.verb === "declare" ? record.parameters.map(({ name }) => name) : [],
    );
    expect(names.sort()).toEqual(infos.map(({ name }) => name).sort());
  });

  test("during which a host died is completed by the repeat, through another host", async () => {
    const rig = new Rig();
    const session = await selected(rig);
    const append = rig.owners.append.bind(rig.owners);
    rig.owners.append = () => Promise.reject(new PserverError("TIMEOUT", "the host has died"));
    await refused("TIMEOUT", rig.declare("a", session, 1, [weights("w")]));
    rig.owners.append = append;
    expect(rig.owners.of("declare")).toEqual([]);
    await rig.declare("a", session, 1, [weights("w")], 1);
    expect(rig.owners.of("declare")).toHaveLength(1);
  });
});

describe("a create", () => {
  test("is told only if the trainer is selected, with every repeat", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.create("a", a, weights("w"));
    await rig.create("b", b, weights("w"));
    expect(rig.owners.of("declare")).toHaveLength(1);
    await rig.create("a", a, weights("w"));
    expect(rig.owners.of("declare")).toHaveLength(2);
    await rig.ask("a", "leave", { session: a });
    await rig.create("b", b, weights("w"));
    expect(rig.owners.of("declare").at(-1)?.record).toMatchObject({
      trainer: "b",
      parameters: [{ name: "w", epoch: 2 }],
    });
  });
});
