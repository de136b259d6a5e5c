// Proves when a request is sent again and when it is not, and with which error it ends. There is no broker:
// the test plays the hosts on a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { type Ask, MORE, Requests } from "../../../src/client/wire/wire.ts";
import {
  encodeError,
  encodeMessage,
  type Fields,
  PserverError,
} from "../../../src/protocol/index.ts";
import { FakeWire } from "../../support/fake-wire.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function deadline(timeoutMs = 30_000): Deadline {
  const made = Deadline.start("call", { timeoutMs });
  onTestFinished(() => made.dispose());
  return made;
}

/** A request under way, and the connection that its answers come from. */
function asked(more: Partial<Ask<Fields>> = {}): {
  wire: FakeWire;
  requests: Requests;
  answer: Promise<Fields>;
} {
  const wire = new FakeWire();
  const requests = Requests.open(wire, true);
  const answer = requests.ask({
    subject: "asked",
    body: () => encodeMessage({}),
    read: ({ fields }) => fields,
    deadline: deadline(),
    nobody: () => new PserverError("NO_OWNER", "nobody"),
    ...more,
  });
  answer.catch(() => {});
  return { wire, requests, answer };
}

/** Answers the first copy of a request with an error that passes, after which to wait so long. */
function delay(wire: FakeWire, retryAfterMs = 0): void {
  const error = new PserverError("BUSY", "later", { expected: 1, retryAfterMs });
  wire.deliver(wire.published[0]?.reply ?? "", encodeError(error));
}

async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
}

describe("a request without an answer", () => {
  test("is repeated 1 s, 2 s, then every 4 s after the broker has read it", async () => {
    const { wire } = asked();
    const startedMs = performance.now();
    const timesMs: number[] = [];
    for (let spentMs = 0; spentMs < 16_000; spentMs += 100) {
      await pass(100);
      if (wire.published.length > timesMs.length + 1) timesMs.push(performance.now() - startedMs);
    }
    expect(timesMs.map((time, i) => time - (timesMs[i - 1] ?? 0))).toEqual([
      1_100, 2_100, 4_100, 4_100, 4_100,
    ]);
  });

  test("is not repeated while it, or its answer, may be on a slow link", async () => {
    const { wire } = asked({ deadline: deadline(600_000) });
    wire.holdsPings = true;
    await pass(120_000);
    expect(wire.published).toHaveLength(1);
    // It is read now, and answered a second later, behind megabytes.
    wire.answerPings();
    await pass(120_000);
    expect(wire.published).toHaveLength(1);
    wire.answerPings();
    await pass(0);
    expect(wire.published).toHaveLength(2);
  });

  test("is not repeated by a PING that was sent before it", async () => {
    const { wire, requests } = asked();
    wire.holdsPings = true;
    await pass(100);
    const other = { subject: "other", body: () => encodeMessage({}), deadline: deadline() };
    const nobody = (): PserverError => new PserverError("NO_OWNER", "nobody");
    requests.ask({ ...other, read: ({ fields }) => fields, nobody }).catch(() => {});
    await pass(5_000);
    wire.answerPings();
    await pass(1_050);
    wire.answerPings();
    await pass(50);
    expect(wire.published.filter(({ subject }) => subject === "other")).toHaveLength(1);
  });

  test("is not repeated if that would do something again", async () => {
    const { wire } = asked({ repeat: false });
    await pass(20_000);
    expect(wire.published).toHaveLength(1);
  });

  test("is not sent at all once its call has ended", async () => {
    const over = deadline(100);
    await pass(100);
    const { wire, answer } = asked({ deadline: over });
    await expect(answer).rejects.toMatchObject({ code: "TIMEOUT" });
    expect(wire.published).toEqual([]);
  });
});

describe("a request that is answered with an error that passes", () => {
  test("is asked again after the time that the error names, and not before", async () => {
    const { wire } = asked();
    await pass(900);
    delay(wire, 3_000);
    await pass(2_900);
    expect(wire.published).toHaveLength(1);
    await pass(100);
    expect(wire.published).toHaveLength(2);
  });

  test("is asked again once, after the time that the last error names", async () => {
    const { wire } = asked();
    delay(wire, 500);
    delay(wire, 2_000);
    await pass(1_900);
    expect(wire.published).toHaveLength(1);
    await pass(100);
    expect(wire.published).toHaveLength(2);
  });

  test("is asked again after a reconnect at once, and then not after the pause, too", async () => {
    const { wire } = asked();
    delay(wire, 500);
    wire.disconnect();
    wire.reconnect();
    expect(wire.published).toHaveLength(2);
    await pass(900);
    expect(wire.published).toHaveLength(2);
  });

  test("is asked again after pauses that grow from 50 ms to 500 ms, less up to a quarter", async () => {
    const { wire } = asked();
    for (const pauseMs of [50, 100, 200, 400, 500, 500]) {
      const sent = wire.published.length;
      delay(wire);
      // Fake timers leave out fractions of a millisecond.
      await pass(0.7 * pauseMs);
      expect(wire.published).toHaveLength(sent);
      await pass(0.3 * pauseMs);
      expect(wire.published).toHaveLength(sent + 1);
    }
  });

  test("is done with the first answer, also of an earlier copy: nothing is sent then", async () => {
    const { wire, answer } = asked();
    delay(wire, 500);
    wire.deliver(wire.published[0]?.reply ?? "", encodeMessage({ a: 1 }));
    expect(await answer).toEqual({ a: 1 });
    await pass(10_000);
    expect(wire.published).toHaveLength(1);
  });
});

describe("a call without a timeout of its own", () => {
  /** A request of such a call, which may wait 30 s without progress. */
  function patient(more: Partial<Ask<Fields>> = {}): ReturnType<typeof asked> & { over: Deadline } {
    const over = Deadline.start("call");
    onTestFinished(() => over.dispose());
    return { ...asked({ deadline: over, ...more }), over };
  }

  test("goes on while bytes come that may be of its answer", async () => {
    const { wire, over } = patient();
    for (let i = 0; i < 10; i++) {
      wire.receivedBytes += 16 * 1024;
      await pass(20_000);
    }
    expect(over.ended).toBeUndefined();
    await pass(30_100);
    expect(over.ended?.code).toBe("TIMEOUT");
  });

  test("ends though a few bytes come, as PINGs and their answers do", async () => {
    const { wire, over } = patient();
    for (let i = 0; i < 3; i++) {
      wire.receivedBytes += 4 * 1024;
      await pass(10_000);
    }
    expect(over.ended?.code).toBe("TIMEOUT");
  });

  test("goes on while bytes leave that were sent before its request", async () => {
    const { wire, over } = patient();
    wire.holdsPings = true;
    for (let i = 0; i < 3; i++) {
      wire.leftBytes += 64 * 1024;
      await pass(20_000);
    }
    expect(over.ended).toBeUndefined();
    wire.holdsPings = false;
    wire.answerPings();
    await pass(29_000);
    wire.leftBytes += 64 * 1024;
    await pass(2_000);
    expect(over.ended?.code).toBe("TIMEOUT");
  });

  test("ends though bytes come, if a host has answered with an error and with nothing since", async () => {
    const { wire, over } = patient();
    for (let i = 0; i < 310; i++) {
      delay(wire);
      wire.receivedBytes += 16 * 1024;
      await pass(100);
    }
    expect(over.ended?.code).toBe("TIMEOUT");
  });

  test("goes on with each message of an answer in several", async () => {
    const { wire, over } = patient({ read: () => MORE });
    for (let i = 0; i < 3; i++) {
      wire.deliver(wire.published[0]?.reply ?? "", encodeMessage({}));
      await pass(29_000);
    }
    expect(over.ended).toBeUndefined();
  });
});

test("a refusal to publish fails the requests to its subject alone", async () => {
  const { wire, requests, answer } = asked();
  const other = requests.ask({
    subject: "other",
    body: () => encodeMessage({}),
    read: ({ fields }) => fields,
    deadline: deadline(),
    nobody: () => new PserverError("NO_OWNER", "nobody"),
  });
  wire.deny("asked", new PserverError("DENIED", "no"));
  await expect(answer).rejects.toMatchObject({ code: "DENIED" });
  wire.deliver(wire.published[1]?.reply ?? "", encodeMessage({ b: 2 }));
  expect(await other).toEqual({ b: 2 });
});

test("to tell something does nothing once the connection is closed, and fails otherwise", () => {
  const { wire, requests } = asked();
  const refuse = (code: "CLOSED" | "TOO_LARGE"): void => {
    vi.spyOn(wire, "publish").mockImplementationOnce(() => {
      throw new PserverError(code, "no");
    });
  };
  refuse("CLOSED");
  requests.tell("told", encodeMessage({}));
  refuse("TOO_LARGE");
  expect(() => requests.tell("told", encodeMessage({}))).toThrow(
    expect.objectContaining({ code: "TOO_LARGE" }),
  );
});
