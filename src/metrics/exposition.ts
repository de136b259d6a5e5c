import type { HistogramCounts } from "./histogram.ts";

/** Labels of a sample: values by name. */
export type Labels = Readonly<Record<string, string | number>>;

/** A number of a family, and the labels that tell it from the others. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** A histogram of a family. */
interface HistogramSample {
  readonly labels: Labels;
  readonly counted: HistogramCounts;
}

/** What every family has. */
interface FamilyHead {
  /** The name without the suffix of its samples: `pserver_records` for the counter `pserver_records_total`. */
  readonly name: string;
  readonly help: string;
}

/** Samples of one name, at one moment. */
export type Family = FamilyHead &
  (
    | { readonly type: "counter" | "gauge" | "info"; readonly samples: readonly Sample[] }
    | {
        readonly type: "histogram";
        /** The largest value of each bucket but the last, ascending. */
        readonly bounds: readonly number[];
        readonly samples: readonly HistogramSample[];
      }
  );

/** A text format for metrics. */
export type ExpositionFormat = "prometheus" | "openmetrics";

/** The content type of each format. */
export const CONTENT_TYPES: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Suffix of the name of each type's samples; a histogram's have several. */
const SUFFIXES = { counter: "_total", gauge: "", info: "_info" } as const;

/** Units that a name may end with, and that OpenMetrics names. */
const UNITS = ["seconds", "bytes"] as const;

/**
 * Writes families in a text format. Families without samples are left out: a scrape then has no number in place of a
 * wrong one.
 */
export function writeExposition(families: readonly Family[], format: ExpositionFormat): string {
  const lines = families.flatMap((family) =>
    family.samples.length === 0 ? [] : [...headLines(family, format), ...sampleLines(family)],
  );
  if (format === "openmetrics") lines.push("# EOF");
  return `${lines.join("\n")}\n`;
}

function headLines({ name, type, help }: Family, format: ExpositionFormat): string[] {
  if (format === "openmetrics") {
    const unit = UNITS.find((each) => name.endsWith(`_${each}`));
    return [
      `# TYPE ${name} ${type}`,
      ...(unit === undefined ? [] : [`# UNIT ${name} ${unit}`]),
      `# HELP ${name} ${escapeText(help)}`,
    ];
  }
  // This format has no information, and names a counter with its suffix.
  const full = type === "histogram" ? name : `${name}${SUFFIXES[type]}`;
  const text = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  return [`# HELP ${full} ${text}`, `# TYPE ${full} ${type === "info" ? "gauge" : type}`];
}

function sampleLines(family: Family): string[] {
  const { name, type } = family;
  if (type === "histogram") {
    return family.samples.flatMap((sample) => histogramLines(name, family.bounds, sample));
  }
  const full = `${name}${SUFFIXES[type]}`;
  return family.samples.map(({ labels, value }) => `${full}${writeLabels(labels)} ${show(value)}`);
}

function histogramLines(
  name: string,
  bounds: readonly number[],
  { labels, counted }: HistogramSample,
): string[] {
  let count = 0;
  const lines = counted.counts.map((each, i) => {
    count += each;
    const le = show(bounds[i] ?? Number.POSITIVE_INFINITY, true);
    return `${name}_bucket${writeLabels({ ...labels, le })} ${count}`;
  });
  const shown = writeLabels(labels);
  return [...lines, `${name}_sum${shown} ${show(counted.sum)}`, `${name}_count${shown} ${count}`];
}

function writeLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([label, value]) => `${label}="${escapeText(String(value))}"`,
  );
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escapeText(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** Writes a number; as a bound of a bucket with a point, as OpenMetrics asks. */
function show(value: number, isBound = false): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  if (value === Number.NEGATIVE_INFINITY) return "-Inf";
  return isBound && Number.isInteger(value) ? value.toFixed(1) : String(value);
}

/**
 * Chooses the format that a client's `Accept` header prefers. Without a preference it is that of Prometheus, which
 * people can read in a browser, too.
 */
export function chooseFormat(accept: string | undefined): ExpositionFormat {
  let openMetrics = 0;
  let text = 0;
  for (const range of (accept ?? "").split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const parameterOf = (name: string): string | undefined =>
      parameters.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
    const quality = Number(parameterOf("q") ?? 1);
    const version = parameterOf("version") ?? "1.0.0";
    if (type === "application/openmetrics-text" && version === "1.0.0") {
      openMetrics = Math.max(openMetrics, quality);
    } else if (["text/plain", "text/*", "*/*"].includes(type)) text = Math.max(text, quality);
  }
  return openMetrics > 0 && openMetrics >= text ? "openmetrics" : "prometheus";
}
