// Proves that a job and each trainer of it can declare as much as the quotas say and no more, through
// whichever host; that a refusal changes nothing; and that what ended without a finish counts no bytes.
import { describe, expect, test } from "vitest";
import { quotasOf } from "../../../src/actors/job/job-settings.ts";
import { Rig, refused, weights } from "./rig.ts";

/** Bytes of the values of `weights`: 8 of float32, and no optimizer state with sgd. */
const BYTES = 32;

async function selected(rig: Rig): Promise<number> {
  const session = await rig.join("a");
  await rig.begin("a", session);
  return session;
}

describe("a declaration", () => {
  test("beyond the job's bytes is refused, and nothing of the request is written", async () => {
    const rig = new Rig({ quotas: { heldBytesMax: 2 * BYTES } });
    const session = await selected(rig);
    await rig.declare("a", session, 1, [weights("v")]);
    const more = [weights("w"), weights("x")];
    await refused("QUOTA", rig.declare("a", session, 1, more), "at most 64 bytes", "received 96");
    expect((await rig.status({ names: ["w", "x"] })).parameters).toEqual([null, null]);
    await rig.declare("a", session, 1, [weights("w")]);
    // A repeat adds nothing.
    await rig.declare("a", session, 1, [weights("v"), weights("w")]);
  });

  test("beyond the job's parameters is refused, also through another host", async () => {
    const rig = new Rig({ quotas: { parametersMax: 2 } });
    const session = await selected(rig);
    await rig.declare("a", session, 1, [weights("v")], 0);
    await rig.declare("a", session, 1, [weights("w")], 0);
    const third = rig.declare("a", session, 1, [weights("x")], 1);
    await refused("QUOTA", third, "job j", "at most 2 parameters", "received 3");
  });

  test("of what an ended attempt declared counts once", async () => {
    const rig = new Rig({ quotas: { heldBytesMax: BYTES } });
    const session = await selected(rig);
    await rig.declare("a", session, 1, [weights("v")]);
    await rig.ask("a", "abort", { session, epoch: 1 });
    await rig.begin("a", session);
    await rig.clock.advance(1_000);
    await rig.declare("a", session, 2, [weights("w")]);
    await refused("QUOTA", rig.declare("a", session, 2, [weights("v")]), "received 64");
  });
});

describe("a creation", () => {
  test("beyond a trainer's own quota is refused, another trainer's is not", async () => {
    const rig = new Rig({ quotas: { trainerParametersMax: 1, trainerHeldBytesMax: BYTES } });
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.create("a", a, weights("v"));
    await refused("QUOTA", rig.create("a", a, weights("w")), 'trainer "a"', "at most 1 parameters");
    const large = weights("w", { shape: [9] });
    await refused("QUOTA", rig.create("b", b, large), 'trainer "b"', "at most 32 bytes");
    expect(await rig.create("b", b, weights("w"))).toMatchObject({ selected: true });
    // Who waits for another is not refused.
    expect(await rig.create("a", a, weights("w"))).toMatchObject({ selected: false });
  });
});

test("what is declared is shown by trainer, beside the quotas", async () => {
  const rig = new Rig({ quotas: { heldBytesMax: 1_000 } });
  const session = await selected(rig);
  await rig.declare("a", session, 1, [weights("v"), weights("w")]);
  expect(await rig.hosts[0]?.declared()).toMatchObject({
    parameters: 2,
    heldBytes: 2 * BYTES,
    quotas: { heldBytesMax: 1_000, trainerHeldBytesMax: 1_000, parametersMax: 65_536 },
    trainers: [{ trainer: "a", parameters: 2, heldBytes: 2 * BYTES }],
  });
});

test("a declaration for which the broker has no space is refused, and changes nothing", async () => {
  const rig = new Rig();
  const session = await selected(rig);
  await rig.declare("a", session, 1, [weights("v")]);
  rig.owners.storageBytes = 2 * BYTES - 1;
  await refused("NO_SPACE", rig.declare("a", session, 1, [weights("w")]), `${2 * BYTES}`);
  const b = await rig.join("b");
  await refused("NO_SPACE", rig.create("b", b, weights("x")), `${2 * BYTES}`);
  expect(await rig.hosts[0]?.declared()).toMatchObject({ parameters: 1, heldBytes: BYTES });
  rig.owners.storageBytes = 2 * BYTES;
  await rig.declare("a", session, 1, [weights("w")]);
});

test("each refusal names the flag that sets its limit", async () => {
  const all = [
    [{ parametersMax: 1, trainerParametersMax: 9 }, "--quota-parameters"],
    [{ heldBytesMax: BYTES, trainerHeldBytesMax: 9 * BYTES }, "--quota-bytes"],
    [{ trainerParametersMax: 1 }, "--trainer-quota-parameters"],
    [{ trainerHeldBytesMax: BYTES }, "--trainer-quota-bytes"],
  ] as const;
  for (const [quotas, flag] of all) {
    const rig = new Rig({ quotas });
    const session = await selected(rig);
    const two = [weights("v"), weights("w")];
    await refused("QUOTA", rig.declare("a", session, 1, two), ` ${flag}`);
  }
});

describe("by default", () => {
  test("a trainer that declares all that it may leaves names to others", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    const names = Array.from({ length: 16_384 }, (_, i) => weights(`a${i}`, { shape: [1] }));
    for (let at = 0; at < names.length; at += 256) {
      await rig.declare("a", a, 1, names.slice(at, at + 256));
    }
    await refused("QUOTA", rig.declare("a", a, 1, [weights("more")]), 'trainer "a"', "16384");
    expect(await rig.create("b", b, weights("w"))).toMatchObject({ selected: true });
  });

  test("a trainer's quotas are below the job's, and never above what was asked for the job", () => {
    const { trainerHeldBytesMax, heldBytesMax } = quotasOf({ shards: 16 });
    expect(trainerHeldBytesMax).toBe(42 * 1024 ** 3);
    expect(heldBytesMax).toBeGreaterThan(trainerHeldBytesMax);
    expect(quotasOf({ parametersMax: 10, heldBytesMax: 1_000 })).toEqual({
      parametersMax: 10,
      heldBytesMax: 1_000,
      trainerParametersMax: 10,
      trainerHeldBytesMax: 1_000,
    });
  });
});
