import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  FairQueue,
  Refusals,
  RequestQueue,
  Shares,
  Turn,
} from "../../../src/actors/owner/fair-server.ts";

import { retryAfterMs } from "../../../src/protocol/index.ts";

// Proves that trainers are served in turn, each within one round however long others' queues are; that no
// bound is exceeded; that a trainer that holds nothing finds a place, however full the queue is; that a
// trainer that was sent much waits until others were sent as much; and that one turn of the event loop is
// left to others in time.

const MIB = 1024 * 1024;
const anyTrainer = fc.integer({ min: 0, max: 7 }).map((i) => `t${i}`);

describe("a fair queue", () => {
  test("serves each waiting trainer once before it serves another twice", () => {
    fc.assert(
      fc.property(fc.array(anyTrainer, { maxLength: 120 }), (pushes) => {
        const queue = new FairQueue<number>({ each: 1_000, all: 10_000 });
        const left = new Map<string, number[]>();
        for (const [i, trainer] of pushes.entries()) {
          expect(queue.push(trainer, i)).toBe(true);
          left.set(trainer, [...(left.get(trainer) ?? []), i]);
        }
        while (left.size > 0) {
          const round = new Set(left.keys());
          while (round.size > 0) {
            const { trainer, task } = queue.next() ?? { trainer: "", task: -1 };
            expect(round.delete(trainer)).toBe(true);
            // A trainer's own tasks stay in order.
            expect(left.get(trainer)?.shift()).toBe(task);
            if (left.get(trainer)?.length === 0) left.delete(trainer);
          }
        }
        expect([queue.next(), queue.size]).toEqual([undefined, 0]);
      }),
    );
  });

  test("serves a newcomer within one round of the waiting trainers, while all keep sending", () => {
    const queue = new FairQueue<string>({ each: 100, all: 10_000 });
    const hogs = ["a", "b", "c"];
    for (const hog of hogs) for (let i = 0; i < 50; i++) queue.push(hog, hog);
    queue.next();
    queue.push("new", "new");
    const served = Array.from({ length: hogs.length + 1 }, () => {
      for (const hog of hogs) queue.push(hog, hog);
      return queue.next()?.trainer;
    });
    expect(served.filter((trainer) => trainer === "new")).toHaveLength(1);
  });

  test("skips a trainer that may not be served, which keeps its turn", () => {
    const queue = new FairQueue<number>({ each: 10, all: 100 });
    for (const trainer of ["a", "b", "c"]) queue.push(trainer, 0);
    expect(queue.next((trainer) => trainer !== "a")?.trainer).toBe("b");
    expect(queue.next()?.trainer).toBe("a");
    expect(queue.next((trainer) => trainer !== "c")).toBeUndefined();
    expect(queue.size).toBe(1);
  });

  test("lets a trainer that took much wait until others took as much", () => {
    const queue = new FairQueue<number>({ each: 100, all: 1_000 });
    for (let i = 0; i < 20; i++) {
      queue.push("large", 4 * MIB);
      queue.push("small", 100);
    }
    const served: string[] = [];
    for (let i = 0; i < 12; i++) {
      const { trainer, task } = queue.next() ?? { trainer: "", task: 0 };
      queue.charge(trainer, task);
      served.push(trainer);
    }
    // 4 MiB is paid back with a MiB in each of three turns.
    expect(served).toEqual(
      [..."lsssslsssslss"].slice(0, 12).map((c) => (c === "l" ? "large" : "small")),
    );
  });

  test("lets no trainer wait for ever for what it was charged", () => {
    const queue = new FairQueue<number>({ each: 100, all: 1_000 });
    queue.push("alone", 1);
    queue.push("alone", 2);
    queue.next();
    queue.charge("alone", 64 * MIB);
    expect(queue.next()?.task).toBe(2);
  });
});

describe("shares", () => {
  const limits = { each: 40, all: 100 };

  test("are never larger than one trainer, or all, may hold, and are returned whole", () => {
    const step = fc.record({ trainer: anyTrainer, amount: fc.integer({ min: 1, max: 30 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.array(fc.boolean()), (steps, backs) => {
        const shares = new Shares(limits);
        const held: { trainer: string; amount: number }[] = [];
        for (const [i, wanted] of steps.entries()) {
          if (shares.take(wanted.trainer, wanted.amount)) held.push(wanted);
          const back = backs[i] ? held.shift() : undefined;
          if (back !== undefined) shares.giveBack(back.trainer, back.amount);
          const total = held.reduce((sum, { amount }) => sum + amount, 0);
          expect(total).toBeLessThanOrEqual(limits.all);
          for (const { trainer } of held) {
            const own = held.filter((one) => one.trainer === trainer);
            expect(own.reduce((sum, { amount }) => sum + amount, 0)).toBeLessThanOrEqual(40);
          }
        }
        for (const { trainer, amount } of held) shares.giveBack(trainer, amount);
        // All has come back: it can be had again.
        expect(["a", "b"].every((trainer) => shares.take(trainer, 40) || trainer === "b")).toBe(
          true,
        );
        expect(shares.take("c", 1)).toBe(true);
      }),
    );
  });

  test("leave a place for a trainer that holds nothing, however many are greedy", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 90 }), (greedy) => {
        const shares = new Shares(limits);
        for (let round = 0; round < 50; round++) {
          for (let i = 0; i < greedy; i++) shares.take(`g${i}`, 1);
        }
        expect(shares.take("new", 1)).toBe(true);
      }),
    );
  });
});

describe("a queue of requests", () => {
  const request = (trainer: string, bytes = 0) => ({
    trainer,
    verb: "create",
    reply: "r",
    data: new Uint8Array(bytes),
  });

  test("runs a bounded number at a time, of one trainer fewer", () => {
    const queue = new RequestQueue({ verbs: ["create"], atOnce: 3, atOnceEach: 2 });
    for (let i = 0; i < 9; i++) expect(queue.add(request("flood"))).toBeUndefined();
    const running = [queue.next(), queue.next(), queue.next()];
    expect(running.map((one) => one?.trainer)).toEqual(["flood", "flood", undefined]);
    queue.add(request("honest"));
    queue.add(request("other"));
    expect([queue.next()?.trainer, queue.next()]).toEqual(["honest", undefined]);
    queue.done(request("honest"));
    expect(queue.next()?.trainer).toBe("other");
  });

  test("tells a flooding trainer how long to wait, and takes others' requests", () => {
    const queue = new RequestQueue({
      verbs: ["create"],
      atOnce: 1,
      atOnceEach: 1,
      requestBytes: 4 * MIB,
      retryAfterMs: 700,
    });
    const refusals = Array.from({ length: 6 }, () => queue.add(request("flood")));
    expect(refusals.map((error) => error?.code ?? "")).toEqual(["", "", "", "", "BUSY", "BUSY"]);
    expect(refusals[4]?.details).toMatchObject({
      expected: 4,
      retryAfterMs: 700,
      trainer: "flood",
    });
    expect(refusals[4] && retryAfterMs(refusals[4])).toBe(700);
    expect(queue.add(request("honest"))).toBeUndefined();
    expect([...queue.drain()].map(({ trainer }) => trainer)).toEqual([
      ...["flood", "honest", "flood", "flood", "flood"],
    ]);
  });

  test("counts the bytes of what waits", () => {
    const queue = new RequestQueue({ verbs: ["create"], atOnce: 1, atOnceEach: 1 });
    expect(queue.add(request("flood", 8 * MIB))).toBeUndefined();
    expect(queue.add(request("flood", 8 * MIB))?.code).toBe("BUSY");
  });
});

describe("a turn of the event loop", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance", "setImmediate"] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test("is over after its time, and the next one begins with a call", () => {
    const calls: number[] = [];
    const turn = new Turn(4, () => void calls.push(performance.now()));
    expect(turn.isOver).toBe(false);
    turn.begin();
    vi.setSystemTime(0);
    expect(turn.isOver).toBe(false);
    const before = performance.now();
    vi.advanceTimersByTime(0);
    expect([calls.length, turn.isOver]).toEqual([1, false]);
    turn.begin();
    turn.begin();
    expect(performance.now()).toBe(before);
    vi.runAllTimers();
    expect(calls).toHaveLength(2);
  });

  test("ends although its work continues", () => {
    let now = 100;
    vi.spyOn(performance, "now").mockImplementation(() => now);
    const turn = new Turn(4, () => undefined);
    turn.begin();
    now = 103.9;
    expect(turn.isOver).toBe(false);
    now = 104;
    expect(turn.isOver).toBe(true);
    vi.runAllTimers();
    expect(turn.isOver).toBe(false);
    vi.restoreAllMocks();
  });
});

test("refusals are told to each trainer some times a period, to all together some more, and no others", () => {
  let now = 5;
  const refusals = new Refusals(() => now);
  const told = (trainer: string): number =>
    Array.from({ length: 100 }, () => refusals.take(trainer)).filter(Boolean).length;
  expect([told("a"), told("a"), told("b")]).toEqual([16, 0, 16]);
  const all = Array.from({ length: 200 }, (_, i) => told(`t${i}`));
  expect(all.reduce((sum, count) => sum + count, 32)).toBe(1_024);
  expect(["a", "t199", "c"].map(refusals.isUnheard)).toEqual([true, true, false]);
  refusals.review();
  expect(refusals.isUnheard("a")).toBe(true);
  now += 100;
  refusals.review();
  expect(refusals.isUnheard("a")).toBe(false);
  expect(told("a")).toBe(16);
});
