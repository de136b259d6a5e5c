// Proves when the sender sends a record again, unchanged, and when it does not. There is no broker:
// the test plays broker and host on a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { UpdateSender } from "../../../src/client/io/update-sender.ts";
import type { FakeWire, Published } from "../../support/fake-wire.ts";
import {
  ack,
  answer,
  applied,
  deadline,
  FULL,
  fail,
  header,
  largeUpdate,
  settle,
  setUp,
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

describe("repeats", () => {
  test("after a reconnect records without PubAck are sent again, unchanged; outcomes of the others are asked for", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send(updates(0, 2), { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    wire.disconnect();
    watch(sender.send([update(0, 9)], { deadline: deadline() }));
    expect(wire.published).toHaveLength(2);
    wire.reconnect();
    expect(wire.published[2]?.bytes).toEqual(wire.published[1]?.bytes);
    expect(wire.published[3]?.subject).toBe("log.0.9");
    await vi.advanceTimersByTimeAsync(100);
    expect(header(wire.published[4])).toMatchObject({ numbers: [1] });
    answer(wire, [applied(1), applied(2)]);
    await settle();
    expect(call.state).toBe("done");
  });

  test("after a reconnect records are repeated in the order in which they were sent", () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 4), { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    ack(wire, wire.published[2], 3);
    watch(sender.send([update(0, 4), update(0, 5), update(0, 6)], { deadline: deadline() }));
    wire.disconnect();
    wire.reconnect();
    const again = wire.published.slice(7).map(({ subject }) => subject);
    expect(again).toEqual(["log.0.1", "log.0.3", "log.0.4", "log.0.5", "log.0.6"]);
  });

  test("after a reconnect a record that was repeated comes after those that were sent before its repeat", async () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 2), { deadline: deadline() }));
    fail(wire, wire.published[0], FULL);
    await vi.advanceTimersByTimeAsync(100);
    expect(wire.published[2]?.subject).toBe("log.0.0");
    wire.disconnect();
    wire.reconnect();
    expect(wire.published.slice(3).map(({ subject }) => subject)).toEqual(["log.0.1", "log.0.0"]);
  });

  test("a PubAck that comes twice is not taken for the PubAck of a later record", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    watch(sender.send([update(0, 1)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    expect(sender.inFlightBytes).toBe(8);
    await vi.advanceTimersByTimeAsync(2_200);
    const again = wire.published.slice(2).map(({ subject }) => subject);
    expect(again).toContain("log.0.1");
    expect(again).not.toContain("log.0.0");
  });

  test("a missing PubAck repeats the record, until there is one and no longer", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline() }));
    await vi.advanceTimersByTimeAsync(1_900);
    expect(wire.published).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(300);
    expect(wire.published).toHaveLength(2);
    expect(wire.published[1]?.bytes).toEqual(wire.published[0]?.bytes);
    ack(wire, wire.published[1], 3);
    await vi.advanceTimersByTimeAsync(10_000);
    const again = wire.published.slice(2).filter(({ subject }) => subject === "log.0.0");
    expect(again).toEqual([]);
  });

  test("a slow link on which PubAcks still arrive is not filled with repeats", async () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 10), { deadline: deadline() }));
    for (let i = 0; i < 10; i++) {
      await vi.advanceTimersByTimeAsync(1_500);
      ack(wire, wire.published[i], i + 1);
      answer(wire, [applied(i + 1)]);
    }
    expect(wire.published).toHaveLength(10);
  });

  /** Has a PubAck come every half second, of shard 9, so that silence says of nothing that it is lost. */
  async function passWithTraffic(wire: FakeWire, sender: UpdateSender, ms: number): Promise<void> {
    for (let spentMs = 0; spentMs < ms; spentMs += 500) {
      watch(sender.send([update(9)], { deadline: deadline(), stored: true }));
      ack(wire, wire.published.at(-1), 1 + spentMs, "PS_j_9");
      await vi.advanceTimersByTimeAsync(500);
    }
  }

  function sendings(wire: FakeWire, subject: string): Published[] {
    return wire.published.filter((published) => published.subject === subject);
  }

  test("a record that later ones have overtaken is sent again after 2 s, whatever their shard", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0), update(0, 1)], { deadline: deadline() }));
    await passWithTraffic(wire, sender, 2_000);
    expect(wire.published.filter(({ subject }) => subject.startsWith("log.0."))).toHaveLength(2);
    await passWithTraffic(wire, sender, 500);
    for (const subject of ["log.0.0", "log.0.1"]) {
      const [first, second] = sendings(wire, subject);
      expect(second?.bytes).toEqual(first?.bytes);
    }
    // Their repeats are overtaken, too.
    await passWithTraffic(wire, sender, 10_000);
    expect(sendings(wire, "log.0.0").length).toBeGreaterThan(4);
  });

  test("PubAcks of a shard that come out of order count as overtaking, too", async () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 3), { deadline: deadline() }));
    ack(wire, wire.published[2], 2);
    ack(wire, wire.published[0], 1);
    await passWithTraffic(wire, sender, 2_500);
    expect(sendings(wire, "log.0.1")).toHaveLength(2);
  });

  test("a small record without a PubAck is sent again each 2 s", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline(60_000) }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sendings(wire, "log.0.0")).toHaveLength(6);
  });

  test("a record that is refused for a time is sent again after 50 ms, doubled up to 1 s", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline(60_000) }));
    const pausesMs: number[] = [];
    for (let time = 1; time <= 8; time++) {
      fail(wire, sendings(wire, "log.0.0").at(-1), FULL);
      const refusedMs = performance.now();
      while (sendings(wire, "log.0.0").length === time) await vi.advanceTimersByTimeAsync(10);
      pausesMs.push(performance.now() - refusedMs);
    }
    // Rounded up to the next look through what waits, ten of which are in a second.
    const least = [50, 100, 200, 400, 800, 1_000, 1_000, 1_000];
    expect(pausesMs.map((pause, i) => pause >= (least[i] ?? 0))).toEqual(least.map(() => true));
    expect(pausesMs.map((pause, i) => pause <= (least[i] ?? 0) + 100)).toEqual(
      least.map(() => true),
    );
  });

  test("after a reconnect outcomes are asked for at once, though they were just before", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(sendings(wire, "ps.j.shard.0.t.outcome")).toHaveLength(1);
    wire.disconnect();
    wire.reconnect();
    await vi.advanceTimersByTimeAsync(100);
    expect(sendings(wire, "ps.j.shard.0.t.outcome")).toHaveLength(2);
  });

  test("while there is no connection nothing is sent again, or asked for", async () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 3), { deadline: deadline(60_000) }));
    ack(wire, wire.published[0], 1);
    fail(wire, wire.published[1], FULL);
    wire.disconnect();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(wire.published).toHaveLength(3);
  });

  test.each([
    ["PubAck", (wire: FakeWire): void => ack(wire, wire.published[1], 1)],
    ["outcome, if that is faster,", (wire: FakeWire): void => answer(wire, [applied(1)])],
  ])(
    "after its %s the memory of a record that was sent twice is not used again: a copy may be on its way",
    (_what, conclude) => {
      const { wire, sender } = setUp();
      const taken: ArrayBufferLike[] = [];
      const large = largeUpdate(taken);
      watch(sender.send([large], { deadline: deadline() }));
      wire.disconnect();
      wire.reconnect();
      conclude(wire);
      watch(sender.send([large], { deadline: deadline() }));
      expect(new Set(taken).size).toBe(2);
    },
  );

  test("the memory of a record that was given up is not used again: it may be on its way", async () => {
    const { sender } = setUp();
    const taken: ArrayBufferLike[] = [];
    const large = largeUpdate(taken);
    watch(sender.send([large], { deadline: deadline(500) }));
    await vi.advanceTimersByTimeAsync(500);
    watch(sender.send([large], { deadline: deadline() }));
    expect(new Set(taken).size).toBe(2);
  });

  test("a full journal and one that nobody has made yet are tried again, with growing delays", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    fail(wire, wire.published[0], FULL);
    await vi.advanceTimersByTimeAsync(200);
    expect(wire.published).toHaveLength(2);
    wire.noResponders(wire.published[1] as Published);
    await vi.advanceTimersByTimeAsync(300);
    expect(wire.published).toHaveLength(3);
    ack(wire, wire.published[2], 1);
    answer(wire, [applied(1)]);
    await settle();
    expect(call.state).toBe("done");
  });
});
