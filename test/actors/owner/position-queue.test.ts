// Proves which requests are answered at once, which wait for the fold, and how waiting ends: also that a
// request for a position that the journal does not reach is answered so, with few looks at the journal, and
// only by a look that began after the request came.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PositionQueue, type WantedPosition } from "../../../src/actors/owner/pending-reads.ts";
import type { Position } from "../../../src/protocol/index.ts";

let queue: PositionQueue;
let heard: string[];
/** Where the journal ends, and the looks at it that wait for an answer. */
let lastSeq: number | undefined;
let looks: (() => void)[];
let looked: number[];
let reported: [Record<string, unknown>, WantedPosition][];

beforeEach(() => {
  vi.useFakeTimers();
  queue = new PositionQueue({
    shard: 0,
    fallbacks: () => [{ generation: 1, from: 4, to: 6 }],
    lastSeq: ({ generation }, tell) => {
      looked.push(generation);
      looks.push(() => tell(lastSeq));
    },
    onLost: ({ details }, wanted) => reported.push([details, wanted]),
  });
  heard = [];
  [looks, looked, reported] = [[], [], []];
});

afterEach(() => {
  vi.useRealTimers();
});

const at = (generation: number, seq: number): Position => ({ generation, seq });

function ask(wanted: Position, folded: Position, waitMs = 100, from = "alice"): void {
  queue.at(folded, {
    from,
    wanted: { ...wanted, asker: from },
    waitMs,
    run: () => heard.push("run"),
    refuse: ({ code }) => heard.push(code),
  });
}

describe("a request", () => {
  test("for a folded record, or for any state, runs at once", () => {
    ask(at(1, 5), at(1, 5));
    ask(at(1, 0), at(2, 5));
    ask(at(3, 0), at(2, 5));
    expect(heard).toEqual(["run", "run", "run"]);
  });

  test("for an older journal is refused", () => {
    ask(at(1, 5), at(2, 100));
    expect(heard).toEqual(["JOURNAL_REPLACED"]);
  });

  test("for more waits until it is folded", () => {
    ask(at(1, 6), at(1, 5));
    queue.advance(at(1, 5));
    expect(heard).toEqual([]);
    queue.advance(at(1, 6));
    queue.advance(at(1, 7));
    expect(heard).toEqual(["run"]);
  });

  test("for a newer journal does not run when the older one reaches its number", () => {
    ask(at(2, 3), at(1, 2));
    queue.advance(at(1, 100));
    expect(heard).toEqual([]);
    queue.advance(at(2, 3));
    expect(heard).toEqual(["run"]);
  });

  test("that waits in a journal that is replaced is refused", () => {
    ask(at(1, 9), at(1, 5));
    queue.advance(at(2, 0));
    expect(heard).toEqual(["JOURNAL_REPLACED"]);
  });

  test("times out, once", () => {
    ask(at(1, 6), at(1, 5));
    vi.advanceTimersByTime(100);
    queue.advance(at(1, 6));
    expect(heard).toEqual(["TIMEOUT"]);
  });

  test("is refused when too many of its trainer wait; those of others wait, and none for ever", () => {
    for (let i = 0; i < 2_048; i++) ask(at(1, 6), at(1, 5));
    expect(heard).toEqual([]);
    ask(at(1, 6), at(1, 5));
    expect(heard).toEqual(["BUSY"]);
    ask(at(1, 6), at(1, 5), 100, "bob");
    expect(heard).toEqual(["BUSY"]);
    queue.advance(at(1, 6));
    expect(heard).toHaveLength(2_050);
    for (let i = 0; i < 2_048; i++) ask(at(1, 7), at(1, 6));
    vi.advanceTimersByTime(100);
    expect(heard.filter((what) => what === "TIMEOUT")).toHaveLength(2_048);
    ask(at(1, 7), at(1, 6));
    expect(heard.filter((what) => what === "BUSY")).toHaveLength(1);
  });
});

describe("a position that the journal may not reach", () => {
  /** Time passes until a look has begun, and it is answered. */
  async function look(): Promise<void> {
    await vi.advanceTimersByTimeAsync(200);
    for (const answer of looks.splice(0)) answer();
    await vi.advanceTimersByTimeAsync(0);
  }

  test("is lost if the journal ends before it; requests for earlier positions keep waiting", async () => {
    lastSeq = 7;
    ask(at(1, 8), at(1, 5), 10_000);
    ask(at(1, 7), at(1, 5), 10_000);
    await look();
    expect(looked).toEqual([1]);
    expect(heard).toEqual(["JOURNAL_LOST"]);
    const details = { shard: 0, expected: at(1, 7), received: at(1, 8) };
    expect(reported).toEqual([[details, { ...at(1, 8), asker: "alice" }]]);
    queue.advance(at(1, 7));
    expect(heard).toEqual(["JOURNAL_LOST", "run"]);
  });

  test("is not asked of the broker while the fold is only moments behind", async () => {
    ask(at(1, 6), at(1, 5));
    await vi.advanceTimersByTimeAsync(90);
    queue.advance(at(1, 6));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(heard).toEqual(["run"]);
    expect(looked).toEqual([]);
  });

  test("is not reported lost by a look that began before the request", async () => {
    lastSeq = 5;
    ask(at(1, 6), at(1, 5), 10_000);
    await vi.advanceTimersByTimeAsync(200);
    expect(looked).toEqual([1]);
    // Stored since the broker was asked, and seen by somebody else.
    ask(at(1, 7), at(1, 5), 10_000);
    await look();
    expect(heard).toEqual(["JOURNAL_LOST"]);
    lastSeq = 7;
    await look();
    queue.advance(at(1, 7));
    expect(heard).toEqual(["JOURNAL_LOST", "run"]);
    expect(looked).toEqual([1, 1]);
  });

  test("is not asked of the broker again once the journal is known to reach it", async () => {
    lastSeq = 9;
    ask(at(1, 9), at(1, 5), 10_000);
    ask(at(1, 8), at(1, 5), 10_000);
    await look();
    await vi.advanceTimersByTimeAsync(9_000);
    expect(looked).toEqual([1]);
    expect(heard).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(heard).toEqual(["TIMEOUT", "TIMEOUT"]);
  });

  test("is asked of the broker once for all requests, and not before the last look is answered", async () => {
    lastSeq = 5;
    for (let i = 0; i < 1_000; i++) ask(at(1, 1_000 + i), at(1, 5), 10_000);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(looked).toEqual([1]);
    await look();
    expect(heard).toEqual(Array.from({ length: 1_000 }, () => "JOURNAL_LOST"));
  });

  test("keeps waiting while the journal cannot be looked at, or does not exist", async () => {
    lastSeq = undefined;
    ask(at(1, 6), at(1, 5), 1_000);
    await look();
    expect(heard).toEqual([]);
    await look();
    expect(looked).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(heard).toEqual(["TIMEOUT"]);
  });

  test("of a new journal is asked of the broker, wherever the one before ended", async () => {
    lastSeq = 9;
    ask(at(1, 7), at(1, 5), 10_000);
    await vi.advanceTimersByTimeAsync(200);
    looks[0]?.();
    queue.advance(at(2, 1));
    ask(at(2, 5), at(2, 1), 10_000);
    await vi.advanceTimersByTimeAsync(200);
    expect(looked).toEqual([1, 2]);
  });

  test("of a newer journal is not asked of the broker, and that of a replaced one not evaluated", async () => {
    lastSeq = 5;
    ask(at(2, 6), at(1, 5), 10_000);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(looked).toEqual([]);
    queue.advance(at(2, 5));
    ask(at(2, 9), at(2, 5), 10_000);
    await vi.advanceTimersByTimeAsync(200);
    expect(looked).toEqual([2]);
    queue.advance(at(3, 0));
    for (const answer of looks.splice(0)) answer();
    await vi.advanceTimersByTimeAsync(0);
    expect(heard).toEqual(["JOURNAL_REPLACED", "JOURNAL_REPLACED"]);
    expect(reported).toEqual([]);
  });
});
