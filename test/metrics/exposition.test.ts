// Proves that metrics are written as Prometheus and OpenMetrics define them, and that the format follows `Accept`.
import { describe, expect, test } from "vitest";
import { chooseFormat, type Family, writeExposition } from "../../src/metrics/exposition.ts";
import { addHistograms, Histogram } from "../../src/metrics/histogram.ts";

function waits(...values: number[]): Family {
  const histogram = new Histogram([0.5, 1, 10]);
  for (const value of values) histogram.observe(value);
  return {
    ...{ name: "wait_seconds", type: "histogram", help: "Waits.", bounds: [0.5, 1, 10] },
    samples: [{ labels: { job: "j" }, counted: histogram.counted }],
  };
}

const FAMILIES: readonly Family[] = [
  {
    ...{ name: "a_build", type: "info", help: "Versions." },
    samples: [{ labels: { version: "1" }, value: 1 }],
  },
  {
    ...{ name: "a_read_bytes", type: "counter", help: 'A "quoted"\\\ntext.' },
    samples: [
      { labels: { trainer: 'a"\\\n' }, value: 3 },
      { labels: {}, value: 1e21 },
    ],
  },
  { name: "a_gauge", type: "gauge", help: "None.", samples: [] },
  waits(0.5, 0.75, 10, 11),
];

const HISTOGRAM = [
  'wait_seconds_bucket{job="j",le="0.5"} 1',
  'wait_seconds_bucket{job="j",le="1.0"} 2',
  'wait_seconds_bucket{job="j",le="10.0"} 3',
  'wait_seconds_bucket{job="j",le="+Inf"} 4',
  'wait_seconds_sum{job="j"} 22.25',
  'wait_seconds_count{job="j"} 4',
];

test("Prometheus's text", () => {
  expect(writeExposition(FAMILIES, "prometheus").split("\n")).toEqual([
    "# HELP a_build_info Versions.",
    "# TYPE a_build_info gauge",
    'a_build_info{version="1"} 1',
    '# HELP a_read_bytes_total A "quoted"\\\\\\ntext.',
    "# TYPE a_read_bytes_total counter",
    'a_read_bytes_total{trainer="a\\"\\\\\\n"} 3',
    "a_read_bytes_total 1e+21",
    "# HELP wait_seconds Waits.",
    "# TYPE wait_seconds histogram",
    ...HISTOGRAM,
    "",
  ]);
});

test("OpenMetrics", () => {
  expect(writeExposition(FAMILIES, "openmetrics").split("\n")).toEqual([
    "# TYPE a_build info",
    "# HELP a_build Versions.",
    'a_build_info{version="1"} 1',
    "# TYPE a_read_bytes counter",
    "# UNIT a_read_bytes bytes",
    '# HELP a_read_bytes A \\"quoted\\"\\\\\\ntext.',
    'a_read_bytes_total{trainer="a\\"\\\\\\n"} 3',
    "a_read_bytes_total 1e+21",
    "# TYPE wait_seconds histogram",
    "# UNIT wait_seconds seconds",
    "# HELP wait_seconds Waits.",
    ...HISTOGRAM,
    "# EOF",
    "",
  ]);
});

test("histograms with the same bounds add up", () => {
  const [a, b] = [new Histogram([1]), new Histogram([1])];
  a.observe(1);
  b.observe(0);
  b.observe(4);
  expect(addHistograms(a.counted, b.counted)).toEqual({ counts: [2, 1], sum: 5 });
});

describe("the format of", () => {
  test.each([
    [undefined, "prometheus"],
    ["", "prometheus"],
    ["*/*", "prometheus"],
    ["text/html,application/xhtml+xml,*/*;q=0.8", "prometheus"],
    // What Prometheus 2.42 sends.
    [
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75," +
        "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
      "openmetrics",
    ],
    ["application/openmetrics-text;version=0.0.1", "prometheus"],
    ["text/plain, application/openmetrics-text;version=1.0.0;q=0.5", "prometheus"],
    ["application/openmetrics-text;version=1.0.0;q=0", "prometheus"],
  ])("%s is %s", (accept, format) => {
    expect(chooseFormat(accept)).toBe(format);
  });
});
