// Proves what each detector finds and what it lets pass: above all that a trainer's norms are compared with
// its own, of the same block, and that one spike does not hide the next.
import { describe, expect, test } from "vitest";
import type { UpdateEvent, UpdateOutcome } from "../../../src/actors/journal/describe-record.ts";
import { detectorOf, type FindingKind } from "../../../src/history/update-findings.ts";

interface Given {
  readonly trainer?: string;
  readonly parameter?: string;
  readonly norm?: number;
  readonly nonFinite?: number;
  readonly behind?: number;
  readonly outcome?: UpdateOutcome;
}

function gradient(seq: number, given: Given): UpdateEvent {
  const { trainer = "a", parameter = "w", norm = 1, nonFinite = 0, behind, outcome } = given;
  return {
    ...{ timeMs: seq, shard: 0, generation: 1, seq, entry: 0, entries: 1, verb: "push" },
    ...{ outcome: outcome ?? { kind: "applied" }, trainer, session: 1, n: seq },
    block: {
      ...{ parameter, index: 0, operation: { op: "grad", lr: undefined }, dtype: "float32" },
      ...{ encoding: undefined, part: undefined, elements: 4, bytes: 16, version: seq, behind },
      statistics: { norm, min: -norm, max: norm, mean: 0, zeros: 0, nonFinite },
    },
  };
}

test("guarded: what a guard has rejected, clipped or set aside", () => {
  const guard = { norm: 9, limit: 2, median: 1, norms: 8, others: 0, entry: 0 };
  const detect = detectorOf("guarded", { deviations: 6, behind: 10 });
  for (const action of ["reject", "clip", "set-aside"] as const) {
    const mark = { action, ...guard };
    expect(detect({ ...gradient(1, {}), guard: mark })).toMatchObject({ kind: "guarded", mark });
  }
  expect(detect(gradient(1, { norm: 1e9 }))).toBeUndefined();
});

/** The numbers of the updates that are found. */
function found(kind: FindingKind, updates: readonly Given[]): number[] {
  const detect = detectorOf(kind, { deviations: 6, behind: 10 });
  return updates.flatMap((given, i) => detect(gradient(i + 1, given))?.event.seq ?? []);
}

const usual = (count: number, given: Given = {}): Given[] =>
  Array.from({ length: count }, (_, i) => ({ norm: 1 + 0.1 * Math.sin(i), ...given }));

describe("spike", () => {
  test("a norm ten times that of before, and the next one as well", () => {
    expect(
      found("spike", [...usual(20), { norm: 10 }, ...usual(5), { norm: 10 }, { norm: 0 }]),
    ).toEqual([21, 27, 28]);
  });

  test("another trainer's or block's larger norms are usual for it", () => {
    const large = Array.from({ length: 20 }, () => ({ trainer: "b", norm: 50 }));
    const other = Array.from({ length: 20 }, () => ({ parameter: "v", norm: 90 }));
    const mixed = usual(20).flatMap((each, i) => [each, large[i] ?? {}, other[i] ?? {}]);
    expect(found("spike", mixed)).toEqual([]);
    expect(found("spike", [...mixed, { norm: 50 }, { trainer: "b", norm: 51 }])).toEqual([61]);
  });

  test("the first norms, norms that grow slowly, and rejected updates are no spikes", () => {
    expect(found("spike", [...usual(7), { norm: 1000 }])).toEqual([]);
    expect(
      found(
        "spike",
        Array.from({ length: 300 }, (_, i) => ({ norm: 1.01 ** i })),
      ),
    ).toEqual([]);
    const outcome = { kind: "rejected", code: "LATE", message: "" } as const;
    expect(found("spike", [...usual(20), { norm: 99, outcome }])).toEqual([]);
  });

  test("says how far it is away", () => {
    const detect = detectorOf("spike", { deviations: 6, behind: 0 });
    for (const [i, given] of usual(20, { norm: 2 }).entries()) detect(gradient(i, given));
    expect(detect(gradient(99, { norm: 4 }))).toMatchObject({ norm: 4, mean: 2, deviations: 100 });
  });
});

test("nan: applied and rejected alike", () => {
  const outcome = { kind: "rejected", code: "NON_FINITE", message: "no" } as const;
  expect(found("nan", [{}, { nonFinite: 1 }, { nonFinite: 3, outcome }])).toEqual([2, 3]);
});

test("stale: above the bound, if the gradient says it", () => {
  expect(found("stale", [{}, { behind: 10 }, { behind: 11 }])).toEqual([3]);
});

test("rejected and repeated", () => {
  const outcomes: UpdateOutcome[] = [
    { kind: "applied" },
    { kind: "rejected", code: "LATE", message: "late" },
    { kind: "repeated", seq: 1 },
    { kind: "unreadable" },
  ];
  const updates = outcomes.map((outcome) => ({ outcome }));
  expect(found("rejected", updates)).toEqual([2, 4]);
  expect(found("repeat", updates)).toEqual([3]);
});
