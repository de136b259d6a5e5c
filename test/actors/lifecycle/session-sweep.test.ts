// Proves which sessions hosts tell the journals to have ended: those that were left, superseded or whose
// lease is lost, and no others; that the records of the ended are forgotten; and that who joins while a
// sweep is under way gets a session that the sweep does not end.
import { expect, test } from "vitest";
import type { SessionsRecord } from "../../../src/protocol/index.ts";
import { LEASE_MS, Rig, refused } from "./rig.ts";

async function sweep(rig: Rig): Promise<SessionsRecord | undefined> {
  await rig.hosts[0]?.endSessions([2]);
  const last = rig.owners.of("sessions").at(-1);
  expect(last?.shard ?? 2).toBe(2);
  return last?.record as SessionsRecord | undefined;
}

test("nothing is told where nobody has joined", async () => {
  expect(await sweep(new Rig())).toBeUndefined();
});

test("sessions that were left or superseded have ended, others are live", async () => {
  const rig = new Rig();
  const sessions = [await rig.join("a"), await rig.join("b"), await rig.join("c")];
  const again = await rig.join("c");
  await rig.ask("b", "leave", { session: sessions[1] });
  expect(await sweep(rig)).toEqual({ verb: "sessions", upTo: 4, live: [sessions[0], again] });
  await rig.ask("a", "renew", { session: sessions[0] });
  await refused("REJOIN", rig.ask("b", "renew", { session: sessions[1] }));
  await refused("SUPERSEDED", rig.ask("c", "renew", { session: sessions[2] }));
});

test("the records of ended sessions are forgotten, whoever comes again is new", async () => {
  const rig = new Rig();
  const a = await rig.join("a", "token");
  await rig.ask("a", "leave", { session: a });
  await sweep(rig);
  expect(await rig.records.keys("trainer.")).toEqual([]);
  await refused("REJOIN", rig.ask("a", "begin", { session: a }));
  expect(await rig.join("a", "token")).toBeGreaterThan(a);
});

test("a session whose lease is lost ends by the sweep, one whose lease is there does not", async () => {
  const rig = new Rig();
  await rig.watch();
  const [a, b] = [await rig.join("a"), await rig.join("b")];
  for (let i = 0; i < 9; i++) {
    await rig.clock.advance(LEASE_MS / 3);
    await rig.ask("b", "renew", { session: b });
  }
  expect(await sweep(rig)).toEqual({ verb: "sessions", upTo: 2, live: [b] });
  await refused("REJOIN", rig.ask("a", "renew", { session: a }));
  await Promise.all(rig.hosts.map((host) => host.close()));
});

test("who joins while a sweep looks gets a session that it does not end", async () => {
  const rig = new Rig();
  await rig.join("a");
  const create = rig.records.create.bind(rig.records);
  let swept: SessionsRecord | undefined;
  // The number is given, but the trainer's record is not written yet.
  rig.records.create = async (key, value) => {
    if (key === "trainer.late" && swept === undefined) {
      const record = sweep(rig);
      swept = (await record) as SessionsRecord;
    }
    return await create(key, value);
  };
  const session = await rig.join("late");
  expect(swept).toEqual({ verb: "sessions", upTo: 2, live: [1] });
  expect(session).toBe(3);
  await rig.ask("late", "renew", { session });
});
