// Proves what becomes of records that the broker or the connection does not take, and of answers that are
// of no record of theirs. There is no broker: the test plays broker and host on a fake connection, with a
// fake clock.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PserverError } from "../../../src/protocol/index.ts";
import type { FakeWire, Published } from "../../support/fake-wire.ts";
import {
  ack,
  answer,
  applied,
  deadline,
  FULL,
  fail,
  header,
  MIB,
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

/** Has the connection refuse the next message, as it does one that is too large for the broker. */
function refuseNext(wire: FakeWire): void {
  vi.spyOn(wire, "publish").mockImplementationOnce(() => {
    throw new PserverError("TOO_LARGE", "the broker takes less");
  });
}

describe("a message that the connection does not take", () => {
  test("ends its call, and its number is free for the next record", async () => {
    const { wire, sender } = setUp();
    refuseNext(wire);
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    await settle();
    expect(call.error).toMatchObject({ code: "TOO_LARGE", details: { parameter: "p", block: 0 } });
    expect(sender.inFlightBytes).toBe(0);
    watch(sender.send([update(0, 1)], { deadline: deadline() }));
    expect(header(wire.published[0])).toMatchObject({ n: 1, done: 0 });
  });

  test("leaves unknown what became of its record, if that was sent before", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    wire.disconnect();
    refuseNext(wire);
    wire.reconnect();
    await settle();
    expect(call.error).toMatchObject({ code: "TOO_LARGE", details: { unknown: [{ n: 1 }] } });
    expect(call.error?.message).toContain("applied once or not at all");
  });

  test("leaves unknown the outcomes that it was to ask for", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send(updates(0, 2), { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    ack(wire, wire.published[1], 2);
    refuseNext(wire);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(call.error).toMatchObject({ code: "TOO_LARGE" });
    expect(call.error?.details["unknown"]).toHaveLength(2);
  });
});

describe("an answer of the broker", () => {
  test("that names another shard's journal fails the record", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1, "PS_j_1");
    await settle();
    expect(call.error).toMatchObject({
      code: "BAD_MESSAGE",
      details: { expected: 0, received: 1 },
    });
    expect(sender.inFlightBytes).toBe(0);
  });

  test("that cannot be read fails the record: it is not sent again", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    wire.deliver(wire.published[0]?.reply ?? "", new TextEncoder().encode("{"));
    await vi.advanceTimersByTimeAsync(3_000);
    expect(call.error).toMatchObject({ code: "BAD_MESSAGE" });
    expect(wire.published).toHaveLength(1);
  });

  test("that refuses a record shows that PubAcks still arrive: none that was sent after it is repeated", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(1), update(0)], { deadline: deadline() }));
    for (let spentMs = 0; spentMs < 6_000; spentMs += 100) {
      const last = wire.published.findLast(({ subject }) => subject === "log.1.0");
      fail(wire, last, FULL);
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(wire.published.filter(({ subject }) => subject === "log.0.0")).toHaveLength(1);
  });

  test("that denies a subject concerns only the records in flight to it", async () => {
    const { wire, sender } = setUp();
    const stored = watch(sender.send([update(0)], { deadline: deadline() }));
    const other = watch(sender.send([update(0, 1)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    wire.deny("log.0.0", new PserverError("DENIED", "no"));
    await settle();
    answer(wire, [applied(1), applied(2)]);
    await settle();
    expect([stored.state, other.state]).toEqual(["done", "done"]);
  });

  test("that stores a record counts more than one before that refused it", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline(500) }));
    fail(wire, wire.published[0], { code: 503, err_code: 10008, description: "no leader" });
    ack(wire, wire.published[0], 1);
    await vi.advanceTimersByTimeAsync(500);
    expect(call.error).toMatchObject({ code: "OUTCOME_UNKNOWN", details: { unknown: [{ n: 1 }] } });
  });

  test("is named by the error of a call of which nothing was stored: that of its first update", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send(updates(0, 2), { deadline: deadline(90) }));
    wire.noResponders(wire.published[1] as Published);
    fail(wire, wire.published[0], FULL);
    await vi.advanceTimersByTimeAsync(90);
    expect(call.error).toMatchObject({ code: "JOURNAL_FULL", details: { unsent: 2 } });
  });

  test.each([
    ["of another shard", { stream: "PS_j_1", seq: 1 }],
    ["of another job", { stream: "PS_k_0", seq: 1 }],
    ["that it will not store it", { error: { code: 400, err_code: 10054, description: "large" } }],
  ])("frees the bytes of a record that was given up: %s", async (_what, json) => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0, 0, MIB)], { deadline: deadline(500) }));
    await vi.advanceTimersByTimeAsync(500);
    expect(sender.inFlightBytes).toBe(MIB);
    wire.deliver(wire.published[0]?.reply ?? "", new TextEncoder().encode(JSON.stringify(json)));
    expect(sender.inFlightBytes).toBe(0);
  });
});
