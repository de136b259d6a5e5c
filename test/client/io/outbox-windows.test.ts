// Proves how much the sender has under way at most, and which call is next. There is no broker: the test
// plays broker and host on a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { UpdateSource } from "../../../src/client/io/update-sender.ts";
import {
  ack,
  answer,
  applied,
  deadline,
  FULL,
  fail,
  header,
  MIB,
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

describe("windows", () => {
  test("at most 16 MiB are without a PubAck, and block updates become messages only when admitted", async () => {
    const { wire, sender } = setUp();
    let drafted = 0;
    const counted = spread(5, 7, MIB).map((one) => ({
      ...one,
      draft: (h: Parameters<UpdateSource["draft"]>[0]) => {
        drafted += 1;
        return one.draft(h, false);
      },
    }));
    watch(sender.send(counted, { deadline: deadline() }));
    expect(drafted).toBe(16);
    expect(sender.inFlightBytes).toBe(16 * MIB);
    ack(wire, wire.published[0], 1);
    expect(drafted).toBe(17);
    for (let i = 1; i < 17; i++) ack(wire, wire.published[i], i + 1);
    expect(drafted).toBe(33);
    expect(sender.inFlightBytes).toBe(16 * MIB);
  });

  test("a block update larger than the window goes alone", () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0, 0, 20 * MIB), update(1)], { deadline: deadline() }));
    expect(wire.published).toHaveLength(1);
    ack(wire, wire.published[0], 1);
    expect(wire.published).toHaveLength(2);
  });

  test("at most 1,024 numbers of a shard are open; other shards continue", () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 1030), { deadline: deadline() }));
    watch(sender.send(updates(1, 3), { deadline: deadline() }));
    expect(wire.published).toHaveLength(1024 + 3);
    // Number 2 has an outcome, but `done` is the contiguous prefix.
    answer(wire, [applied(2)]);
    expect(wire.published).toHaveLength(1024 + 3);
    answer(wire, [applied(1)]);
    expect(wire.published).toHaveLength(1024 + 5);
    expect(header(wire.published.at(-1))).toMatchObject({ n: 1026, done: 2 });
  });

  test("small block updates do not overtake a large one whose turn it is", () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0, 0, 10 * MIB)], { deadline: deadline() }));
    watch(sender.send([update(1, 0, 10 * MIB)], { deadline: deadline() }));
    watch(sender.send(updates(2, 3, MIB), { deadline: deadline() }));
    expect(wire.published).toHaveLength(1);
    ack(wire, wire.published[0], 1);
    expect(wire.published[1]?.subject).toBe("log.1.0");
  });

  test("a record that was given up frees its window bytes when its answer comes, or 2 s after the broker has read it", async () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 3, MIB), { deadline: deadline(500) }));
    await vi.advanceTimersByTimeAsync(500);
    expect(sender.inFlightBytes).toBe(3 * MIB);
    fail(wire, wire.published[0], FULL);
    expect(sender.inFlightBytes).toBe(2 * MIB);
    ack(wire, wire.published[1], 1);
    expect(sender.inFlightBytes).toBe(MIB);
    watch(sender.send([update(1)], { deadline: deadline(), stored: true }));
    await vi.advanceTimersByTimeAsync(1_900);
    expect(sender.inFlightBytes).toBe(MIB + 8);
    await vi.advanceTimersByTimeAsync(400);
    expect(sender.inFlightBytes).toBe(8);
    expect(wire.published.filter(({ subject }) => subject.startsWith("log.0"))).toHaveLength(3);
  });

  test("a record that was given up frees its window bytes though nothing else is under way", async () => {
    const { sender } = setUp();
    watch(sender.send([update(0, 0, MIB)], { deadline: deadline(500) }));
    await vi.advanceTimersByTimeAsync(2_000);
    expect(sender.inFlightBytes).toBe(MIB);
    await vi.advanceTimersByTimeAsync(400);
    expect(sender.inFlightBytes).toBe(0);
  });

  test("a record takes the slot of one that left flight, so that what is kept by slot stays bounded", () => {
    const { wire, sender } = setUp();
    for (let i = 0; i < 20; i++) {
      watch(sender.send(updates(0, 2), { deadline: deadline() }));
      ack(wire, wire.published[2 * i], 2 * i);
      ack(wire, wire.published[2 * i + 1], 2 * i + 1);
    }
    const tokens = wire.published.map(({ reply }) => reply.slice(`${wire.inbox}.ack.`.length));
    expect(new Set(tokens).size).toBe(40);
    expect(new Set(tokens.map((token) => token.split("-")[0]))).toEqual(new Set(["0", "1"]));
  });

  test("calls wait in order, and shards take turns", () => {
    const { wire, sender } = setUp();
    watch(sender.send([...updates(2, 7, MIB), ...updates(3, 7, MIB)], { deadline: deadline() }));
    watch(sender.send(updates(0, 4, MIB), { deadline: deadline() }));
    watch(sender.send(updates(1, 2, MIB), { deadline: deadline() }));
    for (let i = 0; i < 4; i++) ack(wire, wire.published[i], i + 1);
    const last = wire.published.slice(16).map(({ subject }) => subject);
    expect(last).toEqual(["log.0.2", "log.1.0", "log.0.3", "log.1.1"]);
  });
});

test("a closed sender sends nothing more, and leaves no timer", async () => {
  const { wire, sender } = setUp();
  const call = deadline();
  await vi.advanceTimersByTimeAsync(100);
  const timers = vi.getTimerCount();
  watch(sender.send(updates(0, 2, 10 * MIB), { deadline: call }));
  expect(vi.getTimerCount()).toBe(timers + 1);
  sender.close();
  expect(vi.getTimerCount()).toBe(timers);
  ack(wire, wire.published[0], 1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(wire.published).toHaveLength(1);
});
