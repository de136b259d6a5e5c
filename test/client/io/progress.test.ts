// Proves when an update call without a timeout of its own ends: after 30 s in which none of its updates came nearer to
// the broker or got its fate, and not before, however slow the link is. The test plays broker and host on a fake
// connection, with a fake clock.
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Deadline } from "../../../src/client/calls/calls.ts";
import { ack, answer, applied, MIB, setUp, update, updates, watch } from "./outbox-rig.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** The deadline of a call whose caller has set no timeout. */
function patient(): Deadline {
  const made = Deadline.start("push");
  onTestFinished(() => made.dispose());
  return made;
}

test("it goes on while the broker stores its updates, or those before them, and while outcomes come", async () => {
  const { wire, sender } = setUp();
  const call = watch(sender.send(updates(0, 10, MIB / 2), { deadline: patient() }));
  const behind = watch(sender.send([update(1)], { deadline: patient() }));
  wire.holdsPings = true;
  for (let i = 0; i < 10; i++) {
    await vi.advanceTimersByTimeAsync(20_000);
    ack(wire, wire.published.filter(({ subject }) => subject.startsWith("log.0"))[i], i + 1);
  }
  for (let i = 0; i < 10; i++) {
    await vi.advanceTimersByTimeAsync(20_000);
    if (i < 9) answer(wire, [applied(i + 1)]);
  }
  expect([call.state, behind.error?.code]).toEqual(["pending", "OUTCOME_UNKNOWN"]);
  answer(wire, [applied(10)]);
  await vi.advanceTimersByTimeAsync(0);
  expect(call.state).toBe("done");
});

test("it goes on while bytes leave and its update is still to be stored, and not after that", async () => {
  const { wire, sender } = setUp();
  const call = watch(sender.send([update(0, 0, MIB)], { deadline: patient() }));
  wire.holdsPings = true;
  for (let i = 0; i < 10; i++) {
    wire.leftBytes += 64 * 1024;
    await vi.advanceTimersByTimeAsync(20_000);
  }
  expect(call.state).toBe("pending");
  ack(wire, wire.published[0], 1);
  for (let i = 0; i < 2; i++) {
    wire.leftBytes += 64 * 1024;
    await vi.advanceTimersByTimeAsync(20_000);
  }
  expect(call.error?.code).toBe("OUTCOME_UNKNOWN");
});

test("it ends after 30 s in which nothing leaves and nothing comes", async () => {
  const { sender } = setUp();
  const call = watch(sender.send([update(0)], { deadline: patient() }));
  await vi.advanceTimersByTimeAsync(29_000);
  expect(call.state).toBe("pending");
  await vi.advanceTimersByTimeAsync(1_200);
  expect(call.error).toMatchObject({
    message: expect.stringContaining("no progress within 30000 ms"),
  });
});
