// Proves that every spelling of a point is understood, that what is understood can be given again, and that
// anything else is refused.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatPoint, type Point, parsePoint } from "../../../src/history/points.ts";

import { refusalOf } from "../../protocol/refusal.ts";

const NOW_MS = Date.UTC(2026, 10, 23, 12, 0, 0);

function understood(text: string): Point {
  return parsePoint(text, NOW_MS);
}

function timeOf(text: string): number {
  const point = understood(text);
  return point.kind === "time" ? point.timeMs : Number.NaN;
}

describe("a point", () => {
  test.each([
    ["now", { kind: "now" }],
    ["start", { kind: "start" }],
    ["3:1200", { kind: "position", shard: 3, seq: 1200, generation: undefined }],
    ["3:1200@2", { kind: "position", shard: 3, seq: 1200, generation: 2 }],
    ["step:120", { kind: "step", step: 120 }],
    [
      "trainer-2/8:1042",
      { kind: "update", trainer: "trainer-2", session: 8, n: 1042, shard: undefined },
    ],
    ["a/b/8:1042@3", { kind: "update", trainer: "a/b", session: 8, n: 1042, shard: 3 }],
    ["mark:epoch 3", { kind: "mark", name: "epoch 3" }],
  ] as const)("%s", (text, point) => {
    expect(understood(text)).toEqual(point);
    expect(formatPoint(understood(text))).toBe(text);
  });

  test.each([
    "",
    "yesterday",
    "3:",
    ":5",
    "step:",
    "step:-1",
    "mark:",
    "10m",
    "-10m ago",
    "3:1@",
    "1e3:5",
  ])("is not %j", (text) => {
    expect(refusalOf(() => understood(text))).toMatchObject({
      code: "BAD_VALUE",
      details: { received: text },
    });
  });

  test("of a trainer of any name is the one that was given", () => {
    const name = fc
      .string({ minLength: 1, unit: "grapheme" })
      .filter((text) => !text.startsWith("mark:"));
    fc.assert(
      fc.property(
        name,
        fc.nat(),
        fc.nat(),
        fc.option(fc.nat(999), { nil: undefined }),
        (trainer, session, n, shard) => {
          const point = { kind: "update", trainer, session, n, shard } as const;
          expect(understood(formatPoint(point))).toEqual(point);
        },
      ),
    );
  });
});

describe("a time", () => {
  test.each([
    ["2026-11-23T04:12:07Z", Date.UTC(2026, 10, 23, 4, 12, 7)],
    ["2026-11-23 04:12:07.25Z", Date.UTC(2026, 10, 23, 4, 12, 7, 250)],
    ["2026-11-23T04:12Z", Date.UTC(2026, 10, 23, 4, 12)],
    ["2026-11-23T04:12:07+02:00", Date.UTC(2026, 10, 23, 2, 12, 7)],
    ["2026-11-23T04:12:07-0530", Date.UTC(2026, 10, 23, 9, 42, 7)],
    ["2024-02-29T00:00Z", Date.UTC(2024, 1, 29)],
    ["10m ago", NOW_MS - 600_000],
    ["2h ago", NOW_MS - 7_200_000],
    ["3d ago", NOW_MS - 3 * 86_400_000],
    ["1h30m ago", NOW_MS - 5_400_000],
    ["1.5s ago", NOW_MS - 1_500],
  ])("is %s", (text, timeMs) => {
    expect(timeOf(text)).toBe(timeMs);
  });

  test("without a zone is of this machine's", () => {
    expect(timeOf("2026-11-23")).toBe(new Date(2026, 10, 23).getTime());
    expect(timeOf("2026-11-23 04:12:07")).toBe(new Date(2026, 10, 23, 4, 12, 7).getTime());
  });

  test("keeps parts of a millisecond", () => {
    expect(timeOf("2026-11-23T04:12:07.000250Z")).toBeCloseTo(
      Date.UTC(2026, 10, 23, 4, 12, 7) + 0.25,
      3,
    );
  });

  test.each([
    "2026-02-30",
    "2026-13-01",
    "2026-11-23T24:00Z",
    "2026-11-23T04:61Z",
    "2026-11-23T04",
    "1969-12-31T23:59:59Z",
    "23.11.2026",
  ])("is not %s", (text) => {
    expect(refusalOf(() => understood(text)).code).toBe("BAD_VALUE");
  });

  test("of any millisecond is printed as it can be given", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_102_444_800_000 }), (timeMs) => {
        expect(timeOf(formatPoint({ kind: "time", timeMs }))).toBe(timeMs);
      }),
    );
  });
});
