// Proves who keeps step in a job: entering and leaving from any host and at the same time, in every way in
// which a trainer can leave, that each change is written into the journals and that a journal which cannot be
// written delays nobody, and that a job without steps refuses to have members.
import { beforeEach, describe, expect, test } from "vitest";
import { parseMembers } from "../../../src/actors/lifecycle/members.ts";
import { type MembersRecord, PserverError } from "../../../src/protocol/index.ts";
import { MemoryBucket } from "../../support/memory-bucket.ts";
import { LEASE_MS, Rig, refused, SHARDS } from "./rig.ts";

const SYNC = { mode: "sync", trainers: 2 } as const;

let rig: Rig;
beforeEach(() => {
  rig = new Rig({ synchronization: SYNC });
});

/** The members as the bucket holds them, without sessions. */
async function members(): Promise<{ revision: number; started: boolean; trainers: string[] }> {
  const { revision, started, members } = parseMembers(await rig.bucket.read("members"));
  return { revision, started, trainers: members.map(({ trainer }) => trainer) };
}

/** The last members that each shard's journal was told. */
function told(): (MembersRecord | undefined)[] {
  return Array.from({ length: SHARDS }, (_, shard) =>
    rig.owners.appended
      .filter((entry) => entry.shard === shard)
      .map(({ record }) => record)
      .findLast((record): record is MembersRecord => record.verb === "members"),
  );
}

async function enter(trainer: string, session: number, host = 0): Promise<number> {
  return Number((await rig.ask(trainer, "enter", { session }, host))["revision"]);
}

describe("entering", () => {
  test("makes a member, and starts the job when enough are there at one time", async () => {
    const [b, a] = [await rig.join("b"), await rig.join("a")];
    expect(await enter("b", b)).toBe(1);
    expect(await members()).toEqual({ revision: 1, started: false, trainers: ["b"] });
    expect(await enter("a", a, 1)).toBe(2);
    const all = { revision: 2, started: true, trainers: ["a", "b"] };
    expect(await members()).toEqual(all);
    expect(told()).toEqual(Array(SHARDS).fill({ verb: "members", ...all }));
  });

  test("again changes nothing, and tells the journals again", async () => {
    const a = await rig.join("a");
    await enter("a", a);
    const before = rig.owners.appended.length;
    expect(await enter("a", a, 1)).toBe(1);
    expect(rig.owners.appended).toHaveLength(before + SHARDS);
  });

  test("at the same time lets everybody in, and tells each journal the last state", async () => {
    const names = Array.from({ length: 20 }, (_, i) => `t-${i}`);
    const sessions = await Promise.all(names.map((name) => rig.join(name)));
    await Promise.all(names.map((name, i) => enter(name, sessions[i] ?? 0, i % 2)));
    expect(await members()).toEqual({ revision: 20, started: true, trainers: [...names].sort() });
    for (let shard = 0; shard < SHARDS; shard++) {
      const records = rig.owners.appended.filter((entry) => entry.shard === shard);
      const revisions = records.map(({ record }) => "revision" in record && record.revision);
      expect(revisions).toContain(20);
    }
  });

  test("needs a session that has not ended", async () => {
    const old = await rig.join("a");
    const now = await rig.join("a");
    await refused("SUPERSEDED", enter("a", old));
    await rig.ask("a", "leave", { session: now });
    await refused("REJOIN", enter("a", now));
    expect((await members()).trainers).toEqual([]);
  });

  test("by a session that a later one overtakes meanwhile leaves no member behind", async () => {
    class Overtaken extends MemoryBucket {
      override async create(key: string, value: unknown): Promise<number | undefined> {
        const revision = await super.create(key, value);
        if (key === "members") await rig.join("a");
        return revision;
      }
    }
    rig = new Rig({ synchronization: SYNC, bucket: new Overtaken() });
    const old = await rig.join("a");
    await refused("SUPERSEDED", enter("a", old));
    expect((await members()).trainers).toEqual([]);
  });

  test("is refused in a job whose trainers do not keep step, with what would help", async () => {
    rig = new Rig();
    const a = await rig.join("a");
    await refused("UNSUPPORTED", enter("a", a), "async", '"a"', "synchronization");
    await refused("UNSUPPORTED", rig.ask("a", "exit", { session: a }), "async");
    expect(await rig.bucket.read("members")).toBeUndefined();
    expect(rig.owners.appended).toEqual([]);
  });
});

describe("a member leaves", () => {
  let a: number;
  let b: number;
  beforeEach(async () => {
    await rig.watch();
    [a, b] = [await rig.join("a"), await rig.join("b")];
    await enter("a", a);
    await enter("b", b);
  });

  const gone = { revision: 3, started: true, trainers: ["b"] };

  test("by exit, which may be repeated; its session goes on", async () => {
    expect(await rig.ask("a", "exit", { session: a })).toMatchObject({});
    await rig.ask("a", "exit", { session: a }, 1);
    expect(await members()).toEqual(gone);
    expect(told()).toEqual(Array(SHARDS).fill({ verb: "members", ...gone }));
    expect(await enter("a", a)).toBe(4);
  });

  test("by exit, after which a request to enter that was sent before it comes too late", async () => {
    await rig.ask("a", "exit", { session: a, exits: 1 });
    await refused("NOT_MEMBER", rig.ask("a", "enter", { session: a, exits: 0 }, 1), '"a"');
    expect(await members()).toEqual(gone);
    // A copy of the exit changes nothing more, and the trainer may enter again.
    await rig.ask("a", "enter", { session: a, exits: 1 });
    expect((await members()).trainers).toEqual(["a", "b"]);
    // As may another session, which has not exited.
    const next = await rig.join("a");
    expect(await rig.ask("a", "enter", { session: next, exits: 0 })).toMatchObject({});
  });

  test("by exit while a request to enter that was sent before it is under way", async () => {
    class Exited extends MemoryBucket {
      #isExited = false;
      override async create(key: string, value: unknown): Promise<number | undefined> {
        if (key === "members" && !this.#isExited) {
          this.#isExited = true;
          await rig.ask("a", "exit", { session, exits: 1 }, 1);
        }
        return super.create(key, value);
      }
    }
    rig = new Rig({ synchronization: SYNC, bucket: new Exited() });
    const session = await rig.join("a");
    await refused("NOT_MEMBER", rig.ask("a", "enter", { session, exits: 0 }));
    expect((await members()).trainers).toEqual([]);
  });

  test("by leaving", async () => {
    await rig.ask("a", "leave", { session: a });
    expect(await members()).toEqual(gone);
  });

  test("by a new session of the same trainer, which enters for itself", async () => {
    const next = await rig.join("a");
    expect(await members()).toEqual(gone);
    expect(await enter("a", next)).toBe(4);
    await refused("SUPERSEDED", rig.ask("a", "exit", { session: a }));
    await rig.ask("a", "leave", { session: a });
    expect((await members()).trainers).toEqual(["a", "b"]);
  });

  test("by losing its lease, and not before", async () => {
    for (let passed = 0; passed < 3 * LEASE_MS; passed += LEASE_MS / 3) {
      await rig.ask("b", "renew", { session: b });
      await rig.clock.advance(LEASE_MS / 3);
      const { members } = (await rig.hosts[0]?.expelLost()) ?? { members: [] };
      if (passed < LEASE_MS) expect(members).toHaveLength(2);
    }
    expect(await members()).toEqual(gone);
    expect(told()).toEqual(Array(SHARDS).fill({ verb: "members", ...gone }));
    expect((await rig.hosts[1]?.expelLost())?.revision).toBe(3);
  });

  test("whose end was not completed is found although a later session holds the lease", async () => {
    // As by a host that died between writing the session and removing the member.
    const later = { format: 1, session: b + 1, token: "later", ended: false };
    const stored = await rig.bucket.read("trainer.a");
    await rig.bucket.update("trainer.a", later, stored?.revision ?? 0);
    await rig.ask("a", "renew", { session: b + 1 });
    // So that the hosts see a lease that is held.
    await rig.clock.advance(LEASE_MS / 3);
    await rig.hosts[0]?.expelLost();
    expect(await members()).toEqual(gone);
  });

  test("and so does the last one: the job stays started", async () => {
    await rig.ask("a", "leave", { session: a });
    await rig.ask("b", "leave", { session: b });
    expect(await members()).toEqual({ revision: 4, started: true, trainers: [] });
  });
});

test("a journal that cannot be written delays nobody, and the host's errors name it", async () => {
  const { append } = rig.owners;
  rig.owners.append = async (shard, record) => {
    if (shard === 2) throw new PserverError("JOURNAL_FULL", "shard 2 is full", { shard });
    return await append.call(rig.owners, shard, record);
  };
  const a = await rig.join("a");
  expect(await enter("a", a)).toBe(1);
  expect(told().map((record) => record?.revision)).toEqual([1, 1, undefined, 1]);
  expect(rig.errors.map(({ code, details }) => [code, details["shard"]])).toEqual([
    ["JOURNAL_FULL", 2],
  ]);
  rig.owners.append = append;
  await rig.hosts[1]?.tellMembers([2]);
  expect(told()[2]?.revision).toBe(1);
});

test("joining tells how the trainers keep step", async () => {
  const reply = await rig.ask("a", "join", { token: "t" });
  expect(reply["synchronization"]).toEqual({ ...SYNC, backups: 0, reduce: "mean" });
});
