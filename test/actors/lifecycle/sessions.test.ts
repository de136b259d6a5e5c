// Proves the rules of sessions: a token stands for one life, a newer life supersedes an older one
// for good, a lease comes and goes without ending a session. Two hosts on records in memory.
import { describe, expect, test } from "vitest";
import { LIFECYCLE_VERBS } from "../../../src/protocol/index.ts";
import { type BucketCall, MemoryBucket } from "../../support/memory-bucket.ts";
import { LEASE_MS, MADE, Rig, refused } from "./rig.ts";

describe("join", () => {
  test("tells what a trainer must know", async () => {
    const reply = await new Rig().ask("t", "join", { token: "a" });
    expect(reply).toMatchObject({
      session: 1,
      made: MADE,
      shards: 4,
      leaseMs: LEASE_MS,
      journal: "file",
      maxPayloadBytes: 8 * 1024 * 1024,
    });
  });

  test("numbers sessions over all trainers and hosts", async () => {
    const rig = new Rig();
    const sessions = [
      await rig.join("a"),
      await rig.join("b", "x", 1),
      await rig.join("c", "x"),
      await rig.join("a"),
    ];
    expect(sessions).toEqual([1, 2, 3, 4]);
  });

  test("repeated with the same token gives the same session, even without the lease", async () => {
    const rig = new Rig();
    expect(await rig.join("t", "a")).toBe(1);
    expect(await rig.join("t", "a", 1)).toBe(1);
    await rig.clock.advance(2 * LEASE_MS);
    expect(await rig.join("t", "a")).toBe(1);
    expect(await rig.leaseBucket.read("trainer.t")).toMatchObject({ value: { session: 1 } });
  });

  test("takes a lease over that names a later session than any record: it is of a job that is gone", async () => {
    const rig = new Rig();
    const left = { owner: "session 57", session: 57, host: "h0" };
    await rig.leaseBucket.create("trainer.t", left);
    expect(await rig.join("t")).toBe(1);
    expect(await rig.leaseBucket.read("trainer.t")).toMatchObject({ value: { session: 1 } });
  });

  test("of 300 trainers at once over two hosts gives 300 sessions", async () => {
    const between = (): Promise<unknown> => new Promise(setImmediate);
    const rig = new Rig({ bucket: new MemoryBucket({ between }) });
    const joins = Array.from({ length: 300 }, (_, i) => rig.join(`t${i}`, "a", i % 2));
    expect(new Set(await Promise.all(joins)).size).toBe(300);
  });

  test("that fails for one host fails for all who wait there, and the next one succeeds", async () => {
    const rig = new Rig();
    rig.bucket.losesRequest = ({ key }) => key === "session";
    const joins = await Promise.allSettled(["a", "b", "c"].map((trainer) => rig.join(trainer)));
    expect(joins.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    rig.bucket.losesRequest = () => false;
    expect(await rig.join("a")).toBe(1);
  });

  test("of one process through two hosts at once is one session", async () => {
    const rig = new Rig();
    const sessions = await Promise.all([rig.join("t", "a", 0), rig.join("t", "a", 1)]);
    expect(new Set(sessions).size).toBe(1);
  });

  test("of two processes at once leaves the newer one as the only session", async () => {
    const rig = new Rig();
    const joins = await Promise.allSettled([rig.join("t", "a", 0), rig.join("t", "b", 1)]);
    const sessions = joins.flatMap((join) => (join.status === "fulfilled" ? [join.value] : []));
    const newest = Math.max(...sessions);
    await rig.ask("t", "renew", { session: newest });
    for (const older of sessions.filter((session) => session < newest)) {
      await refused("SUPERSEDED", rig.ask("t", "renew", { session: older }));
    }
  });

  test("that a newer process overtakes before its record is written is superseded", async () => {
    let overtaken = false;
    const between = async (call: BucketCall): Promise<void> => {
      if (overtaken || call.key !== "trainer.t" || call.action !== "create") return;
      overtaken = true;
      await rig.join("t", "newer", 1);
    };
    const rig = new Rig({ bucket: new MemoryBucket({ between }) });
    await refused("SUPERSEDED", rig.join("t", "older"), "session 2", "session 1");
    await rig.ask("t", "renew", { session: 2 });
  });

  test("that a newer process overtakes before its lease is written is superseded", async () => {
    const rig = new Rig();
    let overtaken = false;
    const read = rig.leaseBucket.read.bind(rig.leaseBucket);
    rig.leaseBucket.read = async (key) => {
      if (!overtaken) {
        overtaken = true;
        await rig.join("t", "newer", 1);
      }
      return await read(key);
    };
    await refused("SUPERSEDED", rig.join("t", "older"), "session 2", "session 1");
    expect((await read("trainer.t"))?.value).toMatchObject({ session: 2 });
  });

  test("survives lost answers at every write", async () => {
    for (const key of ["session", "trainer.t"]) {
      const rig = new Rig();
      let lost = 0;
      const once = (call: { action: string; key: string }): boolean =>
        call.key === key && call.action === "create" && lost++ === 0;
      rig.bucket.losesAnswer = once;
      const session = await rig.join("t", "a");
      expect(lost).toBeGreaterThan(0);
      await rig.ask("t", "renew", { session });
    }
  });

  test("a lost answer of the lease ends in TIMEOUT and the repeat succeeds", async () => {
    const rig = new Rig();
    let lost = 0;
    rig.leaseBucket.losesAnswer = (call) => call.action === "create" && lost++ === 0;
    await refused("TIMEOUT", rig.join("t", "a"));
    expect(await rig.join("t", "a")).toBe(1);
  });

  test("without a token is refused and changes nothing", async () => {
    const rig = new Rig();
    await refused("BAD_MESSAGE", rig.ask("t", "join", {}), "token");
    const writes = rig.bucket.calls.filter(
      ({ action }) => action === "create" || action === "update",
    );
    expect(writes).toEqual([]);
  });
});

describe("a new session", () => {
  test("supersedes the old one in every verb that names a session", async () => {
    const rig = new Rig();
    const old = await rig.join("t");
    const fresh = await rig.join("t", "second", 1);
    const parameter = { name: "w", dtype: "float32", shape: [1], config: {} };
    const requests = {
      renew: {},
      begin: {},
      declare: { epoch: 1, parameters: [parameter] },
      create: { parameter },
      finish: { epoch: 1, at: [] },
      abort: { epoch: 1 },
    } as const;
    for (const [verb, fields] of Object.entries(requests)) {
      const asked = rig.ask("t", verb as keyof typeof requests, { session: old, ...fields });
      await refused("SUPERSEDED", asked, '"t"', `session ${fresh}`, `session ${old}`);
    }
  });

  test("takes the lease at once, and the old one does not get it back", async () => {
    const rig = new Rig();
    const old = await rig.join("t");
    const fresh = await rig.join("t");
    expect((await rig.leaseBucket.read("trainer.t"))?.value).toMatchObject({ session: fresh });
    await rig.clock.advance(2 * LEASE_MS);
    // The new process is dead and its lease has run out: the old one stays superseded.
    await refused("SUPERSEDED", rig.ask("t", "renew", { session: old }));
    expect(await rig.leaseBucket.read("trainer.t")).toBeUndefined();
  });

  test("of another trainer supersedes nobody", async () => {
    const rig = new Rig();
    const session = await rig.join("a");
    await rig.join("b");
    expect(await rig.ask("a", "renew", { session })).toMatchObject({ session });
  });
});

describe("renew", () => {
  test("makes the lease last, and takes it again once it has run out", async () => {
    const rig = new Rig();
    const session = await rig.join("t");
    await rig.clock.advance(LEASE_MS - 1);
    await rig.ask("t", "renew", { session });
    await rig.clock.advance(LEASE_MS - 1);
    expect(await rig.leaseBucket.read("trainer.t")).toBeDefined();
    await rig.clock.advance(1);
    expect(await rig.leaseBucket.read("trainer.t")).toBeUndefined();
    await rig.ask("t", "renew", { session }, 1);
    expect(await rig.leaseBucket.read("trainer.t")).toBeDefined();
  });

  test("of an unknown session is told to join again", async () => {
    const rig = new Rig();
    await refused("REJOIN", rig.ask("t", "renew", { session: 1 }), '"t"', "session 1");
    const session = await rig.join("t");
    await refused("REJOIN", rig.ask("t", "renew", { session: session + 1 }));
  });
});

describe("leave", () => {
  test("ends the session and its lease; a repeat is harmless; the next join is a new session", async () => {
    const rig = new Rig();
    const session = await rig.join("t", "a");
    await rig.ask("t", "leave", { session });
    await rig.ask("t", "leave", { session }, 1);
    expect(await rig.leaseBucket.read("trainer.t")).toBeUndefined();
    await refused("REJOIN", rig.ask("t", "renew", { session }));
    expect(await rig.join("t", "a")).toBeGreaterThan(session);
  });

  test("of an old session leaves the new one alone", async () => {
    const rig = new Rig();
    const old = await rig.join("t");
    const fresh = await rig.join("t");
    await rig.ask("t", "leave", { session: old });
    await rig.ask("t", "renew", { session: fresh });
    expect(await rig.leaseBucket.read("trainer.t")).toBeDefined();
  });
});

describe("a trainer of a former job of this name", () => {
  const FORMER = "2026-11-21T10:00:00.123456789Z";

  test.each(LIFECYCLE_VERBS)(
    "is told so by %s, whatever its session, and changes nothing",
    async (verb) => {
      const rig = new Rig();
      const session = await rig.join("t", "a");
      const revision = await rig.bucket.lastRevision();
      const fields = verb === "join" ? { token: "b" } : { session };
      const asked = rig.ask("t", verb, { ...fields, made: FORMER });
      await refused("JOB_REPLACED", asked, FORMER, MADE, "connect it anew");
      expect(await rig.bucket.lastRevision()).toBe(revision);
    },
  );

  test("joins as soon as it names no job, or this one", async () => {
    const rig = new Rig();
    expect(await rig.join("t", "a")).toBe(1);
    expect(await rig.ask("t", "renew", { session: 1, made: MADE })).toEqual({ session: 1 });
    expect(await rig.ask("t", "join", { token: "b", made: MADE })).toMatchObject({ session: 2 });
  });

  test("is sent to another host by one that serves the former job itself", async () => {
    const rig = new Rig();
    rig.madeNow = "2026-11-23T10:00:00.123456789Z";
    const asked = rig.ask("t", "renew", { session: 1, made: rig.madeNow });
    await refused("NO_HOST", asked, MADE, "gone from the broker");
  });
});
