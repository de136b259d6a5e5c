// Proves which sessions hosts write into the journals as ended: those that were left, superseded or whose
// lease is lost, and no others; that the records of the ended are forgotten; and that a trainer that joins
// during a sweep gets a session that the sweep does not end. And which trainers hosts tell a shard to forget:
// those that it remembers with sessions that nobody gave them, and no others, whoever joins meanwhile.
import { expect, test } from "vitest";
import {
  LIVE_SESSIONS_MAX,
  type SessionsRecord,
  TRAINERS_PER_MESSAGE_MAX,
  type TrainerSession,
} from "../../../src/protocol/index.ts";
import { LEASE_MS, Rig, refused } from "./rig.ts";

async function sweep(rig: Rig): Promise<SessionsRecord | undefined> {
  await rig.hosts[0]?.endSessions([2]);
  const last = rig.owners.of("sessions").at(-1);
  expect(last?.shard ?? 2).toBe(2);
  return last?.record as SessionsRecord | undefined;
}

test("no journal is told anything where nobody has joined", async () => {
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

test("the records of ended sessions are removed; a trainer that comes again is new", async () => {
  const rig = new Rig();
  const a = await rig.join("a", "token");
  await rig.ask("a", "leave", { session: a });
  await sweep(rig);
  expect(await rig.bucket.keys("trainer.")).toEqual([]);
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

test("a trainer that joins during a sweep gets a session that the sweep does not end", async () => {
  const rig = new Rig();
  await rig.join("a");
  const create = rig.bucket.create.bind(rig.bucket);
  let swept: SessionsRecord | undefined;
  // The number is given, but the trainer's record is not written yet.
  rig.bucket.create = async (key, value) => {
    if (key === "trainer.late" && swept === undefined) {
      const record = sweep(rig);
      swept = (await record) as SessionsRecord;
    }
    return await create(key, value);
  };
  const session = await rig.join("late");
  expect(swept).toEqual({ verb: "sessions", upTo: 2, live: [1] });
  expect(session).toBeGreaterThan(2);
  await rig.ask("late", "renew", { session });
});

test("more live sessions than a call takes arguments are swept", async () => {
  const rig = new Rig();
  const count = 150_000;
  await rig.bucket.create("session", { format: 1, session: count });
  for (let session = 1; session <= count; session++) {
    const trainer = { format: 1, session, token: "t", ended: false };
    await rig.bucket.create(`trainer.t${session}`, trainer);
  }
  const record = await sweep(rig);
  expect(record?.live).toHaveLength(LIVE_SESSIONS_MAX);
  expect(record?.upTo).toBe(LIVE_SESSIONS_MAX);
});

const MOST = Number.MAX_SAFE_INTEGER;

/** Whom hosts have the shard forget, once it has told them that it remembers these. */
async function forgotten(
  rig: Rig,
  ...remembered: readonly TrainerSession[]
): Promise<readonly TrainerSession[]> {
  rig.owners.remembered.set(2, remembered);
  await rig.hosts[0]?.endSessions([2]);
  const records = rig.owners.of("forget");
  expect(records.every(({ shard }) => shard === 2)).toBe(true);
  return records.flatMap(({ record }) => (record.verb === "forget" ? record.trainers : []));
}

test("trainers with sessions that nobody gave them are forgotten, others are not", async () => {
  const rig = new Rig();
  const [a, b] = [await rig.join("a"), await rig.join("b")];
  const left = await rig.join("left");
  await rig.ask("left", "leave", { session: left });
  const found = await forgotten(
    rig,
    ["a", a],
    ["b", b],
    // Ended by its number, as the record says that goes before.
    ["left", left],
    ["a2", a],
    ["left2", left],
    ["b2", MOST],
    ["c", 4],
  );
  expect(found).toEqual([
    ["a2", a],
    ["b2", MOST],
    ["c", 4],
  ]);
  expect(rig.owners.of("sessions", "forget").map(({ record }) => record.verb)).toEqual([
    "sessions",
    "forget",
  ]);
});

test("a trainer that is remembered with another session than its own has none", async () => {
  const rig = new Rig();
  const [a, b] = [await rig.join("a"), await rig.join("b")];
  expect(await forgotten(rig, ["a", b], ["b", MOST])).toEqual([
    ["a", b],
    ["b", MOST],
  ]);
  expect(rig.owners.of("sessions").at(-1)?.record).toMatchObject({ live: [a, b] });
});

test("in a job that nobody has joined all remembered trainers are forgotten", async () => {
  const rig = new Rig();
  expect(await forgotten(rig, ["a", 1], ["b", MOST])).toEqual([
    ["a", 1],
    ["b", MOST],
  ]);
});

test("more trainers than a record can name are forgotten by several", async () => {
  const rig = new Rig();
  await rig.join("a");
  const count = 2 * TRAINERS_PER_MESSAGE_MAX + 1;
  const invented = Array.from({ length: count }, (_, i): TrainerSession => [`t${i}`, MOST - i]);
  expect(await forgotten(rig, ...invented)).toEqual(invented);
  expect(rig.owners.of("forget")).toHaveLength(3);
});

test("a number that is given while the sweep looks is its trainer's", async () => {
  const rig = new Rig();
  await rig.join("a");
  const keys = rig.bucket.keys.bind(rig.bucket);
  let hasJoined = false;
  // The counter is read by now, the records of trainers are not.
  rig.bucket.keys = async (prefix) => {
    if (!hasJoined) expect(await rig.join("b")).toBe(2);
    hasJoined = true;
    return await keys(prefix);
  };
  expect(await forgotten(rig, ["b", 2], ["c", 3])).toEqual([["c", 3]]);
  expect(hasJoined).toBe(true);
});

test("a trainer that a shard remembers has its session before the sweep reads the counter", async () => {
  const rig = new Rig();
  await rig.join("a");
  const trainers = rig.owners.trainers.bind(rig.owners);
  rig.owners.trainers = async (shard) => {
    const session = await rig.join("late");
    rig.owners.remembered.set(shard, [["late", session]]);
    return await trainers(shard);
  };
  expect(await forgotten(rig)).toEqual([]);
  expect(rig.owners.of("sessions").at(-1)?.record).toMatchObject({ upTo: 2, live: [1, 2] });
});

test("an outdated reading of the counter, as from a former leader, makes no session count as invented", async () => {
  const rig = new Rig();
  await rig.join("a");
  const older = await rig.bucket.read("session");
  const left = await rig.join("left");
  await rig.ask("left", "leave", { session: left });
  const read = rig.bucket.read.bind(rig.bucket);
  let readings = 0;
  // The second reading is the sweep's.
  rig.bucket.read = async (key) =>
    key === "session" && ++readings === 2 ? older : await read(key);
  expect(await forgotten(rig, ["left", left], ["c", MOST])).toEqual([["c", MOST]]);
  expect(readings).toBeGreaterThan(2);
});
