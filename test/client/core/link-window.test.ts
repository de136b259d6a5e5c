// Proves that the bytes under way follow the speed of the link: on a simulated one of 1 to 10 Mbit/s nothing is sent
// twice, at most two seconds of its work wait, and it is never idle for long; on a fast one the whole window is used.
// Clock, link, broker and host are the test's.
import { expect, test } from "vitest";
import { LinkWindow } from "../../../src/client/core/link-window.ts";
import { Outbox, type OutboxCommands } from "../../../src/client/core/outbox.ts";
import { Positions } from "../../../src/client/core/shard-window.ts";
import { type BlockUpdate, newUpdateCall } from "../../../src/client/core/update-call.ts";
import { IN_FLIGHT_BYTES_MAX, WINDOW_RECORDS } from "../../../src/protocol/limits.ts";

const MIB = 1024 ** 2;
const ROUND_TRIP_MS = 50;

/** Sends records of these sizes over a link; returns what the link has carried. */
function sendOver(
  bytesPerMs: number,
  sizes: readonly number[],
): { sentBytes: number; repeats: number; tookMs: number; mostQueuedMs: number } {
  const coming: { readonly atMs: number; readonly arrive: () => void }[] = [];
  let [nowMs, sentBytes, repeats, over, mostQueuedMs, freeAtMs] = [0, 0, 0, false, 0, 0];
  let timerAtMs = Number.POSITIVE_INFINITY;
  const put = (bytes: number, arrive: () => void): void => {
    freeAtMs = Math.max(freeAtMs, nowMs) + bytes / bytesPerMs;
    coming.push({ atMs: freeAtMs + ROUND_TRIP_MS, arrive });
  };
  const publish = (update: BlockUpdate): void => {
    const { slot, serial, shard, n, dataBytes } = update;
    sentBytes += dataBytes;
    put(dataBytes, () => {
      outbox.stored(slot, serial, shard, { generation: 1, seq: n }, nowMs);
      const outcomes = [{ n, seq: n, version: n }];
      outbox.answered({ shard, generation: 1, session: 1, outcomes }, false, nowMs);
    });
  };
  const commands: OutboxCommands = {
    publish,
    repeat: (update) => {
      repeats += 1;
      publish(update);
    },
    release: () => undefined,
    ping: (sendNumber) => put(6, () => outbox.read(sendNumber, nowMs)),
    setTimer: (atMs) => {
      timerAtMs = atMs;
    },
    askOutcomes: () => undefined,
  };
  const outbox = new Outbox({
    commands,
    listener: {
      callOver: () => {
        over = true;
      },
      sessionOver: () => undefined,
    },
    positions: new Positions({ journalReplaced: () => undefined }),
    inFlightBytesMax: IN_FLIGHT_BYTES_MAX,
    windowRecords: WINDOW_RECORDS,
  });
  outbox.start(1, nowMs);
  const mode = { isDoneWhenStored: true, countsLate: false, countsPresent: false };
  const updates = sizes.map((dataBytes, i) => {
    return { shard: i % 4, blocks: 1, dataBytes, namesVersion: false };
  });
  outbox.send(newUpdateCall(1, mode, updates), nowMs);
  while (!over) {
    const [next] = coming;
    if (next !== undefined && next.atMs <= timerAtMs) {
      coming.shift();
      nowMs = next.atMs;
      next.arrive();
    } else {
      nowMs = timerAtMs;
      timerAtMs = Number.POSITIVE_INFINITY;
      outbox.tick(nowMs);
    }
    if (sentBytes > 4 * MIB) mostQueuedMs = Math.max(mostQueuedMs, Math.floor(freeAtMs - nowMs));
  }
  return { sentBytes, repeats, tookMs: nowMs, mostQueuedMs };
}

const MIXED = Array.from({ length: 64 }, (_, i) => [MIB, MIB / 4, 20_000, MIB / 2][i % 4] ?? 0);

test.each([
  ["1 Mbit/s", 125, MIXED],
  ["3.2 Mbit/s", 400, MIXED],
  ["10 Mbit/s", 1_250, MIXED],
  ["1 Mbit/s, in records of 4 MiB", 125, [4 * MIB, 4 * MIB, 4 * MIB, 4 * MIB]],
])("on a link of %s nothing is sent twice, and little waits", (_name, bytesPerMs, sizes) => {
  const bytes = sizes.reduce((sum, each) => sum + each, 0);
  const { sentBytes, repeats, tookMs, mostQueuedMs } = sendOver(bytesPerMs, sizes);
  expect([sentBytes, repeats]).toEqual([bytes, 0]);
  expect(tookMs).toBeLessThan((1.05 * bytes) / bytesPerMs + 2 * ROUND_TRIP_MS);
  expect(mostQueuedMs).toBeLessThanOrEqual(Math.max(2_000, Math.max(...sizes) / bytesPerMs));
});

test("on a fast link the window opens with the first answers", () => {
  const window = new LinkWindow(IN_FLIGHT_BYTES_MAX);
  expect(window.bytes).toBe(MIB / 4);
  window.note(MIB / 4, 5, 100);
  expect(window.bytes).toBe(IN_FLIGHT_BYTES_MAX);
});

test("a link that becomes slower gets less within four seconds, and one that was made anew begins anew", () => {
  const window = new LinkWindow(IN_FLIGHT_BYTES_MAX);
  window.note(8 * MIB, 1_000, 5_000);
  for (let nowMs = 5_100; nowMs <= 9_100; nowMs += 100) window.note(MIB, 1_000, nowMs);
  expect(window.bytes).toBe(1.5 * MIB);
  window.reset();
  expect(window.bytes).toBe(MIB / 4);
});

test("however little was sent lately, a quarter of a MiB may be under way", () => {
  const window = new LinkWindow(IN_FLIGHT_BYTES_MAX);
  window.note(10, 1_000, 5_000);
  expect(window.bytes).toBe(MIB / 4);
});
