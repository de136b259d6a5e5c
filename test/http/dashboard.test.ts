// Proves that the dashboard and the alert rules ask only for metrics and labels that `/metrics` has, and for all of the
// metrics, and that the table in the documents is that of the metrics.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { NO_COUNTS } from "../../src/actors/owner/owner-counters.ts";
import { packageRoot } from "../../src/broker/broker-config.ts";
import { hostMetrics } from "../../src/http/host-metrics.ts";
import { WatchedHosts } from "../../src/http/watched-hosts.ts";
import type { Family } from "../../src/metrics/exposition.ts";
import { hostOf, reportOf, shardOf } from "./reports.ts";

/** All metrics, each with samples. */
function allMetrics(): Family[] {
  const at = { generation: 1, seq: 1 };
  const hosts = new WatchedHosts("j");
  const report = reportOf({
    shards: [shardOf(0, { closedStep: 1 })],
    whole: { tapeBytes: 1, members: 1, archived: [[{ record: at, snapshot: at }]] },
    counts: {
      ...NO_COUNTS,
      records: { push: { applied: 1 } },
      rejected: { LATE: 1 },
      trainers: [["a", { applied: 1, rejected: 0, pushedBytes: 1 }]],
    },
  });
  hosts.set("host", hostOf(report));
  return hostMetrics(hosts, { version: "1", node: "20" });
}

/** The labels of each name under which samples can be asked for. */
function labelsByName(): Map<string, ReadonlySet<string>> {
  const labels = new Map<string, ReadonlySet<string>>();
  for (const family of allMetrics()) {
    const [sample] = family.samples;
    if (sample === undefined) throw new Error(`${family.name} has no sample`);
    const own = Object.keys(sample.labels);
    const put = (suffix: string, ...more: string[]): void => {
      labels.set(`${family.name}${suffix}`, new Set([...own, ...more]));
    };
    if (family.type === "counter") put("_total");
    else if (family.type === "info") put("_info");
    else if (family.type === "gauge") put("");
    else {
      put("_bucket", "le");
      put("_sum");
      put("_count");
    }
  }
  return labels;
}

const KNOWN = labelsByName();

const read = (...path: string[]): string => readFileSync(join(packageRoot(), ...path), "utf8");

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const dashboard = JSON.parse(read("deploy", "grafana", "pserver.json")) as {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly query: unknown }[] };
};

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const rules = (
  parse(read("deploy", "prometheus", "rules.yml")) as {
    readonly groups: readonly { readonly rules: readonly Rule[] }[];
  }
).groups.flatMap((group) => group.rules);

const expressions: readonly (readonly [title: string, expression: string, texts: string])[] = [
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr, legendFormat }) => [title, expr, legendFormat] as const),
  ),
  ...rules.map(({ alert, expr, annotations }) => {
    return [alert, expr, Object.values(annotations).join(" ")] as const;
  }),
];

function namesIn(expression: string): string[] {
  return expression.match(/\bpserver_\w+/g) ?? [];
}

test("there are expressions of both", () => {
  expect(rules.length).toBeGreaterThan(10);
  expect(expressions.length - rules.length).toBeGreaterThan(20);
});

describe.each(expressions)("%s: %s", (_title, expression, texts) => {
  test("asks for metrics that there are", () => {
    const names = namesIn(expression);
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !KNOWN.has(name))).toEqual([]);
  });

  test("selects, groups and shows by labels that these have", () => {
    const labels = new Set(namesIn(expression).flatMap((name) => [...(KNOWN.get(name) ?? [])]));
    const groups = [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].map(
      ([, list = ""]) => list,
    );
    const selected = [...expression.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(
      ([, label]) => label,
    );
    const shown = [...texts.matchAll(/\{\{ *(?:\$labels\.)?(\w+) *\}\}/g)].map(
      ([, label]) => label,
    );
    const used = [...groups.flatMap((list) => list.split(/,\s*/)), ...selected, ...shown];
    expect(used.filter((label) => !labels.has(label ?? ""))).toEqual([]);
  });
});

test("the variable of the dashboard asks for a metric and label that there are", () => {
  const text = JSON.stringify(dashboard.templating);
  const [, name = "", label = ""] = /label_values\((\w+), (\w+)\)/.exec(text) ?? [];
  expect(KNOWN.get(name)?.has(label)).toBe(true);
});

test("the dashboard shows every metric but those of single trainers", () => {
  const used = new Set(
    dashboard.panels.flatMap(({ targets = [] }) => targets.flatMap(({ expr }) => namesIn(expr))),
  );
  const unused = allMetrics().filter(
    ({ name }) =>
      !name.startsWith("pserver_trainer_") && ![...used].some((each) => each.startsWith(name)),
  );
  expect(unused.map(({ name }) => name)).toEqual([]);
});

test("docs/reference/metrics.md has a row for each metric, as `/metrics` describes it", () => {
  const rows = allMetrics().map((family) => {
    const labels = Object.keys(family.samples[0]?.labels ?? {}).map((label) => `\`${label}\``);
    const suffix = { counter: "_total", info: "_info", gauge: "", histogram: "" }[family.type];
    return `| \`${family.name}${suffix}\` | ${family.type} | ${labels.join(", ")} | ${family.help} |`;
  });
  const text = read("docs", "reference", "metrics.md");
  expect(text.split("\n").filter((line) => line.startsWith("| `pserver_"))).toEqual(rows);
});
