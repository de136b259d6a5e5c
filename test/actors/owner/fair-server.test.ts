import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  FairQueue,
  FairServer,
  FairShares,
  RefusalBudget,
  TimeSlice,
} from "../../../src/actors/owner/fair-server.ts";

import { type PserverError, retryAfterMs } from "../../../src/protocol/index.ts";

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
      queue.charge(trainer, 0, task);
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
    queue.charge("alone", 64);
    expect(queue.next()?.task).toBe(2);
  });
});

describe("shares", () => {
  const limits = { each: 40, all: 100 };

  test("are never larger than one trainer, or all, may hold, and are returned whole", () => {
    const step = fc.record({ trainer: anyTrainer, amount: fc.integer({ min: 1, max: 30 }) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.array(fc.boolean()), (steps, backs) => {
        const shares = new FairShares(limits);
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
        const shares = new FairShares(limits);
        for (let round = 0; round < 50; round++) {
          for (let i = 0; i < greedy; i++) shares.take(`g${i}`, 1);
        }
        expect(shares.take("new", 1)).toBe(true);
      }),
    );
  });
});

describe("a fair server", () => {
  /** Requests in work: what ends the work on each, by trainer in the order of their turns. */
  let running: { readonly trainer: string; readonly end: () => void }[];
  let refused: PserverError[];

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance", "setImmediate"] });
    [running, refused] = [[], []];
  });

  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });

  function ask(server: FairServer, trainer: string, bytes = 0, lane = 0): void {
    const run = (): Promise<void> =>
      new Promise((resolve) => {
        running.push({ trainer, end: resolve });
      });
    const refuse = (error: PserverError): unknown => refused.push(error);
    server.take({ from: trainer, data: new Uint8Array(bytes), run, refuse }, lane);
  }

  const inWork = (): string[] => running.map(({ trainer }) => trainer);

  /** Ends the work on a request, and what is begun thereupon. */
  async function end(place: number): Promise<void> {
    running.splice(place, 1)[0]?.end();
    await vi.advanceTimersByTimeAsync(0);
  }

  test("lets a trainer whose requests cost much time wait until others had as much", async () => {
    const server = new FairServer(new RefusalBudget());
    const served: string[] = [];
    let nowMs = 0;
    vi.spyOn(performance, "now").mockImplementation(() => nowMs);
    const askFor = (trainer: string, workMs: number): void => {
      const run = (): void => {
        served.push(trainer);
        nowMs += workMs;
      };
      server.take({ from: trainer, data: new Uint8Array(0), run, refuse: () => undefined });
    };
    // What comes first has the whole time slice: all else waits.
    askFor("first", 4);
    for (let i = 0; i < 3; i++) askFor("costly", 4);
    for (let i = 0; i < 8; i++) askFor("cheap", 1);
    for (let turn = 0; turn < 20; turn++) await vi.advanceTimersByTimeAsync(1);
    const order = served.map((trainer) => trainer.slice(0, 2)).join(" ");
    // 4 ms of work are paid back with a millisecond in each of three turns.
    expect(order).toBe("fi co ch ch ch ch co ch ch ch ch co");
  });

  test("works on a bounded number at a time, of one trainer on fewer", async () => {
    const server = new FairServer(new RefusalBudget(), [{ atOnce: 3, atOnceEach: 2 }]);
    for (let i = 0; i < 9; i++) ask(server, "flood");
    ask(server, "honest");
    ask(server, "other");
    await vi.advanceTimersByTimeAsync(0);
    expect(inWork()).toEqual(["flood", "flood", "honest"]);
    await end(2);
    expect(inWork()).toEqual(["flood", "flood", "other"]);
    expect(refused).toEqual([]);
  });

  test("tells a flooding trainer how long to wait, and takes others' requests", async () => {
    const server = new FairServer(new RefusalBudget(), [
      { atOnce: 1, requestBytes: 4 * MIB, retryAfterMs: 700 },
    ]);
    for (let i = 0; i < 7; i++) ask(server, "flood");
    expect(refused.map(({ code }) => code)).toEqual(["BUSY", "BUSY"]);
    expect(refused[0]?.details).toMatchObject({
      expected: 4,
      retryAfterMs: 700,
      trainer: "flood",
    });
    expect(refused[0] && retryAfterMs(refused[0])).toBe(700);
    ask(server, "honest");
    const order: string[] = [];
    while (running.length > 0) {
      order.push(...inWork());
      await end(0);
    }
    expect(order).toEqual(["flood", "flood", "honest", "flood", "flood", "flood"]);
  });

  test("counts the bytes of what waits", () => {
    const server = new FairServer(new RefusalBudget(), [{ atOnce: 1 }]);
    ask(server, "flood");
    ask(server, "flood", 8 * MIB);
    expect(refused).toEqual([]);
    ask(server, "flood", 8 * MIB);
    expect(refused.map(({ code }) => code)).toEqual(["BUSY"]);
  });

  test("serves the lanes in their order, each within its own bound", async () => {
    const server = new FairServer(new RefusalBudget(), [{ atOnce: 1 }, { atOnce: 1 }]);
    ask(server, "a", 0, 1);
    ask(server, "b", 0, 1);
    ask(server, "c", 0, 0);
    expect(inWork()).toEqual(["a", "c"]);
    ask(server, "d", 0, 0);
    await end(0);
    expect(inWork()).toEqual(["c", "b"]);
    await end(0);
    expect(inWork()).toEqual(["b", "d"]);
  });

  test("keeps a copy of what waits for the next time slice, and runs that in turn", async () => {
    let now = 100;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
    const server = new FairServer(new RefusalBudget());
    const seen: string[] = [];
    const buffer = new Uint8Array(1);
    const take = (from: string, byte: number): void => {
      buffer[0] = byte;
      const run = (data: Uint8Array): void => {
        seen.push(`${from} ${data[0]}`);
        now += 3;
      };
      server.take({ from, data: buffer, run, refuse: () => undefined });
    };
    for (const byte of [1, 2, 3, 4]) take("a", byte);
    take("b", 5);
    expect(seen).toEqual(["a 1", "a 2"]);
    buffer[0] = 9;
    await vi.advanceTimersByTimeAsync(0);
    expect(seen).toEqual(["a 1", "a 2", "a 3", "b 5"]);
    clock.mockRestore();
  });

  test("refuses what waits when it is closed, and waits for what is in work", async () => {
    const server = new FairServer(new RefusalBudget(), [{ atOnce: 1 }]);
    ask(server, "a");
    ask(server, "b");
    let isClosed = false;
    const closed = server.close().then(() => {
      isClosed = true;
    });
    await vi.advanceTimersByTimeAsync(0);
    expect([refused.map(({ code }) => code), isClosed]).toEqual([["BUSY"], false]);
    await end(0);
    await closed;
    expect(running).toEqual([]);
  });
});

describe("a time slice", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["performance", "setImmediate"] });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test("is over after its time, and the next one begins with a call", () => {
    const calls: number[] = [];
    const slice = new TimeSlice(4, () => void calls.push(performance.now()));
    expect(slice.isOver).toBe(false);
    slice.begin();
    vi.setSystemTime(0);
    expect(slice.isOver).toBe(false);
    const before = performance.now();
    vi.advanceTimersByTime(0);
    expect([calls.length, slice.isOver]).toEqual([1, false]);
    slice.begin();
    slice.begin();
    expect(performance.now()).toBe(before);
    vi.runAllTimers();
    expect(calls).toHaveLength(2);
  });

  test("ends although its work continues", () => {
    let now = 100;
    vi.spyOn(performance, "now").mockImplementation(() => now);
    const slice = new TimeSlice(4, () => undefined);
    slice.begin();
    now = 103.9;
    expect(slice.isOver).toBe(false);
    now = 104;
    expect(slice.isOver).toBe(true);
    vi.runAllTimers();
    expect(slice.isOver).toBe(false);
    vi.restoreAllMocks();
  });
});

test("refusals are told to each trainer some times a period, to all together some more, and no others", () => {
  let now = 5;
  const refusals = new RefusalBudget(() => now);
  const told = (trainer: string): number =>
    Array.from({ length: 100 }, () => refusals.take(trainer)).filter(Boolean).length;
  expect([told("a"), told("a"), told("b")]).toEqual([16, 0, 16]);
  const all = Array.from({ length: 200 }, (_, i) => told(`t${i}`));
  expect(all.reduce((sum, count) => sum + count, 32)).toBe(1_024);
  expect(["a", "t199", "c"].map(refusals.isDropped)).toEqual([true, true, false]);
  refusals.review();
  expect(refusals.isDropped("a")).toBe(true);
  now += 100;
  refusals.review();
  expect(refusals.isDropped("a")).toBe(false);
  expect(told("a")).toBe(16);
});
