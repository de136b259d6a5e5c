// Proves what the outbox promises about numbers, windows, repeats and outcomes. There is no broker:
// the test plays broker and host on a fake connection, with a fake clock.
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Piece } from "../../src/client/batch.ts";
import { Deadline } from "../../src/client/deadline.ts";
import { Outbox } from "../../src/client/outbox.ts";
import { Positions } from "../../src/client/positions.ts";
import {
  decodeMessage,
  draftMessage,
  encodeAnswers,
  encodeError,
  encodeMessage,
  type Fields,
  JobSubjects,
  type Outcome,
  PserverError,
  sealMessage,
} from "../../src/protocol/index.ts";
import { FakeWire, type Published } from "../support/fake-wire.ts";

const MIB = 1024 * 1024;
const subjects = new JobSubjects("j");

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function setUp(): {
  wire: FakeWire;
  outbox: Outbox;
  positions: Positions;
  ended: PserverError[];
} {
  const wire = new FakeWire();
  const positions = new Positions();
  const ended: PserverError[] = [];
  const outbox = new Outbox({
    wire,
    subjects,
    trainer: "t",
    positions,
    onSessionEnd: (error) => ended.push(error),
  });
  outbox.start(5);
  onTestFinished(() => outbox.close());
  return { wire, outbox, positions, ended };
}

function piece(shard: number, index = 0, dataBytes = 8): Piece {
  return {
    subject: `log.${shard}.${index}`,
    shard,
    topic: { parameter: "p", index },
    dataBytes,
    draft: (head) => encodeMessage({ ...head }),
  };
}

/** A gradient that names the version it was made from, until it is told to forget it. */
function seeing(version: number): Piece {
  let seen: number | undefined = version;
  return {
    ...piece(0),
    draft: (head) => encodeMessage({ ...head, ...(seen === undefined ? {} : { seen }) }),
    forgetSeen: () => {
      const named = seen !== undefined;
      seen = undefined;
      return named;
    },
  };
}

/** A piece whose message is large enough to get memory that is used again; what it gets goes to `taken`. */
function largePiece(taken: ArrayBufferLike[]): Piece {
  return {
    ...piece(0),
    draft: (head, allocate) => {
      const draft = draftMessage({ ...head }, 100_000, allocate);
      taken.push(draft.bytes.buffer);
      return sealMessage(draft);
    },
  };
}

function pieces(shard: number, count: number, dataBytes?: number): Piece[] {
  return Array.from({ length: count }, (_, index) => piece(shard, index, dataBytes));
}

function deadline(timeoutMs = 30_000, signal?: AbortSignal): Deadline {
  const made = new Deadline("push", signal === undefined ? { timeoutMs } : { timeoutMs, signal });
  onTestFinished(() => made.dispose());
  return made;
}

function head(published: Published | undefined): Fields {
  if (published === undefined) throw new Error("nothing was published");
  return decodeMessage(published.bytes).fields;
}

function ack(
  wire: FakeWire,
  published: Published | undefined,
  seq: number,
  stream = "PS_j_0",
): void {
  if (published === undefined) throw new Error("nothing was published");
  wire.deliver(published.reply, new TextEncoder().encode(JSON.stringify({ stream, seq })));
}

function fail(wire: FakeWire, published: Published | undefined, error: object): void {
  if (published === undefined) throw new Error("nothing was published");
  wire.deliver(published.reply, new TextEncoder().encode(JSON.stringify({ error })));
}

const FULL = { code: 503, err_code: 10077, description: "maximum bytes exceeded" };

function answer(wire: FakeWire, outcomes: Outcome[], shard = 0, session = 5): void {
  wire.deliver(`${wire.inbox}.applied`, encodeAnswers({ shard, generation: 1, session, outcomes }));
}

function applied(n: number): Outcome {
  return { n, seq: n, version: n };
}

/** Whether and how a promise has settled. */
function watch(promise: Promise<unknown>): { state: string; error: PserverError | undefined } {
  const seen: { state: string; error: PserverError | undefined } = {
    state: "pending",
    error: undefined,
  };
  promise.then(
    () => {
      seen.state = "done";
    },
    (error: PserverError) => {
      seen.state = "failed";
      seen.error = error;
    },
  );
  return seen;
}

async function settle(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

describe("outcomes", () => {
  test("a call is done when all pieces have answers, in any order, with or without PubAcks", async () => {
    const { wire, outbox, positions } = setUp();
    const call = watch(outbox.send([piece(0), piece(1), piece(0, 1)], { deadline: deadline() }));
    expect(wire.published.map(({ subject }) => subject)).toEqual(["log.0.0", "log.1.0", "log.0.1"]);
    expect(wire.published.map((p) => head(p)["n"])).toEqual([1, 1, 2]);
    expect(head(wire.published[0])["reply"]).toBe("_INBOX_j.t.life.applied");
    answer(wire, [applied(2)]);
    answer(wire, [applied(1)], 1);
    ack(wire, wire.published[0], 7);
    await settle();
    expect(call.state).toBe("pending");
    answer(wire, [applied(1)]);
    await settle();
    expect(call.state).toBe("done");
    expect(positions.get(0)).toEqual({ generation: 1, seq: 7 });
    expect(outbox.inFlightBytes).toBe(0);
  });

  test("the memory of a message is used again after its PubAck, or its outcome if that is faster", async () => {
    const { wire, outbox } = setUp();
    const taken: ArrayBufferLike[] = [];
    const large = largePiece(taken);
    for (const [i, isFaster] of [false, true, false].entries()) {
      const done = outbox.send([large], { deadline: deadline() });
      const published = wire.published[i];
      if (!isFaster) ack(wire, published, i + 1);
      answer(wire, [applied(i + 1)]);
      if (isFaster) ack(wire, published, i + 1);
      await done;
    }
    expect(new Set(taken).size).toBe(1);
    expect(taken).toHaveLength(3);
  });

  test("pieces that come too late for their step are counted if the call says so, else refused", async () => {
    const { wire, outbox } = setUp();
    const late = (n: number): Outcome => ({ n, seq: n, version: 1, code: "LATE" });
    const counted = outbox.send(pieces(0, 3), { deadline: deadline(), countsLate: true });
    answer(wire, [late(1), applied(2), late(3)]);
    expect(await counted).toEqual({ late: 2 });
    const refused = watch(outbox.send(pieces(0, 2), { deadline: deadline() }));
    answer(wire, [applied(4), late(5)]);
    await settle();
    expect(refused.error).toMatchObject({ code: "LATE", details: { parameter: "p", block: 1 } });
  });

  test("the first answer counts; answers to other sessions and unknown numbers do not", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send([piece(0)], { deadline: deadline() }));
    answer(wire, [{ n: 1, seq: 1, version: 0, code: "STALE_EPOCH" }], 0, 4);
    answer(wire, [applied(9)]);
    answer(wire, [applied(1)]);
    answer(wire, [{ n: 1, seq: 1, version: 0, code: "STALE_EPOCH" }]);
    await settle();
    expect(call.state).toBe("done");
  });

  test("a rejection names the piece and what became of the others", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send(pieces(0, 3), { deadline: deadline() }));
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
      message: expect.stringContaining("p block 1: epoch 2 (other pieces of the call: 2 applied"),
      details: { parameter: "p", block: 1, shard: 0, n: 2, trainer: "t" },
    });
    expect(call.error?.details["applied"]).toEqual([
      { parameter: "p", index: 0, shard: 0, n: 1 },
      { parameter: "p", index: 2, shard: 0, n: 3 },
    ]);
  });

  test("pieces that wait when one is rejected are not sent", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send(pieces(0, 5, 8 * MIB), { deadline: deadline() }));
    expect(wire.published).toHaveLength(2);
    answer(wire, [{ n: 1, seq: 1, version: 0, code: "NON_FINITE", message: "" }, applied(2)]);
    await settle();
    expect(wire.published).toHaveLength(2);
    expect(call.error).toMatchObject({ code: "NON_FINITE", details: { unsent: 3 } });
  });

  test("without an answer the outcome is asked for, one question a shard", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send(pieces(0, 3), { deadline: deadline() }));
    ack(wire, wire.published[0], 11);
    ack(wire, wire.published[1], 12);
    await vi.advanceTimersByTimeAsync(900);
    expect(wire.published).toHaveLength(3);
    await vi.advanceTimersByTimeAsync(200);
    const asked = wire.published[3];
    expect(asked?.subject).toBe("ps.j.shard.0.t.outcome");
    expect(head(asked)).toMatchObject({ session: 5, numbers: [1, 2], generation: 1, seq: 12 });
    wire.deliver(
      asked?.reply ?? "",
      encodeAnswers({ shard: 0, generation: 1, session: 5, outcomes: [applied(1), applied(2)] }),
    );
    answer(wire, [applied(3)]);
    await settle();
    expect(call.state).toBe("done");
  });

  test("a question without an owner is asked again soon, one without an answer each second", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0)], { deadline: deadline() }));
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

  test("a journal that was replaced makes what only the old one held unknown", async () => {
    const { wire, outbox, positions } = setUp();
    const call = watch(outbox.send([piece(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 9);
    await vi.advanceTimersByTimeAsync(1_100);
    wire.deliver(
      wire.published[1]?.reply ?? "",
      encodeError(
        new PserverError("JOURNAL_REPLACED", "replaced", { expected: { generation: 2, seq: 1 } }),
      ),
    );
    await settle();
    expect(call.error).toMatchObject({ code: "JOURNAL_REPLACED", details: { pieces: [{ n: 1 }] } });
    expect(positions.get(0)).toEqual({ generation: 2, seq: 0 });
  });

  test("a journal that ends too early ends what lay behind its end, and nothing else", async () => {
    const { wire, outbox } = setUp();
    const kept = watch(outbox.send([piece(0)], { deadline: deadline() }));
    const lost = watch(outbox.send([piece(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 8);
    ack(wire, wire.published[1], 9);
    await vi.advanceTimersByTimeAsync(1_100);
    wire.deliver(
      wire.published[2]?.reply ?? "",
      encodeError(
        new PserverError("JOURNAL_LOST", "record 9 is lost", {
          expected: { generation: 1, seq: 8 },
          received: { generation: 1, seq: 9 },
        }),
      ),
    );
    await settle();
    expect(lost.error).toMatchObject({ code: "JOURNAL_LOST", details: { pieces: [{ n: 2 }] } });
    expect(kept.state).toBe("pending");
    answer(wire, [applied(1)]);
    await settle();
    expect(kept.state).toBe("done");
  });

  test("a shard that has failed ends all that is stored in it", async () => {
    const { wire, outbox } = setUp();
    const calls = [8, 9].map((seq, i) => {
      const call = watch(outbox.send([piece(0)], { deadline: deadline() }));
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
    const { wire, outbox } = setUp();
    const call = watch(outbox.send([piece(0)], { deadline: deadline(), stored: true }));
    ack(wire, wire.published[0], 1);
    await settle();
    expect(call.state).toBe("done");
    watch(outbox.send([piece(0)], { deadline: deadline() }));
    expect(head(wire.published[1])).toMatchObject({ n: 2, done: 0 });
    answer(wire, [applied(1)]);
    watch(outbox.send([piece(0)], { deadline: deadline() }));
    expect(head(wire.published[2])).toMatchObject({ n: 3, done: 1 });
  });
});

describe("windows", () => {
  test("at most 16 MiB are without a PubAck, and pieces become messages only when admitted", async () => {
    const { wire, outbox } = setUp();
    let drafted = 0;
    const counted = pieces(0, 40, MIB).map((one) => ({
      ...one,
      draft: (h: Parameters<Piece["draft"]>[0]) => {
        drafted += 1;
        return one.draft(h);
      },
    }));
    watch(outbox.send(counted, { deadline: deadline() }));
    expect(drafted).toBe(16);
    expect(outbox.inFlightBytes).toBe(16 * MIB);
    ack(wire, wire.published[0], 1);
    expect(drafted).toBe(17);
    for (let i = 1; i < 17; i++) ack(wire, wire.published[i], i + 1);
    expect(drafted).toBe(33);
    expect(outbox.inFlightBytes).toBe(16 * MIB);
  });

  test("a piece larger than the window goes alone", () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0, 0, 20 * MIB), piece(1)], { deadline: deadline() }));
    expect(wire.published).toHaveLength(1);
    ack(wire, wire.published[0], 1);
    expect(wire.published).toHaveLength(2);
  });

  test("at most 1,024 numbers of a shard are open; other shards go on", () => {
    const { wire, outbox } = setUp();
    watch(outbox.send(pieces(0, 1030), { deadline: deadline() }));
    watch(outbox.send(pieces(1, 3), { deadline: deadline() }));
    expect(wire.published).toHaveLength(1024 + 3);
    // Number 2 has an outcome, but `done` is the contiguous prefix.
    answer(wire, [applied(2)]);
    expect(wire.published).toHaveLength(1024 + 3);
    answer(wire, [applied(1)]);
    expect(wire.published).toHaveLength(1024 + 5);
    expect(head(wire.published.at(-1))).toMatchObject({ n: 1026, done: 2 });
  });

  test("a large piece whose turn it is, is not overtaken by small ones", () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0, 0, 10 * MIB)], { deadline: deadline() }));
    watch(outbox.send([piece(1, 0, 10 * MIB)], { deadline: deadline() }));
    watch(outbox.send(pieces(2, 3, MIB), { deadline: deadline() }));
    expect(wire.published).toHaveLength(1);
    ack(wire, wire.published[0], 1);
    expect(wire.published[1]?.subject).toBe("log.1.0");
  });

  test("a record that was given up leaves its room when its answer comes, or none has for 4 s", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send(pieces(0, 3, MIB), { deadline: deadline(500) }));
    await vi.advanceTimersByTimeAsync(500);
    expect(outbox.inFlightBytes).toBe(3 * MIB);
    fail(wire, wire.published[0], FULL);
    expect(outbox.inFlightBytes).toBe(2 * MIB);
    ack(wire, wire.published[1], 1);
    expect(outbox.inFlightBytes).toBe(MIB);
    watch(outbox.send([piece(1)], { deadline: deadline(), stored: true }));
    await vi.advanceTimersByTimeAsync(3_400);
    expect(outbox.inFlightBytes).toBe(MIB + 8);
    await vi.advanceTimersByTimeAsync(300);
    expect(outbox.inFlightBytes).toBe(8);
    expect(wire.published.filter(({ subject }) => subject.startsWith("log.0"))).toHaveLength(3);
  });

  test("calls wait in order, and shards take turns", () => {
    const { wire, outbox } = setUp();
    watch(outbox.send(pieces(0, 20, MIB), { deadline: deadline() }));
    watch(outbox.send(pieces(1, 2, MIB), { deadline: deadline() }));
    for (let i = 0; i < 4; i++) ack(wire, wire.published[i], i + 1);
    const last = wire.published.slice(16).map(({ subject }) => subject);
    expect(last).toEqual(["log.0.16", "log.1.0", "log.0.17", "log.1.1"]);
  });
});

describe("repeats", () => {
  test("after a reconnect what has no PubAck is sent again, unchanged; what has one is asked for", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send(pieces(0, 2), { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    wire.disconnect();
    watch(outbox.send([piece(0, 9)], { deadline: deadline() }));
    expect(wire.published).toHaveLength(2);
    wire.reconnect();
    expect(wire.published[2]?.bytes).toEqual(wire.published[1]?.bytes);
    expect(wire.published[3]?.subject).toBe("log.0.9");
    await vi.advanceTimersByTimeAsync(100);
    expect(head(wire.published[4])).toMatchObject({ numbers: [1] });
    answer(wire, [applied(1), applied(2)]);
    await settle();
    expect(call.state).toBe("done");
  });

  test("after a reconnect records are repeated in the order in which they were sent", () => {
    const { wire, outbox } = setUp();
    watch(outbox.send(pieces(0, 4), { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    ack(wire, wire.published[2], 3);
    watch(outbox.send([piece(0, 4), piece(0, 5), piece(0, 6)], { deadline: deadline() }));
    wire.disconnect();
    wire.reconnect();
    const again = wire.published.slice(7).map(({ subject }) => subject);
    expect(again).toEqual(["log.0.1", "log.0.3", "log.0.4", "log.0.5", "log.0.6"]);
  });

  test("a PubAck that comes twice is not taken for that of a later record", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    watch(outbox.send([piece(0, 1)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    expect(outbox.inFlightBytes).toBe(8);
    await vi.advanceTimersByTimeAsync(2_200);
    const again = wire.published.slice(2).map(({ subject }) => subject);
    expect(again).toContain("log.0.1");
    expect(again).not.toContain("log.0.0");
  });

  test("a missing PubAck repeats the record, until there is one and no longer", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0)], { deadline: deadline() }));
    await vi.advanceTimersByTimeAsync(1_900);
    expect(wire.published).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(300);
    expect(wire.published).toHaveLength(2);
    expect(wire.published[1]?.bytes).toEqual(wire.published[0]?.bytes);
    ack(wire, wire.published[1], 3);
    await vi.advanceTimersByTimeAsync(10_000);
    const again = wire.published.slice(2).filter(({ subject }) => subject === "log.0.0");
    expect(again).toEqual([]);
  });

  test("a slow link on which PubAcks still arrive is not filled with repeats", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send(pieces(0, 10), { deadline: deadline() }));
    for (let i = 0; i < 10; i++) {
      await vi.advanceTimersByTimeAsync(1_500);
      ack(wire, wire.published[i], i + 1);
      answer(wire, [applied(i + 1)]);
    }
    expect(wire.published).toHaveLength(10);
  });

  /** Has a PubAck come every half second, of shard 9, so that silence says of nothing that it is lost. */
  async function passWithTraffic(wire: FakeWire, outbox: Outbox, ms: number): Promise<void> {
    for (let spentMs = 0; spentMs < ms; spentMs += 500) {
      watch(outbox.send([piece(9)], { deadline: deadline(), stored: true }));
      ack(wire, wire.published.at(-1), 1 + spentMs, "PS_j_9");
      await vi.advanceTimersByTimeAsync(500);
    }
  }

  function sendings(wire: FakeWire, subject: string): Published[] {
    return wire.published.filter((published) => published.subject === subject);
  }

  test("a record that later ones of its shard have overtaken is sent again", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0), piece(0, 1), piece(1)], { deadline: deadline() }));
    ack(wire, sendings(wire, "log.0.1")[0], 1);
    await passWithTraffic(wire, outbox, 1_500);
    expect(sendings(wire, "log.0.0")).toHaveLength(1);
    await passWithTraffic(wire, outbox, 1_000);
    const [first, second] = sendings(wire, "log.0.0");
    expect(second?.bytes).toEqual(first?.bytes);
    // Nothing of its own shard has overtaken this one: its PubAck may be on its way.
    expect(sendings(wire, "log.1.0")).toHaveLength(1);
    // The repeat has been overtaken by nothing.
    await passWithTraffic(wire, outbox, 10_000);
    expect(sendings(wire, "log.0.0")).toHaveLength(2);
  });

  test("PubAcks of a shard that come out of order overtake all the same", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send(pieces(0, 3), { deadline: deadline() }));
    ack(wire, wire.published[2], 2);
    ack(wire, wire.published[0], 1);
    await passWithTraffic(wire, outbox, 2_500);
    expect(sendings(wire, "log.0.1")).toHaveLength(2);
  });

  test("a record without a PubAck is sent again after 2 s, then 4, 6, 8 and 8 s", async () => {
    const { wire, outbox } = setUp();
    const startedMs = performance.now();
    const timesMs: number[] = [];
    watch(outbox.send([piece(0)], { deadline: deadline(60_000) }));
    while (timesMs.length < 5) {
      await vi.advanceTimersByTimeAsync(100);
      const again = sendings(wire, "log.0.0").length - 1;
      if (again > timesMs.length) timesMs.push(performance.now() - startedMs);
    }
    const pausesMs = timesMs.map((time, i) => time - (timesMs[i - 1] ?? 0));
    expect(pausesMs).toEqual([2_000, 4_000, 6_000, 8_000, 8_000]);
  });

  test("a record that is refused for a time is sent again after 50 ms, doubled up to 1 s", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0)], { deadline: deadline(60_000) }));
    const pausesMs: number[] = [];
    for (let time = 1; time <= 8; time++) {
      fail(wire, sendings(wire, "log.0.0").at(-1), FULL);
      const refusedMs = performance.now();
      while (sendings(wire, "log.0.0").length === time) await vi.advanceTimersByTimeAsync(10);
      pausesMs.push(performance.now() - refusedMs);
    }
    // Rounded up to the next look through what waits, ten of which are in a second.
    const least = [50, 100, 200, 400, 800, 1_000, 1_000, 1_000];
    expect(pausesMs.map((pause, i) => pause >= (least[i] ?? 0))).toEqual(least.map(() => true));
    expect(pausesMs.map((pause, i) => pause <= (least[i] ?? 0) + 100)).toEqual(
      least.map(() => true),
    );
  });

  test("after a reconnect outcomes are asked for at once, though they were just before", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0)], { deadline: deadline() }));
    ack(wire, wire.published[0], 1);
    await vi.advanceTimersByTimeAsync(1_100);
    expect(sendings(wire, "ps.j.shard.0.t.outcome")).toHaveLength(1);
    wire.disconnect();
    wire.reconnect();
    await vi.advanceTimersByTimeAsync(100);
    expect(sendings(wire, "ps.j.shard.0.t.outcome")).toHaveLength(2);
  });

  test("while there is no connection nothing is sent again, or asked for", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send(pieces(0, 3), { deadline: deadline(60_000) }));
    ack(wire, wire.published[0], 1);
    fail(wire, wire.published[1], FULL);
    wire.disconnect();
    await vi.advanceTimersByTimeAsync(20_000);
    expect(wire.published).toHaveLength(3);
  });

  test("the memory of a record that was sent twice is not used again: a copy may be on its way", async () => {
    const { wire, outbox } = setUp();
    const taken: ArrayBufferLike[] = [];
    const large = largePiece(taken);
    watch(outbox.send([large], { deadline: deadline() }));
    wire.disconnect();
    wire.reconnect();
    ack(wire, wire.published[1], 1);
    watch(outbox.send([large], { deadline: deadline() }));
    expect(new Set(taken).size).toBe(2);
  });

  test("a full journal and one that nobody has made yet are tried again, with growing delays", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send([piece(0)], { deadline: deadline() }));
    fail(wire, wire.published[0], FULL);
    await vi.advanceTimersByTimeAsync(200);
    expect(wire.published).toHaveLength(2);
    wire.noResponders(wire.published[1] as Published);
    await vi.advanceTimersByTimeAsync(300);
    expect(wire.published).toHaveLength(3);
    ack(wire, wire.published[2], 1);
    answer(wire, [applied(1)]);
    await settle();
    expect(call.state).toBe("done");
  });
});

describe("ends", () => {
  test("at the deadline: what was sent is unknown, what was not stored is said to be so", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send(pieces(0, 20, MIB), { deadline: deadline(3_000) }));
    ack(wire, wire.published[0], 1);
    answer(wire, [applied(1)]);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(call.error).toMatchObject({ code: "OUTCOME_UNKNOWN", details: { unsent: 3 } });
    expect(call.error?.message).toContain("applied once or not at all");
    expect(call.error?.details["pieces"]).toHaveLength(16);
    expect(call.error?.details["applied"]).toEqual([{ parameter: "p", index: 0, shard: 0, n: 1 }]);
  });

  test("without a connection nothing is handed to it, and the error says so", async () => {
    const { wire, outbox } = setUp();
    wire.disconnect();
    const call = watch(outbox.send([piece(0)], { deadline: deadline(1_000) }));
    await vi.advanceTimersByTimeAsync(1_000);
    expect(wire.published).toHaveLength(0);
    expect(call.error).toMatchObject({ code: "NO_BROKER" });
    expect(call.error?.message).toContain("1 pieces were not stored, nothing was applied");
  });

  test("if the journal was full each time it is that, and known not to be applied", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send([piece(0)], { deadline: deadline(1_000) }));
    let failed = 0;
    for (let i = 0; i < 20; i++) {
      if (failed < wire.published.length) fail(wire, wire.published[failed++], FULL);
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(failed).toBeGreaterThan(3);
    expect(call.error).toMatchObject({
      code: "JOURNAL_FULL",
      message: expect.stringContaining("nothing was applied"),
    });
  });

  test("a number that was given up counts as done and is never sent again", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send([piece(0)], { deadline: deadline(500) }));
    await vi.advanceTimersByTimeAsync(500);
    watch(outbox.send([piece(0, 1)], { deadline: deadline() }));
    expect(head(wire.published[1])).toMatchObject({ n: 2, done: 1 });
    wire.disconnect();
    wire.reconnect();
    expect(wire.published.slice(2).map(({ subject }) => subject)).toEqual(["log.0.1"]);
    expect(outbox.inFlightBytes).toBe(8);
  });

  test("an abort settles at once and leaves the window free", async () => {
    const { wire, outbox } = setUp();
    const abort = new AbortController();
    const call = watch(
      outbox.send(pieces(0, 20, MIB), { deadline: deadline(30_000, abort.signal) }),
    );
    abort.abort();
    await settle();
    expect(call.error?.code).toBe("ABORTED");
    expect(call.error?.details["pieces"]).toHaveLength(16);
    for (let i = 0; i < 16; i++) ack(wire, wire.published[i], i + 1);
    expect(outbox.inFlightBytes).toBe(0);
  });

  test("a refused subject fails its pieces with DENIED", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send([piece(0)], { deadline: deadline() }));
    wire.deny("log.0.0", new PserverError("DENIED", "no"));
    await settle();
    expect(call.error?.code).toBe("DENIED");
  });
});

describe("sessions", () => {
  test("a new session sends again what is known not to be applied; the rest is unknown", async () => {
    const { wire, outbox, ended } = setUp();
    const again = watch(outbox.send([piece(0)], { deadline: deadline() }));
    const full = watch(outbox.send([piece(1)], { deadline: deadline() }));
    const lost = watch(outbox.send([piece(2)], { deadline: deadline() }));
    fail(wire, wire.published[1], FULL);
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "REJOIN", message: "floor" }]);
    expect(ended.map(({ code }) => code)).toEqual(["REJOIN"]);
    outbox.pause();
    outbox.start(6);
    await settle();
    expect(wire.published.slice(3).map((p) => head(p))).toMatchObject([
      { session: 6, n: 1, done: 0 },
      { session: 6, n: 1, done: 0 },
    ]);
    expect(lost.error?.code).toBe("OUTCOME_UNKNOWN");
    answer(wire, [applied(1)], 0, 6);
    answer(wire, [applied(1)], 1, 6);
    await settle();
    expect([again.state, full.state]).toEqual(["done", "done"]);
  });

  test("a new session sends first what had its turn, in the same order", async () => {
    const { wire, outbox } = setUp();
    watch(outbox.send(pieces(0, 3, 8 * MIB), { deadline: deadline() }));
    fail(wire, wire.published[0], FULL);
    fail(wire, wire.published[1], FULL);
    outbox.pause();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(wire.published).toHaveLength(2);
    outbox.start(6);
    ack(wire, wire.published[2], 1);
    const again = wire.published.slice(2);
    expect(again.map(({ subject }) => subject)).toEqual(["log.0.0", "log.0.1", "log.0.2"]);
    expect(again.map((published) => head(published)["n"])).toEqual([1, 2, 3]);
  });

  test("REJOIN to a repeated record says nothing of its first copy", async () => {
    const { wire, outbox } = setUp();
    const call = watch(outbox.send([piece(0)], { deadline: deadline() }));
    wire.disconnect();
    wire.reconnect();
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "REJOIN", message: "floor" }]);
    outbox.start(6);
    await settle();
    expect(call.error?.code).toBe("OUTCOME_UNKNOWN");
    expect(wire.published).toHaveLength(2);
  });

  test("SUPERSEDED ends the session", async () => {
    const { wire, outbox, ended } = setUp();
    const call = watch(outbox.send([piece(0)], { deadline: deadline() }));
    answer(wire, [{ n: 1, seq: 4, version: 0, code: "SUPERSEDED", message: "newer" }]);
    await settle();
    expect(call.error?.code).toBe("SUPERSEDED");
    expect(ended).toHaveLength(1);
  });
});

describe("a gradient that names a version which its shard has undone", () => {
  const rejected = (n: number): Outcome => {
    return { n, seq: n, version: 0, code: "BAD_VALUE", message: "seen: expected at most 3" };
  };

  test("is sent once more without it, under a number of its own", async () => {
    const { wire, outbox } = setUp();
    const sent = watch(outbox.send([seeing(9)], { deadline: deadline() }));
    expect(head(wire.published[0])).toMatchObject({ n: 1, seen: 9 });
    ack(wire, wire.published[0], 1);
    answer(wire, [rejected(1)]);
    expect(head(wire.published[1])).toMatchObject({ n: 2, done: 1 });
    expect(head(wire.published[1])["seen"]).toBeUndefined();
    ack(wire, wire.published[1], 2);
    answer(wire, [applied(2)]);
    await settle();
    expect(sent.state).toBe("done");
  });

  test("ends its call if it is rejected again", async () => {
    const { wire, outbox } = setUp();
    const sent = watch(outbox.send([seeing(9)], { deadline: deadline() }));
    answer(wire, [rejected(1)]);
    answer(wire, [rejected(2)]);
    await settle();
    expect(sent.error?.code).toBe("BAD_VALUE");
    expect(wire.published).toHaveLength(2);
  });
});
