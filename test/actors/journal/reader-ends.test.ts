// Proves what of a reader outlives an interruption: nothing of an attempt that was overtaken or stopped while
// the broker had not answered, no timer, and pauses that grow while attempts fail; and what a delivery says of
// its record. The broker is a connection that only notes and delivers.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PserverError } from "../../../src/protocol/index.ts";
import { withoutPauses } from "../../support/without-pauses.ts";
import { TestReader } from "./test-reader.ts";

type Place = Awaited<ReturnType<TestReader["locate"]>>;

let at: TestReader;

beforeEach(() => {
  vi.useFakeTimers();
  at = new TestReader(10);
});

afterEach(() => {
  at.reader.stop();
  vi.useRealTimers();
});

/** Lets what can run run. */
const settle = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

/** Has the next look at the journal wait for `answer` or `fail`. */
function holdLocate(): { answer: (place: Place) => void; fail: (error: PserverError) => void } {
  let answer: (place: Place) => void = () => undefined;
  let fail: (error: PserverError) => void = () => undefined;
  const held = new Promise<Place>((resolve, reject) => {
    answer = resolve;
    fail = reject;
  });
  at.locate = () => held;
  return { answer: (place) => answer(place), fail: (error) => fail(error) };
}

describe("once it has stopped,", () => {
  test("no timer of it is left", async () => {
    await at.start();
    at.reader.stop();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a consumer that the broker makes at last is not listened to", async () => {
    let made: () => void = () => undefined;
    at.line.beforeAdd = () =>
      new Promise((resolve) => {
        made = resolve;
      });
    const started = at.start();
    await settle();
    at.reader.stop();
    made();
    await started;
    expect([at.line.open, at.batches]).toEqual([0, []]);
  });

  test("an error that comes at last is not reported", async () => {
    const { fail } = holdLocate();
    const started = at.start();
    await settle();
    at.reader.stop();
    fail(new PserverError("JOURNAL_LOST", "gone"));
    await started;
    expect(at.failed).toEqual([]);
  });
});

test("a place that comes after a reconnect changes nothing: reading goes on where the later look said", async () => {
  const { answer } = holdLocate();
  void at.start();
  await settle();
  at.locate = () => Promise.resolve({ stream: "PS_j_3_2", startSeq: 7 });
  await at.reader.reconnected();
  answer({ stream: "PS_j_3", startSeq: 5 });
  await settle();
  expect(at.line.consumers.map(({ stream }) => stream)).toEqual(["PS_j_3_2"]);
  at.records(5, 7);
  expect(at.delivered.map(({ seq }) => seq)).toEqual([7]);
  at.reader.taken(1);
  at.line.status(408, 9);
  for (const { subject } of at.line.requests) expect(subject).toContain(".PS_j_3_2.");
});

test("pauses between attempts that fail grow up to half a second, and are short again after a record", async () => {
  const pauses = withoutPauses();
  const there = at.locate;
  const failing = (times: number): void => {
    at.locate = () => {
      times -= 1;
      if (times === 0) at.locate = there;
      return Promise.reject(new PserverError("TIMEOUT", "the broker did not answer"));
    };
  };
  failing(8);
  await at.start();
  expect(pauses).toEqual([50, 100, 200, 400, 500, 500, 500, 500]);
  at.records(5, 5);
  failing(1);
  await at.reader.reset();
  expect(pauses.at(-1)).toBe(50);
});

describe("a delivered record", () => {
  const NS = 1_700_000_000_123_456_789n;

  test.each([
    ["without a domain", `$JS.ACK.PS_j_3.c.1.5.9.${NS}.4`],
    ["with domain and account", `$JS.ACK.hub.AABB.PS_j_3.c.1.5.9.${NS}.4`],
    ["with domain, account and a token", `$JS.ACK.hub.AABB.PS_j_3.c.1.5.9.${NS}.4.xyz`],
  ])("has the sequence and the time of the stream, %s", async (_how, reply) => {
    await at.start();
    at.line.record(5, Uint8Array.of(1), "s", reply);
    expect(at.delivered).toMatchObject([{ seq: 5, subject: "s", payload: Uint8Array.of(1) }]);
    expect(at.delivered[0]?.timeMs).toBeCloseTo(1_700_000_000_123.456, 2);
  });
});
