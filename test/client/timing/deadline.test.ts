// Proves that a call ends once, for the first reason, and that everything that waits in it ends too.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Calls, Deadline } from "../../../src/client/calls/calls.ts";
import { PserverError } from "../../../src/protocol/errors.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe("Deadline", () => {
  test("ends waiting with TIMEOUT, naming the call and its time", async () => {
    const deadline = Deadline.start("pull", { timeoutMs: 100 });
    const results = Promise.allSettled([deadline.sleep(500), deadline.race(new Promise(() => {}))]);
    await vi.advanceTimersByTimeAsync(100);
    for (const result of await results) {
      expect(result).toMatchObject({
        status: "rejected",
        reason: { code: "TIMEOUT", message: "pull: not finished within 100 ms" },
      });
    }
    expect(deadline.remainingMs).toBe(0);
    await expect(deadline.sleep(1)).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(vi.getTimerCount()).toBe(0);
  });

  test("with progress ends later unless its caller has set its time", async () => {
    const set = Deadline.start("pull", { timeoutMs: 1_000 });
    const patient = Deadline.start("pull", {}, 1_000);
    for (let i = 0; i < 5; i++) {
      await vi.advanceTimersByTimeAsync(900);
      set.progressed();
      patient.progressed();
      expect(patient.remainingMs).toBe(1_000);
    }
    expect([set.ended?.code, patient.ended]).toEqual(["TIMEOUT", undefined]);
    await vi.advanceTimersByTimeAsync(1_001);
    expect(patient.ended?.message).toBe("pull: no progress within 1000 ms");
    expect(vi.getTimerCount()).toBe(0);
  });

  test("an abort comes first or not at all, and keeps the caller's reason", async () => {
    const abort = new AbortController();
    const deadline = Deadline.start("push", { signal: abort.signal });
    const sleeping = expect(deadline.sleep(1_000)).rejects.toMatchObject({
      code: "ABORTED",
      cause: "enough",
    });
    abort.abort("enough");
    await sleeping;
    expect(() => Deadline.start("push", { signal: abort.signal })).toThrow("aborted");
    expect(vi.getTimerCount()).toBe(0);
  });

  test("ends once, for the first reason", async () => {
    const deadline = Deadline.start("push", { timeoutMs: 100 });
    const heard: string[] = [];
    deadline.onEnd(({ code }) => heard.push(code));
    deadline.end(new PserverError("SUPERSEDED", "newer"));
    deadline.end(new PserverError("CLOSED", "later"));
    await vi.advanceTimersByTimeAsync(200);
    expect(deadline.ended?.code).toBe("SUPERSEDED");
    deadline.onEnd(({ code }) => heard.push(`then ${code}`));
    expect(heard).toEqual(["SUPERSEDED", "then SUPERSEDED"]);
    await expect(deadline.race(new Promise(() => {}))).rejects.toMatchObject({
      code: "SUPERSEDED",
    });
  });

  test("ends by an abort or by its time, whichever comes first, and not again", async () => {
    for (const abortsAfterMs of [50, 150]) {
      const abort = new AbortController();
      const deadline = Deadline.start("push", { timeoutMs: 100, signal: abort.signal });
      setTimeout(() => abort.abort("enough"), abortsAfterMs);
      await vi.advanceTimersByTimeAsync(200);
      expect(deadline.ended?.code).toBe(abortsAfterMs < 100 ? "ABORTED" : "TIMEOUT");
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  test("allows a wait that fits into its time, or that would say what else ended the call", () => {
    const deadline = Deadline.start("pull", { timeoutMs: 100 });
    expect(deadline.allows(99)).toBe(true);
    expect(deadline.allows(100)).toBe(false);
    const superseded = Deadline.start("pull", { timeoutMs: 100 });
    superseded.end(new PserverError("SUPERSEDED", "newer"));
    expect(superseded.allows(1_000)).toBe(true);
    vi.advanceTimersByTime(100);
    expect(deadline.allows(0)).toBe(false);
  });

  test.each([0, -1, Number.NaN, 2 ** 31])("refuses a time of %d ms", (timeoutMs) => {
    expect(() => Deadline.start("x", { timeoutMs })).toThrow(
      expect.objectContaining({ code: "BAD_VALUE" }),
    );
  });
});

describe("Calls", () => {
  test("all calls end with the client, and later ones get the same error", async () => {
    const calls = new Calls();
    const running = expect(
      calls.run("a", {}, (deadline) => deadline.sleep(10_000)),
    ).rejects.toMatchObject({ code: "SUPERSEDED" });
    calls.fail(new PserverError("SUPERSEDED", "newer"));
    calls.fail(new PserverError("CLOSED", "later"));
    await running;
    await expect(calls.run("b", {}, async () => 1)).rejects.toMatchObject({ code: "SUPERSEDED" });
  });

  test("close waits for running calls, but not for ever", async () => {
    const calls = new Calls();
    const short = calls.run("short", {}, (deadline) => deadline.sleep(50));
    const long = expect(
      calls.run("long", {}, (deadline) => deadline.sleep(20_000)),
    ).rejects.toMatchObject({ code: "CLOSED" });
    const closing = calls.close(Deadline.start("close", { timeoutMs: 1_000 }));
    await expect(calls.run("late", {}, async () => 1)).rejects.toMatchObject({ code: "CLOSED" });
    await vi.advanceTimersByTimeAsync(1_000);
    await Promise.all([short, long, closing]);
    expect(vi.getTimerCount()).toBe(0);
  });
});
