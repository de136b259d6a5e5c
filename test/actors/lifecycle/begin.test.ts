// Proves who is selected to initialize the job: one at a time, the same one however often it asks,
// another only after a restart, a leave or a lease that was lost for a whole lease time; and what
// abort gives up. Two hosts on records in memory and a clock that is moved by hand.
import { describe, expect, test } from "vitest";
import { LEASE_MS, Rig, refused, weights } from "./rig.ts";

describe("begin", () => {
  test("selects the first and tells the others who it is", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    expect(await rig.begin("a", a)).toEqual({
      selected: true,
      state: "initializing",
      epoch: 1,
      by: "a",
    });
    const second = { selected: false, state: "initializing", epoch: 1, by: "a" };
    expect(await rig.begin("b", b, 1)).toEqual(second);
  });

  test("asked again by the selected session changes nothing", async () => {
    const rig = new Rig();
    const session = await rig.join("a");
    const first = await rig.begin("a", session);
    const writes = (): number =>
      rig.bucket.calls.filter(({ action }) => action !== "read" && action !== "changes").length;
    const before = writes();
    expect(await rig.begin("a", session, 1)).toEqual(first);
    expect(writes()).toBe(before);
  });

  test("whose answers are lost selects once", async () => {
    const rig = new Rig();
    const session = await rig.join("a");
    let lost = 0;
    rig.bucket.losesAnswer = (call) => call.key === "job" && call.action === "create" && lost++ < 1;
    expect(await rig.begin("a", session)).toMatchObject({ selected: true, epoch: 1 });
  });

  test("by a new session of the selected trainer takes over at once", async () => {
    const rig = new Rig();
    const old = await rig.join("a");
    await rig.begin("a", old);
    const fresh = await rig.join("a");
    expect(await rig.begin("a", fresh, 1)).toMatchObject({ selected: true, epoch: 2, by: "a" });
    await refused("SUPERSEDED", rig.begin("a", old));
  });

  test("by another waits while the selected trainer renews", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    await rig.watch();
    for (let i = 0; i < 6; i++) {
      await rig.ask("a", "renew", { session: a });
      await rig.ask("b", "renew", { session: b });
      await rig.clock.advance(LEASE_MS / 2);
      expect((await rig.begin("b", b, i % 2)).selected).toBe(false);
    }
  });

  test("by another takes over once the lease has been lost for a whole lease time", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    await rig.watch();
    const waits: boolean[] = [];
    for (let i = 0; i < 8 && waits.at(-1) !== true; i++) {
      await rig.ask("b", "renew", { session: b });
      waits.push((await rig.begin("b", b)).selected);
      await rig.clock.advance(LEASE_MS / 3);
    }
    // Its lease was gone when the watch began, but absent is not yet lost.
    expect(waits).toContain(false);
    expect(waits.at(-1)).toBe(true);
    expect(await rig.begin("b", b, 1)).toMatchObject({ selected: true, epoch: 2, by: "b" });
  });

  test("by another does not take over on a host that has only just begun to look", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    await rig.clock.advance(10 * LEASE_MS);
    await rig.ask("b", "renew", { session: b });
    await Promise.all(rig.hosts.map((host) => host.start()));
    expect((await rig.begin("b", b)).selected).toBe(false);
  });

  test("by another does not take over from one that has come back since the host last looked", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    await rig.watch();
    await rig.clock.advance(2 * LEASE_MS);
    await rig.ask("a", "renew", { session: a });
    expect((await rig.begin("b", b)).selected).toBe(false);
  });

  test("by another takes over at once from one that left or that restarted and did not begin", async () => {
    for (const ending of ["leave", "restart"]) {
      const rig = new Rig();
      const [a, b] = [await rig.join("a"), await rig.join("b")];
      await rig.begin("a", a);
      if (ending === "leave") await rig.ask("a", "leave", { session: a });
      else await rig.join("a");
      expect(await rig.begin("b", b), ending).toMatchObject({ selected: true, epoch: 2 });
    }
  });

  test("of a ready job selects nobody", async () => {
    const rig = new Rig();
    const session = await rig.makeReady("a", ["w"]);
    const ready = { selected: false, state: "ready", epoch: 1, by: "a" };
    expect(await rig.begin("a", session)).toEqual(ready);
    expect(await rig.begin("b", await rig.join("b"), 1)).toEqual(ready);
  });
});

describe("abort", () => {
  test("frees the job; a repeat is harmless; the next begin has the next epoch", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    const aborted = { selected: false, state: "uninitialized", epoch: 1, by: "a" };
    expect(await rig.ask("a", "abort", { session: a, epoch: 1 })).toMatchObject(aborted);
    expect(await rig.ask("a", "abort", { session: a, epoch: 1 }, 1)).toMatchObject(aborted);
    expect(await rig.begin("b", b)).toMatchObject({ selected: true, epoch: 2 });
    await refused("STALE_EPOCH", rig.ask("a", "abort", { session: a, epoch: 1 }), "epoch 1");
  });

  test("by the same session can be followed by another begin", async () => {
    const rig = new Rig();
    const session = await rig.join("a");
    await rig.begin("a", session);
    await rig.ask("a", "abort", { session, epoch: 1 });
    expect(await rig.begin("a", session)).toMatchObject({ selected: true, epoch: 2 });
  });

  test("by another than the selected one is refused", async () => {
    const rig = new Rig();
    const [a, b] = [await rig.join("a"), await rig.join("b")];
    await rig.begin("a", a);
    await refused("NOT_SELECTED", rig.ask("b", "abort", { session: b, epoch: 1 }), '"a"', '"b"');
    expect((await rig.begin("a", a)).selected).toBe(true);
  });

  test("of a ready job leaves it ready", async () => {
    const rig = new Rig();
    const session = await rig.makeReady("a", ["w"]);
    expect(await rig.ask("a", "abort", { session, epoch: 1 })).toMatchObject({ state: "ready" });
    expect((await rig.status({ names: ["w"] })).parameters[0]?.ready).toBe(true);
  });

  test("gives up what was declared", async () => {
    const rig = new Rig();
    const session = await rig.join("a");
    await rig.begin("a", session);
    await rig.declare("a", session, 1, [weights("w")]);
    await rig.ask("a", "abort", { session, epoch: 1 });
    expect((await rig.status({ names: ["w"] })).parameters).toEqual([null]);
    await refused("STALE_EPOCH", rig.declare("a", session, 1, [weights("w")]));
  });
});
