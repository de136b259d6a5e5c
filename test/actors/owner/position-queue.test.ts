// Proves which requests are answered at once, which wait for the fold, and how waiting ends.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { PositionQueue } from "../../../src/actors/owner/position-queue.ts";
import type { Position } from "../../../src/protocol/index.ts";

let queue: PositionQueue;
let heard: string[];

beforeEach(() => {
  vi.useFakeTimers();
  queue = new PositionQueue({
    shard: 0,
    lastSeq: () => Promise.resolve(undefined),
    onLost: () => undefined,
  });
  heard = [];
});

afterEach(() => {
  vi.useRealTimers();
});

const at = (generation: number, seq: number): Position => ({ generation, seq });

function ask(wanted: Position, folded: Position): void {
  queue.at(folded, {
    wanted: { ...wanted, asker: "alice" },
    waitMs: 100,
    run: () => heard.push("run"),
    refuse: ({ code }) => heard.push(code),
  });
}

describe("a request", () => {
  test("for what is folded, or for whatever is there, runs at once", () => {
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

  test("for a newer journal does not run because the older one got that far", () => {
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

  test("is refused when too many wait", () => {
    for (let i = 0; i < 4_096; i++) ask(at(1, 6), at(1, 5));
    expect(heard).toEqual([]);
    ask(at(1, 6), at(1, 5));
    expect(heard).toEqual(["BUSY"]);
  });
});
