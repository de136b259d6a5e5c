// Proves that a line of `pserver log` never exceeds the terminal, from 60 to 250 columns, whatever names and
// messages are in it; that a narrow one still says why an update was not applied; that each date is named
// once; and that colours add no columns.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UpdateLines } from "../../../src/cli/history/update-columns.ts";
import { makePaint } from "../../../src/cli/output/colors.ts";
import { textWidth } from "../../../src/cli/output/wrap.ts";
import { event, note } from "./events.ts";

const plain = (width: number) => ({ paint: makePaint(false), width });

function linesOf(width: number, ...events: ReturnType<typeof event>[]): string[] {
  const table = UpdateLines.of(plain(width));
  return [table.titles(), ...events.flatMap((each) => table.lines(each))];
}

test("all columns in a wide terminal", () => {
  expect(linesOf(200, event())).toMatchInlineSnapshot(`
    [
      "TIME          RECORD        TRAINER                 UPDATE         PARAMETER                          BYTES      NORM       MIN       MAX      MEAN   ZEROS  VERSION  BEHIND  OUTCOME",
      "2026-11-23 UTC",
      "04:12:07.250  3:1200        trainer-2/8:1042        grad lr 0.1    fc1.weight[0]                   11.7 KiB     15.94      -0.5    0.4996   4.48e-4      1%       17       2  applied",
    ]
  `);
});

test("the most important ones in 80 columns", () => {
  expect(
    linesOf(80, event(), note({ loss: 0.25, step: 12, mark: "before" })),
  ).toMatchInlineSnapshot(`
    [
      "TIME      RECORD    TRAINER         UPDATE     PARAMETER          NORM  OUTCOME",
      "2026-11-23 UTC",
      "04:12:07  3:1200    tra…r-2/8:1042  grad… 0.1  fc1.weight[0]     15.94  applied",
      "04:12:07  3:1200    tra…r-2/8:1042  note       loss=0.25 step=12 mark="before"",
    ]
  `);
});

test("a sender that is too long keeps its session and number", () => {
  const [, , line] = linesOf(80, event({ trainer: "evaluator-with-a-long-name" }));
  expect(line).toContain("  eva…ame/8:1042  ");
});

test("what a guard has done is told, with norm and limit where there is no room beside the others", () => {
  const guard = { norm: 15.94, limit: 3.5, median: 1.25, norms: 32, others: 0, entry: 0 };
  const reason = "norm 15.94 above 3.5, median 1.25 of 32";
  const clipped = event({ guard: { ...guard, action: "clip" } });
  const aside = event({ outcome: { kind: "set-aside" }, guard: { ...guard, action: "set-aside" } });
  const [, , first, second, third, fourth] = linesOf(80, clipped, aside);
  expect(first).toMatch(/ clipped$/);
  expect(second).toMatch(new RegExp(`^ +clipped: ${reason}$`));
  expect(third).toMatch(/ aside$/);
  expect(fourth).toMatch(new RegExp(`^ +set aside: ${reason}$`));
  const told = note({ fragment: "f" }, { guard: { ...guard, others: 2, action: "clip" } });
  expect(linesOf(200, told)[2]).toContain(`fragment="f" (clipped: ${reason}, and 2 more norms`);
  const [, , note80, reason80] = linesOf(80, told);
  expect(note80).toMatch(/fragment="f" \(clipped\)$/);
  expect(reason80).toMatch(/^ +clipped: norm 15.94 above 3.5, /);
});

test("values that are not finite are told in any width, and least and largest only together", () => {
  const { block } = event();
  const statistics = { norm: 1, min: 0, max: 1, mean: 0.5, zeros: 0, nonFinite: 12 };
  const ill = event({ ...(block && { block: { ...block, statistics } }) });
  expect(linesOf(80, ill)[2]).toMatch(/ NaN\/inf$/);
  expect(linesOf(200, ill)[2]).toMatch(/ 12 not finite$/);
  for (let width = 60; width <= 200; width++) {
    const [titles = ""] = linesOf(width);
    expect(titles.includes("MIN")).toBe(titles.includes("MAX"));
  }
});

test("a wider terminal shows each column that a narrower one shows", () => {
  let narrower: string[] = [];
  for (let width = 60; width <= 250; width++) {
    const shown = linesOf(width)[0]?.split(/ +/) ?? [];
    expect(shown, `${width} columns`).toEqual(expect.arrayContaining(narrower));
    narrower = shown;
  }
  expect(narrower).toHaveLength(14);
});

test("no line exceeds the terminal", () => {
  const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(
      fc.integer({ min: 60, max: 250 }),
      text,
      text,
      text,
      (width, trainer, parameter, message) => {
        const { block } = event();
        const given = event({
          trainer,
          outcome: { kind: "rejected", code: "BAD_VALUE", message },
          ...(block && { block: { ...block, parameter } }),
        });
        for (const line of linesOf(width, given, note({ [parameter]: message }))) {
          expect(textWidth(line)).toBeLessThanOrEqual(width);
        }
      },
    ),
  );
});

describe("an update that was not applied", () => {
  const rejected = event({
    outcome: { kind: "rejected", code: "NON_FINITE", message: "expected finite elements" },
  });

  test("has its reason in its line, or below it where there is no room", () => {
    expect(linesOf(120, rejected).join("\n")).toContain("NON_FINITE");
    const narrow = linesOf(60, rejected);
    expect(narrow).toHaveLength(4);
    expect(narrow[3]).toContain("NON_FINITE: expected finite elements");
  });

  test("is red", () => {
    const table = UpdateLines.of({ paint: (style, text) => `<${style}>${text}`, width: 160 });
    expect(table.lines(rejected)[1]).toContain("<fail>NON_FINITE");
  });
});

test("a date is named once, and a new one again", () => {
  const later = event({ timeMs: Date.UTC(2026, 10, 24, 0, 0, 1) });
  const lines = linesOf(100, event(), event(), later);
  expect(lines.filter((line) => line.endsWith(" UTC"))).toEqual([
    "2026-11-23 UTC",
    "2026-11-24 UTC",
  ]);
});

test("a record of a batch, of another generation, of a host", () => {
  const batch = event({ entry: 4, entries: 9, generation: 2 });
  expect(linesOf(200, batch)[2]).toContain("3:1200@2.4");
  const { block: _block, trainer: _trainer, ...host } = event();
  expect(linesOf(200, { ...host, verb: "rules" } as never)[2]).toMatch(/host +rules/);
});

test("terminal control sequences are escaped", () => {
  expect(linesOf(200, note({ text: "\u001b[2J" })).join("")).not.toContain("\u001b");
  expect(linesOf(200, event({ trainer: "a\u202eb" })).join("")).not.toContain("\u202e");
});
