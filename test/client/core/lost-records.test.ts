// Proves when a record without a PubAck is sent again: journals have leaders of their own, so that the PubAcks of
// other shards say that it has reached the broker, and not that its own will come; and while nothing comes at all,
// what is little is sent again each two seconds, and what is much with growing delays. The clock is the test's.
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

beforeEach(() => {
  [sent, repeatedMs, nowMs, calls] = [[], [], 0, 0];
  const commands: OutboxCommands = {
    publish: (update) => void sent.push(update),
    repeat: () => void repeatedMs.push(nowMs),
    release: () => undefined,
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

/** Lets time pass, and calls `each` every 100 ms. */
function pass(ms: number, each: () => void = () => undefined): void {
  for (const untilMs = nowMs + ms; nowMs < untilMs; ) {
    nowMs += 100;
    each();
    outbox.tick(nowMs);
  }
}

describe("a record without a PubAck", () => {
  test("is sent again two seconds after one that was sent later was stored, in whichever shard, all the while", () => {
    send(0);
    pass(7_000, () => store(send(1)));
    expect(repeatedMs).toEqual([2_100, 4_200, 6_300]);
  });

  test("is left alone while nothing shows that it has reached the broker, and PubAcks come", () => {
    const before = Array.from({ length: 50 }, () => send(1));
    send(0);
    pass(5_000, () => {
      const next = before.shift();
      if (next !== undefined) store(next);
    });
    expect(repeatedMs).toEqual([]);
  });

  test("is sent again each two seconds while nothing is stored and little is in flight", () => {
    send(0);
    send(1);
    pass(8_000);
    expect(repeatedMs).toEqual([2_000, 2_000, 4_000, 4_000, 6_000, 6_000, 8_000, 8_000]);
  });

  test("is sent again with growing delays while nothing is stored and much is in flight", () => {
    send(0, 1024 ** 2);
    pass(30_000);
    expect(repeatedMs).toEqual([2_000, 6_000, 12_000, 20_000, 28_000]);
  });

  test("is not believed to have reached the broker by a later one of which a copy was sent before", () => {
    const before = Array.from({ length: 50 }, () => send(1));
    send(0);
    const after = send(2);
    pass(2_000);
    expect(repeatedMs).toHaveLength(52);
    store(after);
    pass(4_000, () => {
      const next = before.shift();
      if (next !== undefined) store(next);
    });
    expect(repeatedMs).toHaveLength(52);
  });
});
