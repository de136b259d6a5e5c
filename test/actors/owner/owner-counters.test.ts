// Proves what the owners of a worker count of the records that they fold: each record once, under its verb and outcome,
// whatever happens to it, and only while the shard is served.
import { beforeEach, expect, test } from "vitest";
import { addCounts, NO_COUNTS, OwnerCounters } from "../../../src/actors/owner/owner-counters.ts";
import { Folded } from "../fold/folded.ts";
import { SUBJECTS } from "../fold/journal-writer.ts";

let folded: Folded;
let isServing: boolean;

/** A shard with the block "w" of 4 elements, whose records from now on are counted. */
function counted(countsTrainers = false): OwnerCounters {
  const counters = new OwnerCounters(countsTrainers);
  folded.run();
  folded.shard.observers = [counters.observerOf(() => isServing)];
  return counters;
}

beforeEach(() => {
  isServing = true;
  folded = new Folded();
  folded.journal.init(new Float32Array(4));
});

test("records by verb and outcome", () => {
  const counters = counted();
  const push = folded.journal.push(new Float32Array(4), { op: "grad", lr: 1 });
  folded.journal.append(push.subject, push.payload);
  folded.journal.push(new Float32Array(3), { op: "grad", lr: 1 });
  folded.journal.push(Float32Array.of(1, Number.NaN, 1, 1), { op: "grad", lr: 1 });
  folded.journal.set(new Float32Array(4));
  folded.journal.note({ loss: 1 });
  folded.journal.host({ verb: "floor", session: 1 });
  folded.journal.append(push.subject, Uint8Array.of(1));
  folded.journal.append("elsewhere", Uint8Array.of(1));
  folded.run();
  const { records, rejected, pushedBytes } = counters.counted;
  expect(records).toEqual({
    push: { applied: 1, repeated: 1, rejected: 2, unreadable: 1 },
    set: { applied: 1 },
    note: { applied: 1 },
    floor: { applied: 1 },
    unknown: { unreadable: 1 },
  });
  expect(rejected).toEqual({ BAD_LENGTH: 1, NON_FINITE: 1 });
  expect(pushedBytes).toBe(16 + 16 + 12 + 16 + 16);
});

test("what guards do, by action, and each record once", () => {
  const counters = counted();
  for (const action of ["clip", "set-aside"] as const) {
    const guard = { factor: 2, window: 4, warmup: 1, action };
    folded.journal.init(new Float32Array(1), { parameter: action, config: { guard } });
    for (const norm of [1, 9, 9]) {
      const data = Float32Array.of(norm);
      const push = folded.journal.push(data, { op: "grad", lr: 1 }, { parameter: action });
      if (norm === 9) folded.journal.append(push.subject, push.payload);
    }
  }
  folded.run();
  expect(counters.counted.guarded).toEqual({ clip: 2, "set-aside": 2 });
  expect(addCounts(counters.counted, counters.counted).guarded).toEqual({
    clip: 4,
    "set-aside": 4,
  });
});

test("nothing of a shard that is not served: who served it then has counted that", () => {
  isServing = false;
  const counters = counted();
  folded.journal.push(new Float32Array(4), { op: "grad", lr: 1 });
  folded.run();
  expect(counters.counted).toEqual(NO_COUNTS);
  isServing = true;
  folded.journal.push(new Float32Array(4), { op: "grad", lr: 1 });
  folded.run();
  expect(counters.counted.records).toEqual({ push: { applied: 1 } });
});

test("how many versions a gradient is behind, of a block alone and in a batch", () => {
  const counters = counted();
  const version = folded.block().version;
  for (const seen of [version, version, undefined]) {
    folded.journal.push(new Float32Array(4), { op: "grad", lr: 1, seen });
  }
  folded.apply();
  const { counts, sum } = counters.counted.histograms.stalenessVersions;
  // The first names the newest version, the second one that is one behind, the third none.
  expect([counts[0], counts[1], sum]).toEqual([1, 1, 1]);
  expect(counts.reduce((all, count) => all + count)).toBe(2);
});

test("trainers one by one only if that is asked for", () => {
  const counters = counted(true);
  folded.journal.push(new Float32Array(4), { op: "grad", lr: 1 });
  folded.journal.push(new Float32Array(3), { op: "grad", lr: 1 });
  folded.journal.append(SUBJECTS.clock(3, "__proto__"), Uint8Array.of(1));
  folded.run();
  const [[id, counts] = ["", undefined]] = counters.counted.trainers;
  expect(counters.counted.trainers).toHaveLength(1);
  expect(id).not.toBe("");
  expect(counts).toEqual({ applied: 1, rejected: 1, pushedBytes: 28 });
});

test("counts of several workers add up", () => {
  const counters = counted(true);
  folded.journal.push(new Float32Array(4), { op: "grad", lr: 1 });
  folded.journal.push(new Float32Array(3), { op: "grad", lr: 1 });
  folded.run();
  counters.observe("foldSeconds", 0.25);
  counters.pulled(7);
  counters.tookOver();
  const twice = addCounts(counters.counted, counters.counted);
  expect(twice.records).toEqual({ push: { applied: 2, rejected: 2 } });
  expect(twice.rejected).toEqual({ BAD_LENGTH: 2 });
  expect([twice.pushedBytes, twice.pulledBytes, twice.takeOvers]).toEqual([56, 14, 2]);
  expect(twice.histograms.foldSeconds.sum).toBe(0.5);
  expect(twice.trainers).toMatchObject([[expect.any(String), { applied: 2, rejected: 2 }]]);
  expect(addCounts(NO_COUNTS, twice)).toEqual(twice);
});
