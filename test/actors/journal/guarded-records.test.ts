// Proves that what a guard has decided about a record is told with it: norm, limit and history, in events and on the
// tape, in the entry of a batch that it is about.
import { describe, expect, test } from "vitest";
import { foldDescribed, type UpdateEvent } from "../../../src/actors/journal/describe-record.ts";
import { decodeTape } from "../../../src/actors/journal/tape/tape-decoder.ts";
import { TapeEncoder } from "../../../src/actors/journal/tape/tape-encoder.ts";
import { encodeMessage } from "../../../src/protocol/codec.ts";
import type { GuardAction, GuardInput } from "../../../src/protocol/config/index.ts";
import { Folded } from "../fold/folded.ts";
import { both, DESCENT, FragmentJob } from "../fold/fragments/fragment-job.ts";
import { SHARD } from "../fold/journal-writer.ts";

const TWICE: GuardInput = { factor: 2, window: 8, warmup: 2 };
const GRADIENT = { kind: "push", operation: { op: "grad" } } as const;

/** Folds what was not folded yet; returns the events of the last record, which the tape has as well. */
function lastEvents(job: Folded): readonly UpdateEvent[] {
  const records = job.journal.records.slice(job.shard.seq);
  const place = { shard: SHARD, generation: 1 };
  const described = records.map((record) => {
    return foldDescribed(job.shard, { ...record, timeMs: 1000 }, place).events;
  });
  const events = described.at(-1) ?? [];
  const encoder = new TapeEncoder(1, (events[0]?.seq ?? 1) - 1);
  encoder.add(events, true);
  const { fields, data } = encoder.take();
  expect(decodeTape(encodeMessage({ ...fields }, data), SHARD).events).toEqual(events);
  return events;
}

function pushed(action: GuardAction): readonly UpdateEvent[] {
  const job = new Folded();
  job.journal.init(new Float32Array(2), { config: { guard: { ...TWICE, action } } });
  for (const norm of [1, 1, 9]) {
    job.journal.push(Float32Array.of(0, norm), { op: "grad", lr: 1 });
  }
  return lastEvents(job);
}

const MARK = { norm: 9, limit: 2, median: 1, norms: 2, others: 0, entry: 0 };

describe("a gradient", () => {
  test.each([
    ["reject", { kind: "rejected", code: "GUARDED" }],
    ["clip", { kind: "applied" }],
    ["set-aside", { kind: "set-aside" }],
  ] as const)("is told with the guard's decision: %s", (action, outcome) => {
    const [event] = pushed(action);
    expect(event).toMatchObject({ outcome, guard: { action, ...MARK } });
    expect(event?.block?.statistics?.norm).toBe(9);
  });
});

describe("a batch", () => {
  function batched(action: GuardAction): readonly UpdateEvent[] {
    const job = new Folded();
    const parameters = ["a", "b", "c", "d"];
    for (const parameter of parameters) {
      const config = {
        learningRate: 1,
        ...(parameter === "a" ? {} : { guard: { ...TWICE, action } }),
      };
      job.journal.init(new Float32Array(1), { parameter, config });
    }
    for (const norms of [
      [1, 1, 1, 1],
      [1, 1, 1, 1],
      [50, 5, 9, 1],
    ]) {
      const updates = parameters.map((parameter, i) => {
        return { parameter, data: Float32Array.of(norms[i] ?? 0), change: GRADIENT };
      });
      job.journal.batch(updates);
    }
    return lastEvents(job);
  }

  test("that is clipped is marked in the entry that is furthest above its limit", () => {
    const events = batched("clip");
    expect(events.map(({ guard }) => guard)).toEqual([
      ...[undefined, undefined, { action: "clip", ...MARK, others: 1, entry: 2 }, undefined],
    ]);
  });

  test.each(["reject", "set-aside"] as const)("that is held back is one event: %s", (action) => {
    const events = batched(action);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      ...{ block: { parameter: "c" }, guard: { action, ...MARK, others: 1 } },
    });
  });
});

test.each(["reject", "clip", "set-aside"] as const)(
  "a contribution names the tensor: %s",
  (action) => {
    const job = new FragmentJob({}, { ...DESCENT, guard: { ...TWICE, action, history: "cohort" } });
    for (let base = 0; base < 2; base++) {
      job.contribute("alice", 1, 1, { base });
      job.close(1);
    }
    job.journal.contribute({ base: 2 }, both(1, 8), { trainer: "bob" });
    const [event] = lastEvents(job);
    expect(event?.note).toMatchObject({ fragment: "f", guarded: "w" });
    expect(event?.guard).toMatchObject({ action, norms: 2 });
    expect(event?.guard?.norm).toBeCloseTo(8 * Math.sqrt(3), 9);
    const kinds = { reject: "rejected", clip: "applied", "set-aside": "set-aside" };
    expect(event?.outcome.kind).toBe(kinds[action]);
  },
);
