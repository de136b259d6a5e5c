import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  AT_ONCE,
  type CutTurn,
  type PutOff,
  SnapshotPace,
} from "../../../../src/actors/journal/snapshots/snapshot-pace.ts";

// Proves when pieces of snapshots go: while a worker is asked for something, no faster than journals grow,
// and no later; at once when nobody asks, when somebody waits for a cut, and when records wait for copies.

let nowMs = 0;
let holdsUp = false;
let pace: SnapshotPace;

beforeEach(() => {
  vi.useFakeTimers();
  nowMs = 1_000;
  holdsUp = false;
  pace = new SnapshotPace({ holdsUp: () => holdsUp, nowMs: () => nowMs });
  pace.worked();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Lets the clock of the pace and its timers advance. */
async function pass(ms: number): Promise<void> {
  nowMs += ms;
  await vi.advanceTimersByTimeAsync(ms);
}

/** A cut of ten pieces of one byte. `grown`: how much of the growth has come by which it must be stored. */
class TenPieces {
  readonly turn: CutTurn;
  grown = 0;
  admitted = 0;

  constructor(putOff?: PutOff) {
    this.turn = pace.join(putOff ?? (() => this.grown));
  }

  begin(): void {
    pace.begin(10);
    for (let piece = 0; piece < 10; piece++) void pace.admit(1).then(() => this.admitted++);
  }

  async grow(to: number): Promise<number> {
    this.grown = to;
    pace.worked();
    pace.poke();
    await pass(0);
    return this.admitted;
  }
}

describe("while a worker is asked for something", () => {
  test("pieces go as the journal of the shard grows, and the last before it has grown by all", async () => {
    const cut = new TenPieces();
    cut.begin();
    const found: number[] = [];
    for (const to of [0, 0.25, 0.5, 0.75, 1]) found.push(await cut.grow(to));
    expect(found).toEqual([0, 3, 5, 8, 10]);
  });

  test("time alone lets none go, however long it is asked", async () => {
    const cut = new TenPieces();
    cut.begin();
    for (let i = 0; i < 100; i++) {
      await pass(19);
      pace.worked();
    }
    expect(cut.admitted).toBe(0);
  });

  test("a cut has all that those before it have not used of its own growth", async () => {
    const [first, second] = [new TenPieces(), new TenPieces()];
    first.begin();
    // The second is to be stored after half of its growth, and the first before it.
    second.grown = 0.25;
    expect(await first.grow(0)).toBe(5);
    second.grown = 0.5;
    expect(await first.grow(0)).toBe(10);
    pace.leave(first.turn);
    second.begin();
    expect(await second.grow(0.5)).toBe(0);
    expect(await second.grow(0.75)).toBe(5);
    expect(await second.grow(1)).toBe(10);
  });

  test("what somebody waits for goes at once, and all before it", async () => {
    const first = new TenPieces();
    first.begin();
    expect(await first.grow(0)).toBe(0);
    const second = new TenPieces(AT_ONCE);
    await pass(0);
    expect(first.admitted).toBe(10);
    pace.leave(first.turn);
    second.begin();
    await pass(0);
    expect(second.admitted).toBe(10);
  });

  test("pieces go while records wait for copies, and no longer", async () => {
    const cut = new TenPieces();
    cut.begin();
    holdsUp = true;
    pace.poke();
    await pass(0);
    expect(cut.admitted).toBe(10);
    holdsUp = false;
    pace.leave(cut.turn);
    const next = new TenPieces();
    next.begin();
    expect(await next.grow(0)).toBe(0);
  });

  test("pieces of a cut that ends are let go, so that nothing waits for ever", async () => {
    const cut = new TenPieces();
    cut.begin();
    expect(await cut.grow(0.1)).toBe(1);
    pace.leave(cut.turn);
    await pass(0);
    expect(cut.admitted).toBe(10);
  });
});

test("once nobody asks, all goes", async () => {
  const cut = new TenPieces();
  cut.begin();
  await pass(19);
  expect(cut.admitted).toBe(0);
  await pass(1);
  expect(cut.admitted).toBe(10);
});

test("a worker that was never asked for anything puts nothing off", async () => {
  pace = new SnapshotPace({ holdsUp: () => false, nowMs: () => nowMs });
  const cut = new TenPieces();
  cut.begin();
  await pass(0);
  expect(cut.admitted).toBe(10);
});
