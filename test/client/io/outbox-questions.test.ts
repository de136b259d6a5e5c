// Proves what the sender asks the owner of a shard for, and what the reply says of records that are stored in
// several journals of the shard, or were sent before. There is no broker: the test plays broker and host on
// a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { encodeAnswers, encodeError, PserverError } from "../../../src/protocol/index.ts";
import type { FakeWire, Published } from "../../support/fake-wire.ts";
import {
  ack,
  answer,
  applied,
  deadline,
  header,
  settle,
  setUp,
  update,
  updates,
  watch,
} from "./outbox-rig.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function questions(wire: FakeWire): Published[] {
  return wire.published.filter(({ subject }) => subject.endsWith(".outcome"));
}

/** Replies to the last question with an error. */
function refuse(wire: FakeWire, error: PserverError): void {
  wire.deliver(questions(wire).at(-1)?.reply ?? "", encodeError(error));
}

describe("a question for outcomes", () => {
  test("is about those, too, that would be due within 200 ms, and no others", async () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 3), { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    await vi.advanceTimersByTimeAsync(150);
    ack(wire, wire.published[1], 2);
    await vi.advanceTimersByTimeAsync(350);
    ack(wire, wire.published[2], 3);
    await vi.advanceTimersByTimeAsync(600);
    expect(questions(wire).map((asked) => header(asked)["numbers"])).toEqual([[1, 2]]);
  });

  test("is about one journal, the oldest, up to the highest position of its records", async () => {
    const { wire, sender } = setUp();
    watch(sender.send(updates(0, 4), { deadline: deadline() }));
    ack(wire, wire.published[0], 950, "PS_j_0_2");
    ack(wire, wire.published[1], 9);
    ack(wire, wire.published[2], 7);
    ack(wire, wire.published[3], 951, "PS_j_0_2");
    await vi.advanceTimersByTimeAsync(1_100);
    expect(questions(wire).map(header)).toMatchObject([{ numbers: [2, 3], generation: 1, seq: 9 }]);
    answer(wire, [applied(2), applied(3)]);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(header(questions(wire)[1])).toMatchObject({ numbers: [1, 4], generation: 2, seq: 951 });
  });

  test("that is answered with BUSY is asked again after the time that this names", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(questions(wire)).toHaveLength(1);
    refuse(wire, new PserverError("BUSY", "too many", { expected: 1, retryAfterMs: 3_000 }));
    await vi.advanceTimersByTimeAsync(2_900);
    expect(questions(wire)).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(questions(wire)).toHaveLength(2);
  });

  test("that finds the session ended, ends it", async () => {
    const { wire, sender, ended } = setUp();
    watch(sender.send([update(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    await vi.advanceTimersByTimeAsync(1_100);
    refuse(wire, new PserverError("REJOIN", "over", { received: 5 }));
    expect(ended.map(({ code }) => code)).toEqual(["REJOIN"]);
  });
});

test("a damaged answer is as good as a lost one: the outcome is asked for", async () => {
  const { wire, sender } = setUp();
  const call = watch(sender.send([update(0)], { deadline: deadline() }));
  ack(wire, wire.published[0], 1);
  wire.deliver(`${wire.inbox}.applied`, Uint8Array.of(0x80, 1, 2));
  await vi.advanceTimersByTimeAsync(1_100);
  expect(call.state).toBe("pending");
  expect(header(questions(wire)[0])).toMatchObject({ numbers: [1] });
});

test("a journal that was replaced leaves alone the records that the new one holds", async () => {
  const { wire, sender } = setUp();
  const old = watch(sender.send([update(0)], { deadline: deadline() }));
  const fresh = watch(sender.send([update(0)], { deadline: deadline() }));
  ack(wire, wire.published[0], 9);
  ack(wire, wire.published[1], 1, "PS_j_0_2");
  await vi.advanceTimersByTimeAsync(1_100);
  const expected = { generation: 2, seq: 1 };
  refuse(wire, new PserverError("JOURNAL_REPLACED", "replaced", { expected }));
  await settle();
  expect(old.error).toMatchObject({ code: "JOURNAL_REPLACED", details: { unknown: [{ n: 1 }] } });
  expect(fresh.state).toBe("pending");
});

test("of several losses the first is the error of the call", async () => {
  const { wire, sender } = setUp();
  const call = watch(sender.send([update(0), update(1)], { deadline: deadline() }));
  ack(wire, wire.published[0], 9);
  ack(wire, wire.published[1], 9, "PS_j_1");
  await vi.advanceTimersByTimeAsync(1_100);
  const [first, second] = questions(wire).map(({ reply }) => reply);
  const expected = { generation: 2, seq: 1 };
  const replaced = new PserverError("JOURNAL_REPLACED", "replaced", { expected });
  wire.deliver(first ?? "", encodeError(replaced));
  wire.deliver(second ?? "", encodeError(new PserverError("JOURNAL_LOST", "gone")));
  await settle();
  expect(call.error).toMatchObject({ code: "JOURNAL_REPLACED" });
  expect(call.error?.details["unknown"]).toHaveLength(2);
});

describe("an outcome says nothing of an earlier copy of its record", () => {
  test("if it was asked for: REJOIN leaves the record unknown", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    await vi.advanceTimersByTimeAsync(1_100);
    const outcomes = [{ n: 1, seq: 1, version: 0, code: "REJOIN" as const }];
    const answers = { shard: 0, generation: 1, session: 5, outcomes };
    wire.deliver(questions(wire)[0]?.reply ?? "", encodeAnswers(answers));
    sender.pause();
    sender.start(6);
    await settle();
    expect(call.error).toMatchObject({ code: "OUTCOME_UNKNOWN", details: { unknown: [{ n: 1 }] } });
  });

  test("if it is that the number is settled", async () => {
    const { wire, sender, ended } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "SETTLED" }]);
    await settle();
    expect(call.error).toMatchObject({ code: "SETTLED", details: { unknown: [{ n: 1 }] } });
    expect(ended).toEqual([]);
  });
});
