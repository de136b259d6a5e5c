// Proves, with runs that only pretend, when something that has ended is started again and when no more:
// how failures in a row count, how long the pauses are, and that a stop wins at every moment.
import { expect, onTestFinished, test, vi } from "vitest";
import { type Ended, type Run, type Supervision, supervise } from "../../src/cli/supervise.ts";
import { PserverError } from "../../src/protocol/errors.ts";

interface Supervised {
  readonly ended: Promise<Ended<number> | undefined>;
  readonly messages: string[];
  readonly pausesMs: number[];
  readonly stop: AbortController;
  readonly starts: () => number;
}

/** Supervises runs that end at once with these codes, and then one that does not; 0 is a good end. */
function supervised(
  codes: readonly (number | "refused")[],
  more: Partial<Supervision<number>> = {},
): Supervised {
  const left = [...codes];
  let starts = -1;
  const start = async (): Promise<Run<number>> => {
    starts += 1;
    const code = left.shift();
    if (code === "refused") throw new PserverError("IO", "no start");
    return { ended: code === undefined ? new Promise(() => {}) : Promise.resolve(code) };
  };
  const messages: string[] = [];
  const pausesMs: number[] = [];
  const stop = new AbortController();
  const ended = start().then((first) =>
    supervise(first, {
      start,
      describe: (code) => (code === 0 ? undefined : `it ended with ${code}`),
      restartsMax: 2,
      signal: stop.signal,
      onMessage: (text) => void messages.push(text),
      pause: async (delayMs) => void pausesMs.push(delayMs),
      ...more,
    }),
  );
  return { ended, messages, pausesMs, stop, starts: () => starts };
}

test("starts again what ended badly, until it ends well", async () => {
  const { ended, messages } = supervised([3, 4, 0]);
  expect(await ended).toMatchObject({ end: 0, restarts: 2, cause: undefined });
  expect(messages).toEqual([
    "it ended with 3; starting it again (1 of 2)",
    "it ended with 4; starting it again (2 of 2)",
  ]);
});

test("gives up after so many times in a row", async () => {
  const { ended, starts } = supervised([3, 4, 5, 0]);
  expect(await ended).toMatchObject({ end: 5, restarts: 2, reason: "it ended with 5" });
  expect(starts()).toBe(2);
  expect(await supervised([3], { restartsMax: 0 }).ended).toMatchObject({ end: 3, restarts: 0 });
});

test("counts starts that fail, and tells the error of the last", async () => {
  const { ended, messages } = supervised([3, "refused", "refused", 0]);
  expect(await ended).toMatchObject({
    end: 3,
    restarts: 2,
    reason: "no start",
    cause: { code: "IO" },
  });
  expect(messages[1]).toBe("no start; starting it again (2 of 2)");
  const again = supervised([3, "refused", 4]);
  expect(await again.ended).toMatchObject({ end: 4, restarts: 2, cause: undefined });
});

test("waits twice as long before each further start, 30 s at most", async () => {
  const { ended, pausesMs } = supervised(Array(9).fill(1), { restartsMax: 8 });
  await ended;
  expect(pausesMs).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
});

test("forgets failures of what ran long", async () => {
  let nowMs = 0;
  const now = vi.spyOn(performance, "now").mockImplementation(() => {
    nowMs += 60_000;
    return nowMs;
  });
  onTestFinished(() => now.mockRestore());
  const { ended, messages } = supervised([1, 1, 1, 1, 0]);
  expect(await ended).toMatchObject({ end: 0, restarts: 4 });
  expect(messages[3]).toBe("it ended with 1; starting it again (1 of 2)");
});

test("starts nothing again after a stop, whether it runs, waits or starts", async () => {
  const running = supervised([3, 0]);
  running.stop.abort();
  expect(await running.ended).toBeUndefined();
  expect([running.starts(), running.messages]).toEqual([0, []]);

  const stop = new AbortController();
  const abort = async (): Promise<never> => {
    stop.abort();
    throw stop.signal.reason;
  };
  const waiting = supervised([3, 0], { signal: stop.signal, pause: abort });
  expect(await waiting.ended).toBeUndefined();
  expect(waiting.starts()).toBe(0);

  const late = new AbortController();
  const refuse = async (): Promise<never> => {
    late.abort();
    throw new PserverError("IO", "no start");
  };
  const starting = supervised([3], { start: refuse, signal: late.signal });
  expect(await starting.ended).toBeUndefined();
  expect(starting.messages).toHaveLength(1);
});
