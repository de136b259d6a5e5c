// Proves when an owner closes the round of a fragment: with its quorum and after its grace, at once if all members have
// contributed, no earlier than its interval allows, again if that could not be written; and that the fold decides what
// comes of it, also where two owners close.
import { beforeEach, describe, expect, test } from "vitest";
import type { Clock } from "../../../src/actors/concurrent.ts";
import { RoundCloser } from "../../../src/actors/owner/round-closer.ts";
import type { DilocoSettings } from "../../../src/protocol/config/index.ts";
import { PserverError } from "../../../src/protocol/errors.ts";
import type { CloseRecord } from "../../../src/protocol/messages/host-records.ts";
import { FragmentJob, MEMBERS } from "../fold/fragments/fragment-job.ts";

/** A clock that stands still until it is moved. */
class ManualClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Map<() => void, number>();

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, run: () => void): () => void {
    this.#timers.set(run, this.#nowMs + delayMs);
    return () => this.#timers.delete(run);
  }

  /** Moves on, and runs what is due, in order. */
  pass(ms: number): void {
    const end = this.#nowMs + ms;
    while (true) {
      const due = [...this.#timers].filter(([, atMs]) => atMs <= end).sort(([, a], [, b]) => a - b);
      const [next] = due;
      if (next === undefined) break;
      const [run, atMs] = next;
      this.#timers.delete(run);
      this.#nowMs = atMs;
      run();
    }
    this.#nowMs = end;
  }
}

let clock: ManualClock;
let job: FragmentJob;
let written: CloseRecord[];
let closer: RoundCloser;
let refuses: boolean;
let failures: PserverError[];

/** An owner of a job with these settings, which writes its closes into the list. */
function begin(settings: Partial<DilocoSettings>): void {
  clock = new ManualClock();
  job = new FragmentJob(settings);
  written = [];
  refuses = false;
  failures = [];
  closer = ownerOf(job);
}

function ownerOf(owned: FragmentJob): RoundCloser {
  const made = new RoundCloser({
    shard: owned.shard,
    append: (record) => {
      written.push(record);
      return refuses ? Promise.reject(new PserverError("NO_BROKER", "away")) : Promise.resolve();
    },
    onFailed: (error) => failures.push(error),
    clock,
  });
  owned.shard.observers = [...owned.shard.observers, made];
  return made;
}

/** A trainer contributes, and the owner sees it. */
function contribute(
  trainer: string,
  said: { base?: number; stepMs?: number; id?: number } = {},
): void {
  expect(job.contribute(trainer, 1, 1, said).code).toBeUndefined();
  closer.advanced();
}

/** Has the journal take what the owner has written last. */
function fold(): void {
  const record = written.at(-1);
  if (record === undefined) throw new Error("nothing was written");
  job.journal.host(record);
  job.run();
  closer.advanced();
}

const GRACE = { graceCapMs: 100, graceMargin: 1, graceSteps: 2 };

beforeEach(() => begin({ quorum: 2, ...GRACE }));

describe("a round", () => {
  test("closes when its quorum has contributed and the grace is over", () => {
    contribute("alice");
    clock.pass(10_000);
    expect(written).toEqual([]);
    contribute("bob");
    clock.pass(99);
    expect(written).toEqual([]);
    clock.pass(1);
    expect(written).toEqual([{ verb: "close", fragment: "f", round: 1, contributions: 2 }]);
    fold();
    expect(job.version).toBe(1);
  });

  test("closes at once when all members have contributed", () => {
    for (const trainer of MEMBERS) contribute(trainer);
    expect(written).toMatchObject([{ round: 1, contributions: 3 }]);
  });

  test("counts those who come within the grace", () => {
    contribute("alice");
    contribute("bob");
    clock.pass(50);
    contribute("carol");
    expect(written).toMatchObject([{ contributions: 3 }]);
  });

  test("needs no more than the members that there are", () => {
    contribute("alice");
    job.members(["alice"]);
    job.run();
    closer.advanced();
    expect(written).toMatchObject([{ round: 1, contributions: 1 }]);
  });

  test("does not close before enough members have been there at one time", () => {
    begin({ quorum: 3, ...GRACE });
    job = new FragmentJob({ quorum: 3 }, undefined, { started: false });
    closer = ownerOf(job);
    for (const trainer of MEMBERS) contribute(trainer);
    expect(written).toEqual([]);
    job.members(MEMBERS);
    job.run();
    closer.advanced();
    expect(written).toHaveLength(1);
  });

  test("counts two contributions of one trainer as one", () => {
    begin({ quorum: 2, late: "carry", ...GRACE });
    job.close(0);
    contribute("alice", { base: 0, id: 1 });
    contribute("alice", { base: 1, id: 2 });
    clock.pass(1_000);
    expect(written).toEqual([]);
  });

  test("closes no earlier than the interval after the last one", () => {
    begin({ quorum: 1, ...GRACE, graceCapMs: 0, minIntervalMs: 500 });
    contribute("alice");
    clock.pass(0);
    fold();
    clock.pass(100);
    contribute("alice", { base: 1, id: 2 });
    clock.pass(399);
    expect(written).toHaveLength(1);
    clock.pass(1);
    expect(written).toHaveLength(2);
  });
});

describe("a round of a sample", () => {
  const trainers = Array.from({ length: 9 }, (_, i) => `t${i}`);

  /** Begins a job that draws three of nine members; returns those of the first round. */
  function drawThree(settings: Partial<DilocoSettings>): string[] {
    begin({ sample: 3, ...GRACE, ...settings });
    job.members(trainers);
    job.run();
    return [...(job.shard.sampledFor("f", 1) ?? [])];
  }

  test("needs no more than those that were drawn, and waits for nobody else", () => {
    const drawn = drawThree({ quorum: 8 });
    expect(drawn).toHaveLength(3);
    for (const trainer of drawn.slice(0, 2)) contribute(trainer);
    clock.pass(10_000);
    expect(written).toEqual([]);
    contribute(drawn[2] ?? "");
    expect(written).toMatchObject([{ round: 1, contributions: 3 }]);
  });

  test("has its quorum of those that were drawn for it, not of late ones", () => {
    const drawn = drawThree({ quorum: 1, late: "carry" });
    job.close(0);
    const second = job.shard.sampledFor("f", 2);
    const late = drawn.filter((trainer) => second?.has(trainer) === false);
    for (const trainer of late) contribute(trainer, { base: 0 });
    expect(late.length).toBeGreaterThan(0);
    clock.pass(10_000);
    expect(written).toEqual([]);
    for (const trainer of [...(second ?? [])].slice(0, 1)) contribute(trainer, { base: 1, id: 2 });
    clock.pass(100);
    expect(written).toMatchObject([{ round: 2, contributions: late.length + 1 }]);
  });
});

describe("the grace", () => {
  test("is the time that the slowest member has left", () => {
    begin({ quorum: 2, ...GRACE, graceCapMs: 1_000, graceMargin: 0.5 });
    contribute("alice", { stepMs: 40 });
    clock.pass(20);
    contribute("bob", { stepMs: 100 });
    // Half of 2 steps of 100 ms, less the 20 ms until the quorum.
    clock.pass(89);
    expect(written).toEqual([]);
    clock.pass(1);
    expect(written).toHaveLength(1);
  });

  test("is none if the quorum has taken longer than that", () => {
    contribute("alice", { stepMs: 5 });
    clock.pass(50);
    contribute("bob", { stepMs: 5 });
    clock.pass(0);
    expect(written).toHaveLength(1);
  });

  test("is not longer than its cap", () => {
    contribute("alice", { stepMs: 10_000 });
    contribute("bob");
    clock.pass(100);
    expect(written).toHaveLength(1);
  });
});

describe("a close", () => {
  test("that could not be written is written again", async () => {
    refuses = true;
    for (const trainer of MEMBERS) contribute(trainer);
    await new Promise(setImmediate);
    expect(failures).toMatchObject([{ code: "NO_BROKER" }]);
    expect(written).toHaveLength(1);
    refuses = false;
    clock.pass(5_000);
    expect(written).toHaveLength(2);
    fold();
    clock.pass(60_000);
    expect(written).toHaveLength(2);
  });

  test("is not written again while it may still be on its way", () => {
    for (const trainer of MEMBERS) contribute(trainer);
    closer.advanced();
    clock.pass(1_000);
    closer.advanced();
    expect(written).toHaveLength(1);
  });

  test("is not written by an owner that has stopped", () => {
    contribute("alice");
    contribute("bob");
    closer.stop();
    clock.pass(60_000);
    expect(written).toEqual([]);
  });

  test("of two owners counts once", () => {
    const other = ownerOf(job);
    for (const trainer of MEMBERS) job.contribute(trainer, 1);
    closer.advanced();
    other.advanced();
    expect(written).toHaveLength(2);
    for (const record of written) job.journal.host(record);
    job.run();
    expect(job.version).toBe(1);
    expect(job.values()).toEqual([-1, -1, -1]);
  });

  test("that an earlier owner has written is not repeated by the next one", () => {
    for (const trainer of MEMBERS) job.contribute(trainer, 1);
    job.close(3);
    const next = ownerOf(job);
    next.advanced();
    clock.pass(60_000);
    expect(written).toEqual([]);
  });
});
