// Proves what a shard keeps when it becomes the first state of another job's shard: rules, values, optimizer
// slots, versions and declarations; and what it loses: trainers, outcomes, steps, and gradients of a step
// that has not closed. Hosts can restore the remaining state and continue from it.
import { expect, test } from "vitest";
import type { Shard } from "../../../src/actors/fold/shard.ts";
import { encodeClock } from "../../../src/protocol/messages/records.ts";
import { elementsOf, Folded, slotsOf } from "./folded.ts";
import { SHARD, SUBJECTS } from "./journal-writer.ts";

const CONFIG = { learningRate: 1, optimizer: "momentum" };

function values(folded: Folded): number[] {
  return [...elementsOf(folded.block().slotBytes(0), Float32Array)];
}

test("a shard of an async job keeps all but its trainers", () => {
  const folded = new Folded();
  folded.journal.init(Float32Array.of(1, 2), { config: CONFIG });
  folded.journal.push(Float32Array.of(1, 1), { op: "grad" });
  folded.apply();
  const before = { slots: slotsOf(folded.block()).map((bytes) => bytes.slice()) };
  const { version, updates } = folded.block();
  const state = folded.shard.saveState();
  expect(folded.shard.detach()).toBe(0);
  expect(folded.shard.saveState()).toEqual({ ...state, seq: 0, crc: 0, trainers: [] });
  expect({ slots: slotsOf(folded.block()) }).toEqual(before);
  expect(folded.block()).toMatchObject({ version, updates });
  expect(folded.restored().digest()).toBe(folded.shard.digest());
});

test("unreadable records and ended sessions are forgotten", () => {
  const folded = new Folded();
  folded.journal.init(Float32Array.of(1), { session: 3 });
  folded.journal.host({ verb: "sessions", upTo: 5, live: [3] });
  folded.journal.append(SUBJECTS.log(SHARD, "alice", "push", "w", 0), Uint8Array.of(1, 2, 3));
  folded.apply();
  expect(folded.shard.saveState()).toMatchObject({ floor: 5, live: [3], unreadable: 1 });
  folded.shard.detach();
  const after = folded.shard.saveState();
  expect(after).toMatchObject({ floor: 0, unreadable: 0, trainers: [] });
  expect(after).not.toHaveProperty("live");
  expect(after).not.toHaveProperty("unreadableOf");
});

/** A shard of a sync job with one closed step; if `open`, with alice's gradient of the next one. */
function afterStep(open: boolean): Folded {
  const folded = new Folded({ mode: "sync", trainers: 2 });
  const { journal } = folded;
  journal.init(Float32Array.of(1, 1), { config: CONFIG, trainer: "init" });
  journal.host({ verb: "members", revision: 1, started: true, trainers: ["alice", "bob"] });
  for (const trainer of ["alice", "bob"]) {
    journal.push(Float32Array.of(1, 1), { op: "grad", step: 1 }, { trainer });
  }
  journal.clock("alice", 1);
  journal.clock("bob", 1);
  const operation = { op: "grad", step: 2, lr: 3 } as const;
  if (open) journal.push(Float32Array.of(8, 8), operation, { trainer: "alice" });
  folded.apply();
  return folded;
}

test("gradients of an open step are discarded, and steps begin anew with other members", () => {
  const folded = afterStep(true);
  const before = values(folded);
  const { version, updates } = folded.block();
  expect(folded.block().accumulated).toBe(1);
  expect(folded.shard.detach()).toBe(1);
  expect(values(folded)).toEqual(before);
  expect(folded.block()).toMatchObject({ version, updates, accumulated: 0 });
  const steps = { revision: 0, started: false, closed: 0, members: [], participants: [] };
  expect(folded.shard.saveState().steps).toEqual(steps);
  expect(folded.shard.synchronization.mode).toBe("sync");

  const forked = folded.restored();
  const other = stepOf(forked, 1);
  expect(other.w).toEqual(stepOf(afterStep(false).shard, 2).w);
  expect(other.closed).toBe(1);
});

/** Lets carol alone make the next step of a shard; the values after it. */
function stepOf(shard: Shard, step: number): { w: number[]; closed: number } {
  const writer = new Folded().journal;
  const from = writer.records.length;
  writer.host({ verb: "members", revision: 9, started: true, trainers: ["carol"] });
  writer.push(Float32Array.of(1, 1), { op: "grad", step }, { trainer: "carol" });
  const clock = { verb: "clock", session: 1, n: 2, done: 0, reply: "", step } as const;
  writer.append(SUBJECTS.clock(SHARD, "carol"), encodeClock(clock));
  for (const record of writer.records.slice(from)) {
    const settled = shard.apply({ ...record, seq: shard.seq + 1 });
    expect(settled?.outcome.code).toBeUndefined();
  }
  const bytes = shard.block("w", 0)?.slotBytes(0) ?? new Uint8Array(0);
  return { w: [...elementsOf(bytes, Float32Array)], closed: shard.steps.closed };
}
