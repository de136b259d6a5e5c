// Proves when a request to JetStream is sent again: each second until an answer comes to any copy, and only after
// the broker has answered a PING that followed the last one; and that all copies end together. The connection is a
// list of what was sent, and time is faked.
import type { Msg } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { requestRepeatedly } from "../../src/transport/repeated-request.ts";

/** A request as it was sent. */
interface Sent {
  readonly atMs: number;
  readonly timeoutMs: number;
  readonly answer: (message: Msg) => void;
  readonly fail: (error: Error) => void;
}

const ANSWER = { subject: "answer" } as Msg;

let sent: Sent[];
let pongs: { readonly come: () => void; readonly fail: () => void }[];
let startedAtMs: number;

beforeEach(() => {
  vi.useFakeTimers();
  [sent, pongs, startedAtMs] = [[], [], performance.now()];
});

afterEach(() => {
  vi.useRealTimers();
});

function ask(): Promise<Msg> {
  const connection = {
    request: (_subject: string, _payload: unknown, { timeout = 0 } = {}) =>
      new Promise<Msg>((answer, fail) => {
        const atMs = performance.now() - startedAtMs;
        sent.push({ atMs, timeoutMs: timeout, answer, fail });
        setTimeout(() => fail(new Error("timeout")), timeout);
      }),
    flush: () =>
      new Promise<void>((come, fail) => {
        pongs.push({ come, fail: () => fail(new Error("lost")) });
      }),
  };
  return requestRepeatedly(connection, "s", "p", { timeout: 5_000 });
}

/** Lets time pass, and the broker answer PINGs at once. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) {
    await vi.advanceTimersByTimeAsync(100);
    for (const { come } of pongs.splice(0)) come();
  }
}

describe("a request", () => {
  test("that is answered at once is sent once", async () => {
    const asked = ask();
    sent[0]?.answer(ANSWER);
    expect(await asked).toBe(ANSWER);
    await pass(10_000);
    expect(sent).toHaveLength(1);
  });

  test("is sent each second, and the answer to any copy counts", async () => {
    const asked = ask();
    await pass(3_500);
    expect(sent.map(({ atMs }) => atMs)).toEqual([0, 1_000, 2_000, 3_000]);
    sent[1]?.answer(ANSWER);
    expect(await asked).toBe(ANSWER);
    await pass(5_000);
    expect(sent).toHaveLength(4);
  });

  test("is not sent again before the broker has read what was sent", async () => {
    const asked = ask();
    await vi.advanceTimersByTimeAsync(3_000);
    expect([sent.length, pongs.length]).toEqual([1, 1]);
    pongs[0]?.come();
    await vi.advanceTimersByTimeAsync(0);
    expect(sent.map(({ atMs }) => atMs)).toEqual([0, 3_000]);
    sent[1]?.answer(ANSWER);
    expect(await asked).toBe(ANSWER);
  });

  test("ends once its time is over, with all copies", async () => {
    const asked = ask();
    const failed = expect(asked).rejects.toThrow("timeout");
    await pass(5_000);
    await failed;
    for (const { atMs, timeoutMs } of sent) expect(atMs + timeoutMs).toBe(5_000);
    await pass(5_000);
    expect(sent).toHaveLength(5);
  });

  test("ends with the first error of a copy", async () => {
    const asked = ask();
    await pass(1_000);
    sent[1]?.fail(new Error("no responders"));
    await expect(asked).rejects.toThrow("no responders");
  });

  test("is not sent on a connection that was lost: its own end is the answer", async () => {
    const asked = ask();
    await vi.advanceTimersByTimeAsync(1_000);
    pongs[0]?.fail();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(sent).toHaveLength(1);
    sent[0]?.fail(new Error("disconnected"));
    await expect(asked).rejects.toThrow("disconnected");
  });
});
