// Proves what the sender tells of a call that ends without all its answers, of a session that ends, and of
// a version that a shard has undone. There is no broker:
// the test plays broker and host on a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Outcome, PserverError } from "../../../src/protocol/index.ts";
import {
  ack,
  answer,
  applied,
  deadline,
  FULL,
  fail,
  header,
  MIB,
  seeing,
  settle,
  setUp,
  spread,
  update,
  updates,
  watch,
} from "./outbox-rig.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe("ends", () => {
  test("at the deadline: sent updates are unknown, updates that were not stored are reported as such", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send(spread(4, 5, MIB), { deadline: deadline(3_000) }));
    ack(wire, wire.published[0], 1);
    answer(wire, [applied(1)]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(call.error).toMatchObject({ code: "OUTCOME_UNKNOWN", details: { unsent: 3 } });
    expect(call.error?.message).toContain("applied once or not at all");
    expect(call.error?.details["unknown"]).toHaveLength(16);
    expect(call.error?.details["applied"]).toEqual([{ parameter: "p", index: 0, shard: 0, n: 1 }]);
  });

  test("without a connection nothing is published, and the error says so", async () => {
    const { wire, sender } = setUp();
    wire.disconnect();
    const call = watch(sender.send([update(0)], { deadline: deadline(1_000) }));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(wire.published).toHaveLength(0);
    expect(call.error).toMatchObject({ code: "NO_BROKER" });
    expect(call.error?.message).toContain("1 block updates were not stored, nothing was applied");
  });

  test("before a call is sent, without a connection: the error says so", async () => {
    const { wire, sender } = setUp();
    wire.disconnect();
    const over = deadline(500);
    await vi.advanceTimersByTimeAsync(500);
    const call = watch(sender.send([update(0)], { deadline: over }));
    await settle();
    expect(call.error).toMatchObject({ code: "NO_BROKER", details: { unsent: 1 } });
  });

  test("of a record that is stored: its outcome is not asked for any more", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline(500) }));
    watch(sender.send([update(1)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    ack(wire, wire.published[1], 1, "PS_j_1");
    await vi.advanceTimersByTimeAsync(3_000);
    const asked = wire.published.slice(2).map(({ subject }) => subject);
    expect(new Set(asked)).toEqual(new Set(["ps.j.shard.1.t.outcome"]));
  });

  test("with JOURNAL_FULL if the journal was full each time, known not to be applied", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline(1_000) }));
    let failed = 0;
    for (let i = 0; i < 20; i++) {
      if (failed < wire.published.length) fail(wire, wire.published[failed++], FULL);
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(failed).toBeGreaterThan(3);
    expect(call.error).toMatchObject({
      code: "JOURNAL_FULL",
      message: expect.stringContaining("nothing was applied"),
    });
  });

  test("a number that was given up counts as done and is never sent again", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline(500) }));
    await vi.advanceTimersByTimeAsync(500);
    watch(sender.send([update(0, 1)], { deadline: deadline() }));
    expect(header(wire.published[1])).toMatchObject({ n: 2, done: 1 });
    wire.disconnect();
    wire.reconnect();
    expect(wire.published.slice(2).map(({ subject }) => subject)).toEqual(["log.0.1"]);
    expect(sender.inFlightBytes).toBe(8);
  });

  test("an abort settles at once and leaves the window free", async () => {
    const { wire, sender } = setUp();
    const abort = new AbortController();
    const call = watch(
      sender.send(spread(4, 5, MIB), { deadline: deadline(30_000, abort.signal) }),
    );
    abort.abort();
    await settle();
    expect(call.error?.code).toBe("ABORTED");
    expect(call.error?.details["unknown"]).toHaveLength(16);
    for (let i = 0; i < 16; i++) ack(wire, wire.published[i], i + 1);
    expect(sender.inFlightBytes).toBe(0);
  });

  test("a refused subject fails its block updates with DENIED", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    wire.deny("log.0.0", new PserverError("DENIED", "no"));
    await settle();
    expect(call.error?.code).toBe("DENIED");
  });
});

describe("sessions", () => {
  test("a new session sends again the updates that are known not to be applied; the rest is unknown", async () => {
    const { wire, sender, ended } = setUp();
    const again = watch(sender.send([update(0)], { deadline: deadline() }));
    const full = watch(sender.send([update(1)], { deadline: deadline() }));
    const lost = watch(sender.send([update(2)], { deadline: deadline() }));
    fail(wire, wire.published[1], FULL);
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "REJOIN", message: "floor" }]);
    expect(ended.map(({ code }) => code)).toEqual(["REJOIN"]);
    sender.pause();
    sender.start(6);
    await settle();
    expect(wire.published.slice(3).map((p) => header(p))).toMatchObject([
      { session: 6, n: 1, done: 0 },
      { session: 6, n: 1, done: 0 },
    ]);
    expect(lost.error?.code).toBe("OUTCOME_UNKNOWN");
    answer(wire, [applied(1)], 0, 6);
    answer(wire, [applied(1)], 1, 6);
    await settle();
    expect([again.state, full.state]).toEqual(["done", "done"]);
  });

  test("a new session sends first the updates that had their turn, in the same order", async () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 3, 3 * MIB), { deadline: deadline() }));
    fail(wire, wire.published[0], FULL);
    fail(wire, wire.published[1], FULL);
    sender.pause();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(wire.published).toHaveLength(2);
    sender.start(6);
    answer(wire, [applied(1)], 0, 6);
    const again = wire.published.slice(2);
    expect(again.map(({ subject }) => subject)).toEqual(["log.0.0", "log.0.1", "log.0.2"]);
    expect(again.map((published) => header(published)["n"])).toEqual([1, 2, 3]);
  });

  test("a new session begins with nothing in flight", async () => {
    const { sender } = setUp();
    watch(sender.send(updates(0, 2, MIB), { deadline: deadline(500) }));
    await vi.advanceTimersByTimeAsync(500);
    expect(sender.inFlightBytes).toBe(2 * MIB);
    sender.pause();
    sender.start(6);
    expect(sender.inFlightBytes).toBe(0);
  });

  test("nothing is published under a session after the answer that ends it, though that makes room", () => {
    const { wire, sender } = setUp((ending) => ending.pause());
    watch(sender.send(updates(0, 3, 3 * MIB), { deadline: deadline() }));
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "REJOIN" }, applied(2)]);
    expect(sender.inFlightBytes).toBe(3 * MIB);
    expect(wire.published).toHaveLength(2);
  });

  test("of several ends that one answer tells, the first counts", () => {
    const { wire, sender, ended } = setUp();
    watch(sender.send(updates(0, 2), { deadline: deadline() }));
    answer(wire, [
      { n: 1, seq: 4, version: 0, code: "REJOIN" },
      { n: 2, seq: 6, version: 0, code: "SUPERSEDED" },
    ]);
    expect(ended.map(({ code }) => code)).toEqual(["REJOIN"]);
  });

  test("an update that is sent again starts over with the shortest delay", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline() }));
    for (let time = 0; time < 3; time++) {
      fail(wire, wire.published[time], FULL);
      await vi.advanceTimersByTimeAsync(300);
    }
    expect(wire.published).toHaveLength(4);
    fail(wire, wire.published[3], FULL);
    sender.pause();
    sender.start(6);
    fail(wire, wire.published[4], FULL);
    await vi.advanceTimersByTimeAsync(200);
    expect(wire.published).toHaveLength(6);
  });

  test("an update that is sent again may be stored, though the broker refused it in the session before", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline(500) }));
    fail(wire, wire.published[0], FULL);
    sender.pause();
    sender.start(6);
    await vi.advanceTimersByTimeAsync(500);
    expect(wire.published).toHaveLength(2);
    expect(call.error).toMatchObject({ code: "OUTCOME_UNKNOWN", details: { unknown: [{ n: 1 }] } });
  });

  test("an update that REJOIN had sent again is unknown if its second session ends without an answer", async () => {
    const { wire, sender } = setUp((ending) => ending.pause());
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "REJOIN" }]);
    sender.start(6);
    expect(wire.published).toHaveLength(2);
    sender.pause();
    sender.start(7);
    await settle();
    expect(wire.published).toHaveLength(2);
    expect(call.error).toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });

  test("REJOIN for a repeated record says nothing about its first copy", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    wire.disconnect();
    wire.reconnect();
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "REJOIN", message: "floor" }]);
    sender.start(6);
    await settle();
    expect(call.error?.code).toBe("OUTCOME_UNKNOWN");
    expect(wire.published).toHaveLength(2);
  });

  test("SUPERSEDED ends the session", async () => {
    const { wire, sender, ended } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "SUPERSEDED", message: "newer" }]);
    await settle();
    expect(call.error?.code).toBe("SUPERSEDED");
    expect(ended).toHaveLength(1);
  });
});

describe("a gradient that names a version which its shard has undone", () => {
  const rejected = (n: number): Outcome => {
    return { n, seq: n, version: 0, code: "BAD_VALUE", message: "seen: expected at most 3" };
  };

  test("is sent once more without it, under a number of its own", async () => {
    const { wire, sender } = setUp();
    const sent = watch(sender.send([seeing(9)], { deadline: deadline() }));
    expect(header(wire.published[0])).toMatchObject({ n: 1, seen: 9 });
    ack(wire, wire.published[0], 1);
    answer(wire, [rejected(1)]);
    expect(header(wire.published[1])).toMatchObject({ n: 2, done: 1 });
    expect(header(wire.published[1])["seen"]).toBeUndefined();
    ack(wire, wire.published[1], 2);
    answer(wire, [applied(2)]);
    await settle();
    expect(sent.state).toBe("done");
  });

  test("is as good as new: that it was stored once keeps no other outcome from being asked for", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([seeing(9), update(0, 1)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    ack(wire, wire.published[1], 2);
    answer(wire, [rejected(1)]);
    expect(header(wire.published[2])).toMatchObject({ n: 3 });
    answer(wire, [applied(3)]);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(header(wire.published[3])).toMatchObject({ numbers: [2] });
  });

  test("ends its call if it is rejected again", async () => {
    const { wire, sender } = setUp();
    const sent = watch(sender.send([seeing(9)], { deadline: deadline() }));
    answer(wire, [rejected(1)]);
    answer(wire, [rejected(2)]);
    await settle();
    expect(sent.error?.code).toBe("BAD_VALUE");
    expect(wire.published).toHaveLength(2);
  });
});
