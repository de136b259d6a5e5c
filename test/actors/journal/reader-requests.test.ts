// Proves how a reader asks for records: how long a request and a consumer last without it, that never more
// records are under way than the credit allows, whatever requests end and records are taken, and when silence
// is no reason to ask anew. The broker is a connection that only notes and delivers; time is faked.
import { nanos } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { TestReader } from "./test-reader.ts";

const WINDOW = 10;

let at: TestReader;

beforeEach(() => {
  vi.useFakeTimers();
  at = new TestReader(WINDOW);
});

afterEach(() => {
  at.reader.stop();
  vi.useRealTimers();
});

/** Lets what can run run. */
const settle = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

describe("a request", () => {
  test("ends after half a minute, with a heartbeat every second until then, at the reader's own inbox", async () => {
    await at.start();
    expect(at.line.inbox).toMatch(/^_INBOX_j\.=host\.h\./);
    expect(at.line.requests).toMatchObject([
      { reply: at.line.inbox, expires: nanos(30_000), idle_heartbeat: nanos(1_000) },
    ]);
  });

  test("is made to a consumer that the broker removes when nothing was asked of it for twelve seconds", async () => {
    await at.start();
    expect(at.line.consumers).toMatchObject([{ config: { inactive_threshold: nanos(12_000) } }]);
  });

  test("leaves out what earlier ones still have to bring", async () => {
    await at.start();
    at.records(5, 9);
    at.reader.taken(5);
    expect(at.batches).toEqual([WINDOW, 5]);
    // Five of the first and five of the second are under way.
    at.records(10, 13);
    at.reader.taken(4);
    expect(at.batches).toEqual([WINDOW, 5]);
    at.records(14, 14);
    at.reader.taken(1);
    expect(at.batches).toEqual([WINDOW, 5, 5]);
  });

  test("that ends leaves those alone that were made after it", async () => {
    await at.start();
    at.records(5, 9);
    at.reader.taken(5);
    at.line.status(408, 5);
    expect(at.batches).toEqual([WINDOW, 5, 5]);
  });

  test("asks for fewer records once they are larger", async () => {
    await at.start();
    for (let seq = 5; seq < 15; seq++) at.line.record(seq, new Uint8Array(250));
    at.reader.taken(WINDOW);
    expect(at.batches).toEqual([WINDOW, 4]);
  });

  test("is not made for records of before a reset that are taken after it", async () => {
    await at.start();
    at.records(5, 13);
    await at.reader.reset();
    at.reader.taken(9);
    expect(at.batches).toEqual([WINDOW, WINDOW]);
  });
});

describe("silence", () => {
  test("while all that may be under way waits for the fold is none of the broker's", async () => {
    await at.start();
    at.records(5, 14);
    await settle(60_000);
    expect(at.line.consumers).toHaveLength(1);
  });

  test("counts from when the consumer was made, however long that took", async () => {
    let made: () => void = () => undefined;
    at.line.beforeAdd = () =>
      new Promise((resolve) => {
        made = resolve;
      });
    const started = at.start();
    await settle(20_000);
    made();
    await started;
    const tried = at.line.consumers.length;
    await settle(2_500);
    expect(at.line.consumers).toHaveLength(tried);
    at.line.beforeAdd = () => Promise.resolve();
    await settle(500);
    expect(at.line.consumers).toHaveLength(tried + 1);
  });

  test("counts only once the connection has brought all that the broker had sent", async () => {
    let pong: () => void = () => undefined;
    at.line.beforePong = () =>
      new Promise((resolve) => {
        pong = resolve;
      });
    await at.start();
    await settle(20_000);
    at.records(5, 5);
    pong();
    await settle();
    expect(at.line.consumers).toHaveLength(1);
    await settle(3_000);
    pong();
    await settle();
    expect(at.line.consumers).toHaveLength(2);
  });

  test("on a connection that is lost meanwhile is left to the reconnect", async () => {
    at.line.beforePong = () => Promise.reject(new Error("lost"));
    await at.start();
    await settle(20_000);
    expect(at.line.consumers).toHaveLength(1);
  });

  test("of one consumer after the other must last longer, up to ten seconds, until one delivers", async () => {
    await at.start();
    const silences: number[] = [];
    for (let known = 1; known <= 4; known++) {
      let silentMs = 0;
      for (; at.line.consumers.length === known; silentMs += 500) await settle(500);
      silences.push(silentMs);
    }
    expect(silences).toEqual([3_000, 5_500, 10_500, 10_500]);
    at.records(5, 5);
    await settle(3_000);
    expect(at.line.consumers).toHaveLength(6);
  });
});

describe("a status that ends reading", () => {
  test.each([404, 409, 503])(
    "%i, has the journal read anew, once, and nothing asked before",
    async (code) => {
      await at.start();
      at.records(5, 14);
      at.line.status(code);
      at.line.status(code);
      at.reader.taken(WINDOW);
      expect(at.batches).toEqual([WINDOW]);
      await settle(1_000);
      expect([at.line.consumers.length, at.batches]).toEqual([2, [WINDOW, WINDOW]]);
    },
  );

  test("is followed by pauses that grow up to half a second", async () => {
    await at.start();
    for (let i = 0; i < 8; i++) {
      at.line.status(503);
      await settle(500);
    }
    at.line.status(503);
    await settle(499);
    expect(at.line.consumers).toHaveLength(9);
    await settle(1);
    expect(at.line.consumers).toHaveLength(10);
  });

  test.each([
    ["a record", () => at.records(5, 5)],
    ["a heartbeat", () => at.line.status(100)],
    ["the end of a request in time", () => at.line.status(408, WINDOW)],
  ])("is followed by a short pause again after %s", async (_what, succeed) => {
    await at.start();
    at.line.status(503);
    await settle(50);
    at.line.status(503);
    await settle(100);
    succeed();
    at.line.status(503);
    await settle(50);
    expect(at.line.consumers).toHaveLength(4);
  });
});

test("an error of the subscription is neither a record nor a status", async () => {
  await at.start();
  at.line.fail(new Error("no permission"));
  await settle(1_000);
  expect([at.delivered, at.failed, at.line.consumers.length]).toEqual([[], [], 1]);
});
