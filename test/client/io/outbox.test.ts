// Proves what the sender promises about outcomes: which answers count, when they are asked for, and what
// becomes of them when a journal or shard is lost. There is no broker:
// the test plays broker and host on a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  ERROR_CODES,
  encodeAnswers,
  encodeError,
  type Outcome,
  PserverError,
} from "../../../src/protocol/index.ts";
import {
  ack,
  answer,
  applied,
  deadline,
  header,
  largeUpdate,
  MIB,
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

describe("outcomes", () => {
  test("a call is done when all block updates have answers, in any order, with or without PubAcks", async () => {
    const { wire, sender, positions } = setUp();
    const call = watch(sender.send([update(0), update(1), update(0, 1)], { deadline: deadline() }));
    expect(wire.published.map(({ subject }) => subject)).toEqual(["log.0.0", "log.1.0", "log.0.1"]);
    expect(wire.published.map((p) => header(p)["n"])).toEqual([1, 1, 2]);
    expect(header(wire.published[0])["reply"]).toBe("_INBOX_j.t.life.applied");
    answer(wire, [applied(2)]);
    answer(wire, [applied(1)], 1);
    ack(wire, wire.published[0], 7);
    await settle();
    expect(call.state).toBe("pending");
    answer(wire, [applied(1)]);
    await settle();
    expect(call.state).toBe("done");
    expect(positions.get(0)).toEqual({ generation: 1, seq: 7 });
    expect(sender.inFlightBytes).toBe(0);
  });

  test("the position in an answer is noted, though the PubAck is still to come", () => {
    const { wire, sender, positions } = setUp();
    watch(sender.send(updates(0, 2), { deadline: deadline() }));
    answer(wire, [
      { n: 1, seq: 7, version: 1 },
      { n: 2, seq: 9, version: 0, code: "STALE_EPOCH" },
    ]);
    expect(positions.get(0)).toEqual({ generation: 1, seq: 9 });
  });

  test("the memory of a message is used again after its PubAck, or its outcome if that is faster", async () => {
    const { wire, sender } = setUp();
    const taken: ArrayBufferLike[] = [];
    const large = largeUpdate(taken);
    for (const [i, isFaster] of [false, true, false].entries()) {
      const done = sender.send([large], { deadline: deadline() });
      const published = wire.published[i];
      if (!isFaster) ack(wire, published, i + 1);
      answer(wire, [applied(i + 1)]);
      if (isFaster) ack(wire, published, i + 1);
      await done;
    }
    expect(new Set(taken).size).toBe(1);
    expect(taken).toHaveLength(3);
  });

  test("block updates that come too late for their step are counted if the call says so, else rejected", async () => {
    const { wire, sender } = setUp();
    const late = (n: number): Outcome => ({ n, seq: n, version: 1, code: "LATE" });
    const counted = sender.send(updates(0, 3), { deadline: deadline(), countsLate: true });
    answer(wire, [late(1), applied(2), late(3)]);
    expect(await counted).toMatchObject({ late: 2 });
    const refused = watch(sender.send(updates(0, 2), { deadline: deadline() }));
    answer(wire, [applied(4), late(5)]);
    await settle();
    expect(refused.error).toMatchObject({ code: "LATE", details: { parameter: "p", block: 1 } });
  });

  test("the first answer counts; answers to other sessions and unknown numbers do not", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    answer(wire, [{ n: 1, seq: 1, version: 0, code: "STALE_EPOCH" }], 0, 4);
    answer(wire, [applied(9)]);
    answer(wire, [applied(1)]);
    answer(wire, [{ n: 1, seq: 1, version: 0, code: "STALE_EPOCH" }]);
    await settle();
    expect(call.state).toBe("done");
  });

  test("a rejection names the block update and what became of the others", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send(updates(0, 3), { deadline: deadline() }));
    answer(wire, [
      applied(1),
      { n: 2, seq: 2, version: 0, code: "STALE_EPOCH", message: "epoch 2" },
    ]);
    await settle();
    expect(call.state).toBe("pending");
    answer(wire, [applied(3)]);
    await settle();
    expect(call.error).toMatchObject({
      code: "STALE_EPOCH",
      message: expect.stringContaining("p block 1: epoch 2 (other updates of the call: 2 applied"),
      details: { parameter: "p", block: 1, shard: 0, n: 2, trainer: "t" },
    });
    expect(call.error?.details["applied"]).toEqual([
      { parameter: "p", index: 0, shard: 0, n: 1 },
      { parameter: "p", index: 2, shard: 0, n: 3 },
    ]);
  });

  test("a rejection without a text says what its code means", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    answer(wire, [{ n: 1, seq: 1, version: 0, code: "NON_FINITE", message: "" }]);
    await settle();
    expect(call.error?.message).toBe(`p block 0: ${ERROR_CODES.NON_FINITE.meaning}`);
  });

  test("a block that is initialized already counts as applied if the call says so, else is rejected", async () => {
    const { wire, sender } = setUp();
    const present = (n: number): Outcome => ({
      n,
      seq: n,
      version: 1,
      code: "ALREADY_INITIALIZED",
    });
    const counted = sender.send([update(0)], { deadline: deadline(), countsPresent: true });
    const refused = watch(sender.send([update(0)], { deadline: deadline() }));
    answer(wire, [present(1), present(2)]);
    expect(await counted).toMatchObject({ late: 0 });
    await settle();
    expect(refused.error).toMatchObject({ code: "ALREADY_INITIALIZED" });
  });

  test("of several rejections the first is the error of the call", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send(updates(0, 2), { deadline: deadline() }));
    answer(wire, [{ n: 2, seq: 1, version: 0, code: "STALE_EPOCH" }]);
    answer(wire, [{ n: 1, seq: 2, version: 0, code: "NON_FINITE" }]);
    await settle();
    expect(call.error).toMatchObject({ code: "STALE_EPOCH", details: { block: 1 } });
  });

  test("block updates that wait when one is rejected are not sent", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send(updates(0, 5, 3 * MIB), { deadline: deadline() }));
    expect(wire.published).toHaveLength(2);
    answer(wire, [{ n: 1, seq: 1, version: 0, code: "NON_FINITE", message: "" }, applied(2)]);
    await settle();
    expect(wire.published).toHaveLength(2);
    expect(call.error).toMatchObject({ code: "NON_FINITE", details: { unsent: 3 } });
  });

  test("without an answer the outcome is asked for, one question for each shard", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send(updates(0, 3), { deadline: deadline() }));
    ack(wire, wire.published[0], 11);
    ack(wire, wire.published[1], 12);
    await vi.advanceTimersByTimeAsync(900);
    expect(wire.published).toHaveLength(3);
    await vi.advanceTimersByTimeAsync(200);
    const asked = wire.published[3];
    expect(asked?.subject).toBe("ps.j.shard.0.t.outcome");
    expect(header(asked)).toMatchObject({ session: 5, numbers: [1, 2], generation: 1, seq: 12 });
    wire.deliver(
      asked?.reply ?? "",
      encodeAnswers({ shard: 0, generation: 1, session: 5, outcomes: [applied(1), applied(2)] }),
    );
    answer(wire, [applied(3)]);
    await settle();
    expect(call.state).toBe("done");
  });

  test("a question without an owner is asked again soon, one without an answer each second", async () => {
    const { wire, sender } = setUp();
    watch(sender.send([update(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(wire.published).toHaveLength(2);
    wire.deliver(wire.published[1]?.reply ?? "", new Uint8Array(0), true);
    await vi.advanceTimersByTimeAsync(400);
    expect(wire.published).toHaveLength(3);
    wire.deliver(
      wire.published[2]?.reply ?? "",
      encodeError(new PserverError("NOT_OWNER", "moved")),
    );
    await vi.advanceTimersByTimeAsync(400);
    expect(wire.published).toHaveLength(4);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(wire.published).toHaveLength(5);
  });

  test("a journal that was replaced makes records that only the old one held unknown", async () => {
    const { wire, sender, positions } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 9);
    await vi.advanceTimersByTimeAsync(1_100);
    wire.deliver(
      wire.published[1]?.reply ?? "",
      encodeError(
        new PserverError("JOURNAL_REPLACED", "replaced", { expected: { generation: 2, seq: 1 } }),
      ),
    );
    await settle();
    expect(call.error).toMatchObject({
      code: "JOURNAL_REPLACED",
      details: { unknown: [{ n: 1 }] },
    });
    expect(positions.get(0)).toEqual({ generation: 2, seq: 0 });
  });

  test.each([{ generation: 1, seq: 8 }, { generation: 0, seq: 8 }, { seq: 8 }])(
    "a journal that ends too early, at $generation/$seq, fails the records behind its end, and nothing else",
    async (expected) => {
      const { wire, sender } = setUp();
      const kept = watch(sender.send([update(0)], { deadline: deadline() }));
      const lost = watch(sender.send([update(0)], { deadline: deadline() }));
      ack(wire, wire.published[0], 8);
      ack(wire, wire.published[1], 9);
      await vi.advanceTimersByTimeAsync(1_100);
      wire.deliver(
        wire.published[2]?.reply ?? "",
        encodeError(
          new PserverError("JOURNAL_LOST", "record 9 is lost", {
            expected,
            received: { generation: 1, seq: 9 },
          }),
        ),
      );
      await settle();
      expect(lost.error).toMatchObject({ code: "JOURNAL_LOST", details: { unknown: [{ n: 2 }] } });
      expect(kept.state).toBe("pending");
      answer(wire, [applied(1)]);
      await settle();
      expect(kept.state).toBe("done");
    },
  );

  test("a shard that has failed ends all that is stored in it", async () => {
    const { wire, sender } = setUp();
    const calls = [8, 9].map((seq, i) => {
      const call = watch(sender.send([update(0)], { deadline: deadline() }));
      ack(wire, wire.published[i], seq);
      return call;
    });
    await vi.advanceTimersByTimeAsync(1_100);
    wire.deliver(
      wire.published[2]?.reply ?? "",
      encodeError(new PserverError("JOURNAL_LOST", "gone", { shard: 0, from: 3, to: 9 })),
    );
    await settle();
    for (const call of calls) expect(call.error).toMatchObject({ code: "JOURNAL_LOST" });
  });

  test("`stored` is done with the PubAck, and the number stays open until its outcome", async () => {
    const { wire, sender } = setUp();
    const call = watch(sender.send([update(0)], { deadline: deadline(), stored: true }));
    ack(wire, wire.published[0], 1);
    await settle();
    expect(call.state).toBe("done");
    watch(sender.send([update(0)], { deadline: deadline() }));
    expect(header(wire.published[1])).toMatchObject({ n: 2, done: 0 });
    answer(wire, [applied(1)]);
    watch(sender.send([update(0)], { deadline: deadline() }));
    expect(header(wire.published[2])).toMatchObject({ n: 3, done: 1 });
  });
});
