// Proves that a counter of sessions which has fallen back, as where the bucket that holds it was cut off, is
// found by anything in the job that shows a later number: a trainer's record, the last sweep, a shard's
// journal. Nothing is swept or forgotten by such a counter, and a trainer that joins is told so instead of
// being taken for an older process. A counter that has not is never suspected.
import { expect, test } from "vitest";
import { LEASE_MS, Rig, refused } from "./rig.ts";

const COUNTER = "session";

/** A job with three trainers that have joined. */
async function joined(): Promise<Rig> {
  const rig = new Rig();
  for (const trainer of ["a", "b", "c"]) await rig.join(trainer);
  return rig;
}

/** Takes the counter back, or away. */
async function fallBack(rig: Rig, session: number): Promise<void> {
  const stored = await rig.bucket.read(COUNTER);
  await rig.bucket.remove(COUNTER, stored?.revision ?? 0);
  if (session > 0) await rig.bucket.create(COUNTER, { format: 1, session });
}

async function told(rig: Rig): Promise<unknown> {
  return await rig.hosts[0]?.checkEntries();
}

test("a sound counter is not suspected", async () => {
  const rig = await joined();
  await told(rig);
  await rig.hosts[0]?.endSessions([2]);
  await told(rig);
  rig.owners.toldUpTo = 3;
  await rig.hosts[0]?.endSessions([2]);
  expect(rig.owners.of("sessions")).toHaveLength(2);
});

test.each([0, 1, 2])(
  "a counter of %i is below what a trainer has, and nothing is swept",
  async (last) => {
    const rig = await joined();
    await fallBack(rig, last);
    const words = [`stands at ${last}`, "trainer.c has session 3"];
    await refused("JOB_DAMAGED", told(rig) as Promise<unknown>, ...words);
    rig.owners.remembered.set(2, [["c", 3]]);
    await refused("JOB_DAMAGED", rig.hosts[0]?.endSessions([2]) as Promise<unknown>, ...words);
    expect(rig.owners.appended).toEqual([]);
  },
);

test("a counter below the last sweep is found though all trainers are gone", async () => {
  const rig = await joined();
  await rig.ask("c", "leave", { session: 3 });
  await rig.hosts[0]?.endSessions([2]);
  await fallBack(rig, 2);
  const { length } = rig.owners.appended;
  await refused("JOB_DAMAGED", told(rig) as Promise<unknown>, "the last sweep has session 3");
  await refused(
    "JOB_DAMAGED",
    rig.hosts[0]?.endSessions([2]) as Promise<unknown>,
    "the last sweep",
  );
  expect(rig.owners.appended).toHaveLength(length);
  await fallBack(rig, 0);
  await refused("JOB_DAMAGED", rig.join("d"), "the last sweep has session 3");
});

test("a counter below what a journal has been told is found though the bucket is empty", async () => {
  const rig = new Rig();
  rig.owners.toldUpTo = 7;
  const ended = rig.hosts[0]?.endSessions([2]) as Promise<unknown>;
  await refused("JOB_DAMAGED", ended, "stands at 0", "the journal of shard 2 has session 7");
  expect(rig.owners.appended).toEqual([]);
});

test("a trainer that joins again is not told that its session is too old", async () => {
  const rig = await joined();
  await fallBack(rig, 0);
  await rig.clock.advance(2 * LEASE_MS);
  await refused("JOB_DAMAGED", rig.join("c"), 'trainer "c" has session 3');
  // The numbers above are free.
  await fallBack(rig, 3);
  expect(await rig.join("c")).toBe(4);
});
