// Proves that trainers cannot make entries of a job's bucket grow for good: new ids find a place only up to a bound,
// and get that of those that have left or died; and whatever one trainer does over and over, within its permissions,
// leaves as many entries and leases as doing it once.
import { describe, expect, test } from "vitest";
import { trainerKey } from "../../../src/actors/lifecycle/lock.ts";
import { LIVE_SESSIONS_MAX } from "../../../src/protocol/index.ts";
import { LEASE_MS, Rig, refused, weights } from "./rig.ts";

/** A job that has all trainers but one that it may have; their sessions have ended, or are left open. */
async function nearlyFull(ended: boolean): Promise<Rig> {
  const rig = new Rig({ hosts: 1 });
  await rig.watch();
  for (let i = 1; i < LIVE_SESSIONS_MAX; i++) {
    const entry = { format: 1, session: i, token: "t", ended };
    await rig.bucket.create(trainerKey(`t${i}`), entry);
  }
  await rig.bucket.create("session", { format: 1, session: LIVE_SESSIONS_MAX });
  return rig;
}

describe("a new trainer", () => {
  test("is refused where all places are taken by live ones, who may join again", async () => {
    const rig = await nearlyFull(false);
    for (let i = 1; i < LIVE_SESSIONS_MAX; i++) {
      const lease = { owner: `session ${i}`, session: i, host: "h0" };
      await rig.leaseBucket.create(trainerKey(`t${i}`), lease);
    }
    await rig.join("last");
    await refused("TOO_MANY_TRAINERS", rig.join("one more"), `${LIVE_SESSIONS_MAX}`);
    expect(rig.bucket.text(trainerKey("one more"))).toBeUndefined();
    expect(rig.leaseBucket.text(trainerKey("one more"))).toBeUndefined();
    await rig.join("last");
    await rig.join("t1");
    // Who is gone is looked for, but not again for each that asks.
    await rig.clock.advance(1_000);
    await refused("TOO_MANY_TRAINERS", rig.join("one more"));
    const swept = rig.bucket.text("swept");
    expect(swept).toBeDefined();
    await rig.clock.advance(1_000);
    await refused("TOO_MANY_TRAINERS", rig.join("another"));
    expect(rig.bucket.text("swept")).toBe(swept);
    await Promise.all(rig.hosts.map((host) => host.close()));
  });

  test("gets the place of one that has left or died", async () => {
    const rig = await nearlyFull(true);
    await rig.join("last");
    await refused("TOO_MANY_TRAINERS", rig.join("one more"));
    await rig.clock.advance(LEASE_MS);
    await rig.join("one more");
    expect(await rig.bucket.keys("trainer.")).toHaveLength(2);
    await Promise.all(rig.hosts.map((host) => host.close()));
  });
});

test("whatever a trainer does over and over leaves no more entries and leases than once", async () => {
  const rig = new Rig({ synchronization: { mode: "sync", trainers: 1 } });
  const round = async (): Promise<void> => {
    const session = await rig.join("a");
    await rig.ask("a", "enter", { session });
    const { epoch } = await rig.begin("a", session);
    await rig.declare("a", session, epoch, [weights("w")]);
    await rig.ask("a", "abort", { session, epoch });
    const { epoch: own } = await rig.create("a", session, weights("v"));
    await rig.ask("a", "abort", { session, epoch: own, parameter: "v" });
    await rig.ask("a", "exit", { session });
    await rig.ask("a", "leave", { session });
  };
  const sizes = async (): Promise<number[]> => [
    (await rig.bucket.keys("")).length,
    (await rig.leaseBucket.keys("")).length,
  ];
  await round();
  const once = await sizes();
  for (let i = 0; i < 20; i++) await round();
  expect(await sizes()).toEqual(once);
  const texts = await Promise.all((await rig.bucket.keys("")).map((key) => rig.bucket.text(key)));
  for (const text of texts) expect(text?.length).toBeLessThan(1_000);
});
