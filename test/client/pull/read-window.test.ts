// Proves how many bytes of reads are under way at most, which request is next, and that a shard that refuses its requests
// keeps neither those to others waiting nor gets more than it has.
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { type ReadPlace, ReadWindow } from "../../../src/client/pull/read-window.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function deadline(timeoutMs?: number): Deadline {
  const made = Deadline.start("pull", timeoutMs === undefined ? {} : { timeoutMs });
  onTestFinished(() => made.dispose());
  return made;
}

/** Requests that enter a window of 10 bytes, in order: shard and bytes of each. */
function enterAll(requests: readonly (readonly [shard: number, bytes: number])[]): {
  window: ReadWindow;
  admitted: number[];
  places: ReadPlace[];
} {
  const window = new ReadWindow(() => 10);
  const [admitted, places]: [number[], ReadPlace[]] = [[], []];
  requests.forEach(([shard, bytes], i) => {
    void window.enter(shard, bytes, deadline()).then((place) => {
      admitted.push(i);
      places[i] = place;
    });
  });
  return { window, admitted, places };
}

async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

test("admits in order, keeps its bound, and lets something larger go alone", async () => {
  const { window, admitted, places } = enterAll([6, 4, 1, 25, 3].map((bytes) => [0, bytes]));
  await settle();
  expect(admitted).toEqual([0, 1]);
  places[0]?.leave();
  await settle();
  expect(admitted).toEqual([0, 1, 2]);
  places[1]?.leave();
  places[2]?.leave();
  await settle();
  expect(admitted).toEqual([0, 1, 2, 3]);
  places[3]?.leave();
  await settle();
  expect(admitted).toEqual([0, 1, 2, 3, 4]);
  expect(window.bytes).toBe(3);
});

test("what is refused makes place for other shards, and those of its own shard wait for it", async () => {
  const { window, admitted, places } = enterAll([
    [0, 8],
    [0, 8],
    [1, 8],
    [0, 1],
    [1, 2],
  ]);
  await settle();
  expect(admitted).toEqual([0]);
  places[0]?.refused();
  places[0]?.refused();
  await settle();
  expect(admitted).toEqual([0, 2, 4]);
  expect(window.bytes).toBe(10);
  places[0]?.leave();
  await settle();
  expect(admitted).toEqual([0, 2, 4]);
  places[2]?.leave();
  await settle();
  expect(admitted).toEqual([0, 2, 4, 1]);
  expect(window.bytes).toBe(10);
});

test("a call that waits makes progress whenever another one has read something", async () => {
  const window = new ReadWindow(() => 10);
  const patient = Deadline.start("pull", {}, 1_000);
  const places: ReadPlace[] = [];
  for (let i = 0; i < 3; i++) places.push(await window.enter(0, 3, patient));
  const waiting = window.enter(0, 9, patient);
  for (const place of places) {
    await vi.advanceTimersByTimeAsync(900);
    place.leave();
  }
  await waiting;
  patient.dispose();
});

test("at its timeout a call that waits says what keeps its other requests from being answered", async () => {
  const window = new ReadWindow(() => 10);
  const hasty = deadline(5);
  await window.enter(0, 8, hasty);
  const waiting = expect(window.enter(0, 9, hasty)).rejects.toMatchObject({
    code: "NO_MEMORY",
    message: "pull: not finished within 5 ms; last: too large",
  });
  hasty.obstacle = () => new PserverError("NO_MEMORY", "too large");
  await vi.advanceTimersByTimeAsync(5);
  await waiting;
});

test("a call that ends while it waits takes nothing and blocks nobody", async () => {
  const window = new ReadWindow(() => 10);
  const patient = deadline();
  await window.enter(0, 8, patient);
  const gone = expect(window.enter(0, 9, deadline(5))).rejects.toMatchObject({ code: "TIMEOUT" });
  const next = window.enter(0, 2, patient);
  await vi.advanceTimersByTimeAsync(5);
  await Promise.all([gone, next]);
  expect(window.bytes).toBe(10);
});
