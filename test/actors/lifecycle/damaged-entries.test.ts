// Proves that a job whose bucket has lost an entry, has an older one again or one with a changed bit is not
// initialized again: each contradiction with what the shards were told ends in JOB_DAMAGED, which names the entry,
// and changes nothing; and that no sound history of a job is taken for a damaged one.
import { describe, expect, test } from "vitest";
import { Rig, refused, SHARDS, weights } from "./rig.ts";

/** The stored texts of an entry, oldest first, as of each call. */
class Former {
  readonly #rig: Rig;
  readonly #texts: Map<string, string> = new Map();

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  /** Keeps the present texts of these entries. */
  keep(...keys: string[]): void {
    for (const key of keys) {
      const text = this.#rig.bucket.text(key);
      if (text !== undefined) this.#texts.set(key, text);
    }
  }

  /** Puts an entry back as it was kept, or takes it away. */
  putBack(key: string): void {
    this.#rig.bucket.damage(key, this.#texts.get(key));
  }
}

/** A new process of a trainer asks new hosts on the same bucket to begin. */
async function beginAnew(rig: Rig): Promise<unknown> {
  const next = new Rig({ bucket: rig.bucket, owners: rig.owners });
  return await next.begin("t", await next.join("t"));
}

describe("a job that is initialized is not initialized again", () => {
  test("when its entry is lost", async () => {
    const rig = new Rig();
    await rig.makeReady("t", ["w"]);
    rig.bucket.damage("job", undefined);
    await refused("JOB_DAMAGED", beginAnew(rig), "job: shard 0 knows", "found uninitialized");
  });

  test("when its entry is that of a time before", async () => {
    const rig = new Rig();
    const former = new Former(rig);
    const session = await rig.join("t");
    const { epoch } = await rig.begin("t", session);
    former.keep("job");
    const infos = await rig.declare("t", session, epoch, [weights("w")]);
    for (const info of infos) rig.owners.initialize(info);
    await rig.finish("t", session, epoch);
    former.putBack("job");
    const before = rig.bucket.calls.length;
    await refused("JOB_DAMAGED", beginAnew(rig), "found initializing, epoch 1", "pserver recover");
    const writes = rig.bucket.calls
      .slice(before)
      .filter(({ action }) => action === "create" || action === "update");
    expect(writes).toEqual([]);
  });

  test.each(["job", "session", "param.w", "trainer.t"])(
    "when any bit of %s has changed",
    async (key) => {
      const rig = new Rig();
      await rig.makeReady("t", ["w"]);
      const text = rig.bucket.text(key) ?? "";
      for (let at = 0; at < text.length; at++) {
        const code = text.charCodeAt(at) ^ (1 << (at % 7));
        const hurt = text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1);
        rig.bucket.damage(key, hurt);
        await refused("JOB_DAMAGED", beginAnew(rig), `entry ${key} `);
      }
    },
  );
});

test("a parameter whose entry is lost, older or another one is not declared again", async () => {
  const rig = new Rig();
  const former = new Former(rig);
  await rig.makeReady("t", ["w"]);
  const session = await rig.join("u");
  const { epoch, info } = await rig.create("u", session, weights("own"));
  former.keep("param.own");
  rig.owners.initialize(info);
  await rig.finish("u", session, epoch, { parameter: "own" });
  const ask = async (): Promise<unknown> => {
    const next = new Rig({ bucket: rig.bucket, owners: rig.owners });
    return await next.create("v", await next.join("v"), weights("own"));
  };
  expect(await ask()).toMatchObject({ selected: false, state: "ready" });
  former.putBack("param.own");
  await refused("JOB_DAMAGED", ask(), "param.own", "expected it to be initialized");
  rig.bucket.damage("param.own", undefined);
  await refused("JOB_DAMAGED", ask(), "param.own", "found no entry");
  // Another one is declared, in its place, by hosts that did not look.
  await rig.bucket.create("param.own", JSON.parse(rig.bucket.text("param.w") ?? ""));
  await refused("JOB_DAMAGED", ask(), "param.own");
});

test("a number of sessions below one that a shard was told of is not gone on from", async () => {
  const rig = new Rig();
  const former = new Former(rig);
  await rig.join("first");
  former.keep("session", "trainer.first");
  await rig.makeReady("t", ["w"]);
  former.putBack("session");
  rig.bucket.damage("trainer.t", undefined);
  await refused("JOB_DAMAGED", beginAnew(rig), "session: shard 0 knows that session 2 was given");
});

test("members that are fewer than a shard was told of are found", async () => {
  const rig = new Rig({ synchronization: { mode: "sync", trainers: 1 } });
  await rig.makeReady("t", ["w"]);
  await rig.ask("t", "enter", { session: 1, exits: 0 });
  expect(rig.owners.of("members")).toHaveLength(SHARDS);
  rig.bucket.damage("members", undefined);
  await refused("JOB_DAMAGED", beginAnew(rig), "members: shard 0 knows the members of revision 1");
});

test("hosts find damage by themselves, and those that run after a loss of the broker", async () => {
  const rig = new Rig();
  await rig.makeReady("t", ["w"]);
  const [host] = rig.hosts;
  expect(await host?.checkEntries()).toBe(true);
  rig.bucket.damage("job", undefined);
  expect(await host?.checkEntries()).toBe(true);
  host?.disconnected();
  await refused("JOB_DAMAGED", host?.checkEntries() as Promise<unknown>, "job: shard 0 knows");
});

test("a shard without an owner is compared when it has one; nobody is selected before", async () => {
  const rig = new Rig();
  await rig.makeReady("t", ["w"]);
  rig.bucket.damage("job", undefined);
  rig.owners.silent = true;
  const next = new Rig({ bucket: rig.bucket, owners: rig.owners });
  const session = await next.join("t");
  expect(await next.hosts[0]?.checkEntries()).toBe(false);
  await refused("NO_OWNER", next.begin("t", session));
  rig.owners.silent = false;
  await refused("JOB_DAMAGED", next.begin("t", session), "job: shard 0 knows");
});

test("what shards do not know is told to them", async () => {
  const rig = new Rig();
  await rig.makeReady("t", ["w"]);
  const session = await rig.join("u");
  const { epoch, info } = await rig.create("u", session, weights("own"));
  rig.owners.initialize(info);
  await rig.finish("u", session, epoch, { parameter: "own" });
  const untold = rig.owners.of("declare");
  rig.owners.forget();
  for (const { shard, record } of untold) await rig.owners.append(shard, record);
  const next = new Rig({ bucket: rig.bucket, owners: rig.owners });
  await next.hosts[0]?.checkEntries();
  for (let shard = 0; shard < SHARDS; shard++) {
    const { job, parameters } = await rig.owners.known(shard);
    expect(job).toEqual({ epoch: 1, revised: 0, session: 1 });
    for (const { name, initialized } of parameters)
      expect(initialized).toBe(name === "own" || undefined);
  }
  const { length } = rig.owners.appended;
  await new Rig({ bucket: rig.bucket, owners: rig.owners }).hosts[0]?.checkEntries();
  expect(rig.owners.appended).toHaveLength(length);
});

test("an initialization that was aborted, or whose trainer has died, is no damage", async () => {
  const rig = new Rig();
  const session = await rig.join("t");
  const { epoch } = await rig.begin("t", session);
  await rig.declare("t", session, epoch, [weights("w")]);
  await rig.ask("t", "abort", { session, epoch });
  const again = await rig.begin("t", session);
  await rig.declare("t", session, again.epoch, [weights("w")]);
  await beginAnew(rig);
});
