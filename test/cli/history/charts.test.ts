// Proves that a chart shows what was noted, in bounded memory: values by time and by step, least and largest
// of joined neighbours, named notes; that its lines fit terminals of 40 to 240 columns; that without colours
// letters distinguish the trainers; and that names cannot break out of SVG and HTML.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { niceTicks, yAxis } from "../../../src/cli/history/chart-axes.ts";
import { htmlPage, svgChart } from "../../../src/cli/history/svg-chart.ts";
import { terminalChart } from "../../../src/cli/history/terminal-chart.ts";
import { makePaint, makePaintRank } from "../../../src/cli/output/colors.ts";
import { textWidth } from "../../../src/cli/output/wrap.ts";
import { type Chart, ChartCollector } from "../../../src/history/reports/chart.ts";
import { event, note } from "./events.ts";

function lossCollector(by: "time" | "step", scale: "linear" | "log" = "linear"): ChartCollector {
  return new ChartCollector({ title: "loss", by, scale });
}

function losses(count: number, by: "time" | "step" = "time", trainers = ["a", "b"]): Chart {
  const collector = lossCollector(by);
  for (let i = 0; i < count; i++) {
    for (const [k, trainer] of trainers.entries()) {
      const mark = i === 3 && k === 0 ? { mark: "here" } : {};
      collector.add(
        note({ loss: 10 / (i + 1) + k, step: i, ...mark }, { trainer, timeMs: 1e12 + i * 1000 }),
      );
    }
  }
  return collector.chart();
}

function drawn(chart: Chart, width: number, isColored = false): string[] {
  const look = { paint: makePaint(isColored), width };
  return terminalChart(chart, look, makePaintRank(isColored), isColored);
}

describe("the collector", () => {
  test("takes numbers of applied notes, by time or by step", () => {
    const chart = losses(5, "step");
    expect(chart.series.map(({ name, points }) => [name, points.map(({ x }) => x)])).toEqual([
      ["a", [0, 1, 2, 3, 4]],
      ["b", [0, 1, 2, 3, 4]],
    ]);
    expect(chart).toMatchObject({
      x: { min: 0, max: 4 },
      y: { min: 2, max: 11 },
      labels: [{ x: 3, name: "here" }],
    });
    const collector = lossCollector("time");
    collector.add(note({ accuracy: 1 }));
    collector.add(note({ loss: "low" }));
    collector.add(note({ loss: 1 }, { outcome: { kind: "repeated", seq: 4 } }));
    collector.add(event());
    expect(collector.chart().series).toEqual([]);
  });

  test("compares jobs: a line for each, by the time since its first value or mark", () => {
    const collector = new ChartCollector({ title: "loss", by: "elapsed", scale: "linear" });
    for (const [job, startMs] of [
      ["slow", 1e12],
      ["fast", 2e12],
    ] as const) {
      collector.add(event({ timeMs: startMs - 9_000 }), job);
      collector.add(note({ mark: "begin" }, { trainer: "a", timeMs: startMs }), job);
      for (const [i, trainer] of ["a", "b"].entries()) {
        collector.add(note({ loss: i + 1 }, { trainer, timeMs: startMs + 500 * i }), job);
      }
    }
    const points = [
      { x: 0, mean: 1, count: 1 },
      { x: 500, mean: 2, count: 1 },
    ];
    const chart = collector.chart();
    expect(chart).toMatchObject({
      x: { min: 0, max: 500 },
      series: [
        { name: "fast", points },
        { name: "slow", points },
      ],
      labels: [
        { x: 0, name: "slow: begin" },
        { x: 0, name: "fast: begin" },
      ],
    });
    const page = htmlPage(chart, { jobs: ["slow", "fast"], source: "s", madeMs: 0 });
    expect(page).toContain("<title>loss of jobs slow, fast</title>");
    expect(page).toContain("<tr><th>job</th>");
  });

  test("norms are of a trainer and a parameter", () => {
    const collector = new ChartCollector({ title: "norm", by: "time", scale: "linear" });
    collector.add(event());
    collector.add(note({ loss: 1 }));
    expect(collector.chart().series).toMatchObject([
      { name: "trainer-2 fc1.weight", points: [{ mean: 15.94 }] },
    ]);
  });

  test("joins neighbours, and loses neither extreme nor mean", () => {
    const collector = lossCollector("step");
    const values = Array.from({ length: 20_000 }, (_, i) => Math.sin(i) + (i === 7_777 ? 50 : 0));
    for (const [step, loss] of values.entries()) collector.add(note({ loss, step }));
    const [{ points } = { points: [] }] = collector.chart().series;
    expect(points.length).toBeLessThanOrEqual(4096);
    expect(points.reduce((sum, { count }) => sum + count, 0)).toBe(20_000);
    expect(Math.max(...points.map(({ max }) => max))).toBe(Math.max(...values));
    const mean = points.reduce((sum, each) => sum + each.mean * each.count, 0) / 20_000;
    expect(mean).toBeCloseTo(values.reduce((sum, value) => sum + value, 0) / 20_000, 9);
    const few = new ChartCollector({ title: "loss", by: "step", scale: "linear" }, 3);
    for (const [step, loss] of [1, 3, 5, 7].entries()) few.add(note({ loss, step }));
    expect(few.chart().series[0]?.points).toEqual([
      { x: 0, min: 1, max: 3, mean: 2, count: 2 },
      { x: 2, min: 5, max: 7, mean: 6, count: 2 },
    ]);
  });
});

describe("values that are not finite", () => {
  function diverged(): Chart {
    const collector = lossCollector("step");
    for (const [step, loss] of [1, 2, "NaN", "-Infinity"].entries()) {
      collector.add(note({ loss, step }, { trainer: "a" }));
    }
    collector.add(note({ loss: "nan", step: 9 }, { trainer: "b" }));
    collector.add(note({ loss: "unknown", step: 9 }, { trainer: "b" }));
    return collector.chart();
  }

  test("have a place below, and none on the vertical axis", () => {
    expect(diverged()).toMatchObject({
      notFinite: [
        { x: 2, name: "a" },
        { x: 3, name: "a" },
        { x: 9, name: "b" },
      ],
      notFiniteCount: 3,
      x: { min: 0, max: 9 },
      y: { min: 1, max: 2 },
      series: [
        { name: "a", points: [{ mean: 1 }, { mean: 2 }] },
        { name: "b", points: [] },
      ],
    });
  });

  test("are norms of gradients with elements that are not finite", () => {
    const collector = new ChartCollector({ title: "norm", by: "time", scale: "linear" });
    const { block } = event();
    const statistics = { norm: 0, min: 0, max: 0, mean: 0, zeros: 0, nonFinite: 9 };
    collector.add(event(block === undefined ? {} : { block: { ...block, statistics } }));
    expect(collector.chart()).toMatchObject({ notFiniteCount: 1, series: [{ points: [] }] });
  });

  test("are crosses at the upper edge", () => {
    const [heading = "", top = "", ...others] = drawn(diverged(), 60);
    expect(heading).toContain("× not finite: 3");
    expect(top.match(/×/g)).toHaveLength(3);
    expect(others.join("")).not.toContain("×");
    expect(svgChart(diverged()).match(/>×</g)).toHaveLength(3);
    expect(htmlPage(diverged(), { jobs: ["j"], source: "s", madeMs: 0 })).not.toContain("Infinity");
  });

  test("are kept in bounded number, and counted", () => {
    const collector = lossCollector("step");
    for (let step = 0; step < 5_000; step++) collector.add(note({ loss: "NaN", step }));
    const { notFinite, notFiniteCount } = collector.chart();
    expect([notFinite.length, notFiniteCount]).toEqual([4_096, 5_000]);
  });
});

describe("in a terminal", () => {
  test("80 columns without colours", () => {
    expect(drawn(losses(30, "step"), 80)).toMatchInlineSnapshot(`
      [
        "loss by step",
        "                   here",
        "        11 │b      ┊",
        "           │a      ┊",
        "           │       ┊",
        "           │       ┊",
        "           │       ┊",
        "           │       ┊",
        "           │       ┊",
        "           │       ┊",
        "           │  b    ┊",
        "     5.667 │       ┊",
        "           │  a    ┊",
        "           │    b  ┊",
        "           │    a  b",
        "           │       ┊ b",
        "           │       a   b  b b b",
        "           │       ┊ a a         b b b  b b b  b b b  b",
        "           │       ┊      a a a  a                      b b  b b b  b b b  b b b",
        "    0.3333 │       ┊               a a  a a a  a a a  a a a  a a a  a a a  a a a",
        "           └────────────────────────────────────────────────────────────────────",
        "            0                      10                     20",
        "a a 0.3333   b b 1.333",
      ]
    `);
  });

  test("no line exceeds the width, whatever is drawn", () => {
    const value = fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e30, max: 1e30 });
    fc.assert(
      fc.property(
        fc.integer({ min: 40, max: 240 }),
        fc.array(fc.tuple(fc.string({ maxLength: 40 }), value, fc.nat(1e6)), {
          minLength: 1,
          maxLength: 30,
        }),
        fc.boolean(),
        (width, values, isColored) => {
          const collector = lossCollector("step");
          for (const [trainer, loss, step] of values) {
            collector.add(note({ loss, step, mark: trainer }, { trainer }));
          }
          const lines = drawn(collector.chart(), width, isColored);
          for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width);
        },
      ),
    );
  });

  test("colours where there are some, letters where there are none", () => {
    const colored = drawn(losses(5), 80, true).join("\n");
    expect(colored).toContain("\u001b[36m");
    expect(colored).toMatch(/[\u2801-\u28ff]/);
    const letters = drawn(losses(5), 80).join("\n");
    expect(letters).not.toContain("\u001b");
    expect(letters).toMatch(/a (?:.|\n)*b /);
  });

  test("one value, and values that are all the same", () => {
    for (const chart of [losses(1, "step", ["a"]), losses(1, "time")]) {
      expect(drawn(chart, 80).length).toBeGreaterThan(18);
    }
  });
});

describe("as a picture", () => {
  const hostile = '<script>alert("1")</script>&\u0007\u202e\u2066';

  test("the names of trainers and marks are text", () => {
    const collector = lossCollector("time");
    collector.add(note({ loss: 1, mark: hostile }, { trainer: hostile }));
    const chart = collector.chart();
    const origin = { jobs: [hostile], source: "the broker", madeMs: 0 };
    for (const text of [svgChart(chart), htmlPage({ ...chart, title: hostile }, origin)]) {
      expect(text).not.toContain("<script");
      expect(text).toContain("&lt;script&gt;");
      for (const raw of ["\u0007", "\u202e", "\u2066"]) expect(text).not.toContain(raw);
      expect(text).toContain("\\u202e");
    }
  });

  test("the page needs no network", () => {
    const page = htmlPage(losses(5), { jobs: ["j"], source: "the broker", madeMs: 0 });
    const addresses = [...page.matchAll(/https?:\/\/[^"\s]+/g)].map(([address]) => address);
    expect(addresses).toEqual(["http://www.w3.org/2000/svg"]);
    expect(page).not.toMatch(/<(?:script|link|img|iframe)/);
  });

  test("names of lines neither cover each other nor leave the picture, however many there are", () => {
    const trainers = Array.from({ length: 60 }, (_, i) => `t${i} ${"layer.".repeat(i % 7)}weight`);
    const svg = svgChart(losses(3, "step", trainers));
    const [width = 0, height = 0] = (/viewBox="0 0 (\d+) (\d+)"/.exec(svg) ?? [])
      .slice(1)
      .map(Number);
    const key = '<line class="line" .*x1="(\\d+)" .*y1="(\\d+)".*\\n<text x="(\\d+)".*>(.+)<';
    const names = [...svg.matchAll(new RegExp(key, "g"))];
    expect(names).toHaveLength(32);
    expect(svg).toContain(">and 28 more<");
    let [right, row] = [0, 0];
    for (const [, left, y, x, name = ""] of names) {
      const isNewRow = Number(y) > row;
      expect(Number(left)).toBeGreaterThan(isNewRow ? 0 : right);
      right = Number(x) + 7 * name.length;
      row = Number(y);
      expect(right).toBeLessThan(width);
      expect(row).toBeLessThan(height - 8);
    }
  });

  test("lines of one colour differ in their dashes", () => {
    const trainers = Array.from({ length: 30 }, (_, i) => `t${i}`);
    const svg = svgChart(losses(3, "step", trainers));
    const styles = [...svg.matchAll(/<polyline class="line" (.*) points/g)].map(
      ([, style]) => style,
    );
    expect(new Set(styles).size).toBe(30);
  });

  test("a named note before the first value is within the picture", () => {
    const collector = lossCollector("step");
    collector.add(note({ step: 1, mark: "begin" }));
    for (const step of [5, 6]) collector.add(note({ step, loss: 1 }));
    expect(collector.chart().x).toEqual({ min: 1, max: 6 });
    expect(svgChart(collector.chart())).toContain('class="mark" x1="72"');
  });

  test("a line for each trainer, its range where values are joined", () => {
    expect(svgChart(losses(5)).match(/<polyline/g)).toHaveLength(2);
    expect(svgChart(losses(5))).not.toContain("<polygon");
    expect(svgChart(losses(5000, "step", ["a"]))).toContain("<polygon");
  });
});

describe("on a logarithmic scale", () => {
  /** A loss of 1000 that falls to a tenth at each step. */
  function falling(steps: number, ...others: number[]): Chart {
    const collector = lossCollector("step", "log");
    for (let step = 0; step < steps; step++) collector.add(note({ loss: 10 ** (3 - step), step }));
    for (const loss of others) collector.add(note({ loss, step: steps }));
    return collector.chart();
  }

  test("equal ratios have equal distances", () => {
    const lines = drawn(falling(7), 80);
    expect(lines[0]).toBe("loss by step, logarithmic");
    const rows = lines.flatMap((line, row) => (/│.*a/.test(line) ? [row] : []));
    expect(rows).toHaveLength(7);
    const distances = rows.slice(1).map((row, i) => row - (rows[i] as number));
    for (const distance of distances) expect(distance).toBeOneOf([2, 3, 4]);
    const labels = lines.flatMap((line) => /^ *(\S+) │/.exec(line)?.[1] ?? []);
    expect(labels).toEqual(["1000", "1", "1e-3"]);
    const svg = svgChart(falling(7));
    expect([...svg.matchAll(/"end">([^<]+)</g)].map(([, tick]) => Number(tick))).toEqual([
      0.01, 1, 100,
    ]);
    const [, points = ""] = /points="([^"]+)"/.exec(svg) ?? [];
    const heights = points.split(" ").map((point) => Number(point.split(",")[1]));
    const steps = heights.slice(1).map((y, i) => y - (heights[i] as number));
    for (const step of steps) expect(step).toBeCloseTo(steps[0] as number, 1);
  });

  test("values of 0 or less are left out, and counted", () => {
    expect(falling(3, 0, -1)).toMatchObject({ leftOut: 2, y: { min: 10, max: 1000 } });
    expect(falling(0, 0)).toMatchObject({ leftOut: 1, series: [] });
    expect(losses(3).leftOut).toBe(0);
  });

  test("values within one power of ten have ticks, and equal ones a line", () => {
    const near = lossCollector("step", "log");
    for (const [step, loss] of [2, 3, 5].entries()) near.add(note({ loss, step }));
    expect(yAxis(near.chart()).ticks(5)).toEqual([2, 3, 4, 5]);
    const equal = lossCollector("step", "log");
    for (const step of [1, 2]) equal.add(note({ loss: 1, step }));
    const axis = yAxis(equal.chart());
    expect(axis.fraction(1)).toBe(0.5);
    expect(axis.value(0.5)).toBe(1);
  });

  test("an axis has any positive values between its ends", () => {
    const positive = fc.double({ min: 1e-300, max: 1e300, noNaN: true });
    fc.assert(
      fc.property(fc.array(positive, { minLength: 1, maxLength: 20 }), (values) => {
        const collector = lossCollector("step", "log");
        for (const [step, loss] of values.entries()) collector.add(note({ loss, step }));
        const axis = yAxis(collector.chart());
        for (const value of values) {
          expect(axis.fraction(value)).toBeGreaterThanOrEqual(0);
          expect(axis.fraction(value)).toBeLessThanOrEqual(1);
          const ratio = axis.value(axis.fraction(value)) / value;
          expect(ratio).toBeGreaterThan(0.999);
          expect(ratio).toBeLessThan(1.001);
        }
        expect(axis.ticks(5).length).toBeLessThanOrEqual(12);
      }),
    );
  });
});

test("an axis of elapsed time is in the unit that its length asks for", () => {
  const ticks = (endMs: number): string[] => {
    const collector = new ChartCollector({ title: "loss", by: "elapsed", scale: "linear" });
    for (const timeMs of [7, 7 + endMs]) collector.add(note({ loss: 1 }, { timeMs }));
    const texts = [...svgChart(collector.chart()).matchAll(/"middle">([^<]+)</g)];
    return texts.map(([, text = ""]) => text);
  };
  expect(ticks(100_000)).toEqual(["0 s", "20 s", "40 s", "60 s", "80 s", "100 s"]);
  expect(ticks(600_000)).toEqual(["0 min", "2 min", "4 min", "6 min", "8 min", "10 min"]);
  expect(ticks(7 * 3_600_000).at(-1)).toBe("7 h");
});

test("ticks are round and within the axis", () => {
  expect(niceTicks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(niceTicks(-3, 11, 4)).toEqual([0, 5, 10]);
  expect(niceTicks(5, 5, 4)).toEqual([5]);
});
