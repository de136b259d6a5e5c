// Proves when a connection is ended because its broker is silent: a few seconds after nothing came any more, and
// later while bytes that were sent before may be on their way; not while anything arrives, however slowly, nor after
// a pause of this process. The connection is a pair of counters, and time is faked.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SilenceWatch, type Traffic } from "../../src/transport/silence-watch.ts";

const KIB = 1024;

let traffic: Traffic | undefined;
let pings: { readonly answer: () => void; readonly lose: () => void }[];
let endedMs: number[];
let startedMs: number;
let watch: SilenceWatch;

beforeEach(() => {
  vi.useFakeTimers();
  startedMs = performance.now();
  traffic = { receivedBytes: 0, sentBytes: 0 };
  [pings, endedMs] = [[], []];
  watch = new SilenceWatch({
    traffic: () => traffic,
    ping: () =>
      new Promise((answer, lose) => {
        pings.push({ answer: () => answer(undefined), lose: () => lose(new Error("lost")) });
      }),
    end: () => void endedMs.push(performance.now() - startedMs),
  });
});

afterEach(() => {
  watch.stop();
  vi.useRealTimers();
});

/** Lets time pass; each half second `each` happens. */
async function pass(ms: number, each: () => void = () => undefined): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    each();
    await vi.advanceTimersByTimeAsync(500);
  }
}

function count(received: number, sent: number): void {
  const { receivedBytes = 0, sentBytes = 0 } = traffic ?? {};
  traffic = { receivedBytes: receivedBytes + received, sentBytes: sentBytes + sent };
}

const answerAll = (): void => {
  for (const { answer } of pings.splice(0)) answer();
};

test("a connection whose PINGs are answered goes on, whatever else it carries", async () => {
  await pass(60_000, answerAll);
  await pass(60_000, () => {
    answerAll();
    count(10, 10_000 * KIB);
  });
  expect(endedMs).toEqual([]);
});

test("one that falls silent is ended within five seconds, and once", async () => {
  await pass(10_000, answerAll);
  await pass(30_000, () => {
    if (endedMs.length > 0) traffic = undefined;
  });
  expect(endedMs).toHaveLength(1);
  expect(endedMs[0]).toBeLessThanOrEqual(15_000);
});

test("one on which a message arrives slowly goes on, though no PING is answered meanwhile", async () => {
  await pass(60_000, () => count(1, 0));
  expect(endedMs).toEqual([]);
});

test.each([
  [1_024, 3_000 + 4_000],
  [64 * 1_024, 20_000],
])("one that has sent %i KiB since its last answer has longer", async (kib, patienceMs) => {
  await pass(3_000, answerAll);
  count(0, kib * KIB);
  await pass(60_000, () => {
    if (endedMs.length > 0) traffic = undefined;
  });
  const silentMs = (endedMs[0] ?? 0) - 3_000;
  expect(silentMs).toBeGreaterThanOrEqual(patienceMs);
  expect(silentMs).toBeLessThanOrEqual(patienceMs + 3_000);
});

test("what an answer has confirmed is not on its way any more", async () => {
  count(0, 64 * 1_024 * KIB);
  await pass(6_000, answerAll);
  await pass(6_000);
  expect(endedMs).toHaveLength(1);
});

test("a pause of this process is no silence", async () => {
  await pass(3_000);
  vi.spyOn(performance, "now").mockReturnValue(performance.now() + 60_000);
  await vi.advanceTimersByTimeAsync(1_500);
  expect(endedMs).toEqual([]);
  vi.restoreAllMocks();
});

test("while there is no connection nothing is sent, and the next one has its own time", async () => {
  await pass(2_000);
  traffic = undefined;
  for (const { lose } of pings.splice(0)) lose();
  await pass(30_000);
  expect([pings.length, endedMs]).toEqual([0, []]);
  traffic = { receivedBytes: 0, sentBytes: 0 };
  await pass(3_000);
  expect([pings.length, endedMs]).toEqual([1, []]);
});

test("once it is stopped nothing is looked at", async () => {
  watch.stop();
  await pass(30_000);
  expect([pings.length, endedMs, vi.getTimerCount()]).toEqual([0, [], 0]);
});
