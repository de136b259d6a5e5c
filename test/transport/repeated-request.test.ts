// Proves when a request to JetStream is sent again: each second until an answer comes to any copy, and only after
// the broker has answered a PING that followed the last one; and that its time, and that of a request which is sent once,
// is that for which the broker has it and has no answer on the way. The connection is a list of what was sent, and time
// is faked.
import { type Msg, TimeoutError } from "@nats-io/transport-node";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { requestOnce, requestRepeatedly } from "../../src/transport/repeated-request.ts";

/** A request as it was sent. */
interface Sent {
  readonly atMs: number;
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

function ask(request: typeof requestRepeatedly = requestRepeatedly): Promise<Msg> {
  const connection = {
    request: (_subject: string, _payload: unknown, { timeout = 0 } = {}) =>
      new Promise<Msg>((answer, fail) => {
        const atMs = performance.now() - startedAtMs;
        sent.push({ atMs, answer, fail });
        setTimeout(() => fail(new Error("timeout")), timeout);
      }),
    flush: () =>
      new Promise<void>((come, fail) => {
        pongs.push({ come, fail: () => fail(new Error("lost")) });
      }),
  };
  return request(connection, "s", "p", { timeout: 5_000 });
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

  test.each([requestRepeatedly, requestOnce])("ends once its time is over: %o", async (request) => {
    let error: unknown;
    ask(request).catch((thrown: unknown) => {
      error = thrown;
    });
    await pass(4_900);
    expect(error).toBeUndefined();
    await pass(200);
    expect(error).toBeInstanceOf(TimeoutError);
    const copies = request === requestOnce ? 1 : 5;
    await pass(5_000);
    expect(sent).toHaveLength(copies);
  });

  test.each([requestRepeatedly, requestOnce])(
    "has all its time after its answer was on the way for long: %o",
    async (request) => {
      const asked = ask(request);
      await vi.advanceTimersByTimeAsync(60_000);
      expect([sent.length, pongs.length]).toEqual([1, 1]);
      sent[0]?.answer(ANSWER);
      expect(await asked).toBe(ANSWER);
    },
  );

  test("ends although its broker answers nothing and the connection is lost again and again", async () => {
    const failed = expect(ask()).rejects.toThrow(TimeoutError);
    for (let passed = 0; passed < 5_000; passed += 100) {
      await vi.advanceTimersByTimeAsync(100);
      for (const { fail } of pongs.splice(0)) fail();
    }
    await failed;
    expect(sent).toHaveLength(1);
  });

  test("ends with the first error of a copy", async () => {
    const asked = ask();
    await pass(1_000);
    sent[1]?.fail(new Error("no responders"));
    await expect(asked).rejects.toThrow("no responders");
  });

  test("is sent again once a lost connection is back", async () => {
    const asked = ask();
    await vi.advanceTimersByTimeAsync(1_000);
    pongs.splice(0)[0]?.fail();
    await vi.advanceTimersByTimeAsync(0);
    expect(sent).toHaveLength(1);
    await pass(1_000);
    expect(sent.map(({ atMs }) => atMs)).toEqual([0, 2_000]);
    sent[1]?.answer(ANSWER);
    expect(await asked).toBe(ANSWER);
  });
});
