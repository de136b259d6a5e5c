// Proves when a record without a PubAck is sent again: when the broker has read it and has not answered for two seconds,
// which a PING shows; not while the record, or its PubAck, may be on a slow link, nor while its journal answers to
// earlier records. The clock and the link are the test's.
import { beforeEach, describe, expect, test } from "vitest";
import { Outbox, type OutboxCommands } from "../../../src/client/core/outbox.ts";
import { Positions } from "../../../src/client/core/shard-window.ts";
import { type BlockUpdate, newUpdateCall } from "../../../src/client/core/update-call.ts";
import { WINDOW_RECORDS } from "../../../src/protocol/limits.ts";

let outbox: Outbox;
let sent: BlockUpdate[];
let repeatedMs: number[];
let nowMs: number;
let calls: number;
/** The PING without an answer. */
let ping: number | undefined;
/** Whether the broker answers PINGs. */
let reads: boolean;

beforeEach(() => {
  [sent, repeatedMs, nowMs, calls, ping, reads] = [[], [], 0, 0, undefined, true];
  const commands: OutboxCommands = {
    publish: (update) => void sent.push(update),
    repeat: () => void repeatedMs.push(nowMs),
    release: () => undefined,
    ping: (sendNumber) => {
      ping = sendNumber;
    },
    setTimer: () => undefined,
    askOutcomes: () => undefined,
  };
  outbox = new Outbox({
    commands,
    listener: { callOver: () => undefined, sessionOver: () => undefined },
    positions: new Positions({ journalReplaced: () => undefined }),
    inFlightBytesMax: 8 * 1024 ** 2,
    windowRecords: WINDOW_RECORDS,
  });
  outbox.start(1, 0);
});

/** Sends one record; returns it. */
function send(shard: number, dataBytes = 1_000): BlockUpdate {
  const mode = { isDoneWhenStored: false, countsLate: false, countsPresent: false };
  outbox.send(
    newUpdateCall(++calls, mode, [{ shard, blocks: 1, dataBytes, namesVersion: false }]),
    nowMs,
  );
  const update = sent.at(-1);
  if (update === undefined) throw new Error("nothing was sent");
  return update;
}

function store({ slot, serial, shard, n }: BlockUpdate): void {
  outbox.stored(slot, serial, shard, { generation: 1, seq: n }, nowMs);
}

/** Answers the PING, if there is one. */
function answerPing(): void {
  const answered = ping;
  ping = undefined;
  if (answered !== undefined) outbox.read(answered, nowMs);
}

/** Lets time pass, and calls `each` every 100 ms. */
function pass(ms: number, each: () => void = () => undefined): void {
  for (const untilMs = nowMs + ms; nowMs < untilMs; ) {
    nowMs += 100;
    each();
    if (reads) answerPing();
    outbox.tick(nowMs);
  }
}

describe("a record without a PubAck", () => {
  test("is sent again two seconds after the broker has read it, all the while", () => {
    send(0);
    pass(7_000);
    expect(repeatedMs).toEqual([2_300, 4_500, 6_700]);
  });

  test("is left alone while no PING is answered: it may be on its way", () => {
    send(0);
    reads = false;
    pass(60_000);
    expect(repeatedMs).toEqual([]);
    reads = true;
    pass(2_500);
    expect(repeatedMs).toHaveLength(1);
  });

  test("is left alone while a PING is not answered that was sent later: the PubAck may be on its way", () => {
    send(0);
    pass(1_000);
    reads = false;
    pass(60_000);
    expect(repeatedMs).toEqual([]);
  });

  test("is not believed to be read by the answer to a PING of an earlier connection", () => {
    send(0);
    pass(100);
    const earlier = ping;
    reads = false;
    outbox.disconnected();
    ping = undefined;
    outbox.reconnected(nowMs);
    expect(repeatedMs).toHaveLength(1);
    pass(5_000, () => {
      if (earlier !== undefined) outbox.read(earlier, nowMs);
    });
    expect(repeatedMs).toHaveLength(1);
  });

  test("is sent again though other journals answer: each has a leader of its own", () => {
    send(0);
    pass(7_000, () => store(send(1)));
    expect(repeatedMs).toEqual([2_200, 4_400, 6_600]);
  });

  test("is left alone while its journal answers to records before it", () => {
    const before = Array.from({ length: 50 }, () => send(0));
    send(0);
    pass(5_000, () => {
      const next = before.shift();
      if (next !== undefined) store(next);
    });
    expect(repeatedMs).toEqual([]);
  });

  test("is sent again though its journal answers, once that has answered to a later one", () => {
    send(0);
    pass(2_500, () => store(send(0)));
    expect(repeatedMs).toHaveLength(1);
  });

  test("is sent again with growing delays while much is in flight", () => {
    send(0, 1024 ** 2);
    pass(30_000);
    expect(repeatedMs).toEqual([2_300, 6_500, 12_700, 20_900, 29_100]);
  });

  test("stays in flight after it was given up until its PubAck cannot come any more", () => {
    const update = send(0, 1024 ** 2);
    outbox.endCall(update.call, { code: "TIMEOUT", message: "over", details: {} }, nowMs);
    reads = false;
    pass(60_000);
    expect(outbox.inFlightBytes).toBe(1024 ** 2);
    reads = true;
    pass(2_500);
    expect([outbox.inFlightBytes, repeatedMs]).toEqual([0, []]);
  });
});
