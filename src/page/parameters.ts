import { ask, askInTurn, errorText, jobPath } from "./api.ts";
import { type Column, fill, head, link, make, statusLine, table } from "./dom.ts";
import { countText, numberText, shapeText, timeText } from "./format.ts";
import type { JobView } from "./job.ts";
import { LineChart } from "./line-chart.ts";
import type { View } from "./view.ts";

const CHART_HEIGHT = 300;

/** Parameters that are listed. */
const SHOWN_MAX = 200;

/** A parameter as the list shows it. */
interface ParameterEntry {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly ready: boolean;
}

/** What a parameter's values were like at some time. */
interface Sample {
  readonly timeMs: number;
  readonly norm: number | string;
  readonly min?: number;
  readonly max?: number;
}

/** Who moved an element, as `pserver blame --json` prints it, with the largest changes. */
interface BlameEntry {
  readonly last: number | string | null;
  readonly changes: number;
  readonly largest: readonly {
    readonly time: string;
    readonly kind: string;
    readonly trainer?: string;
    readonly before: number | string | null;
    readonly after: number | string | null;
    readonly change: number | string | null;
  }[];
  readonly trainers: readonly {
    readonly trainer: string;
    readonly changes: number;
    readonly sum: number | string;
  }[];
}

/** Lists a job's parameters; of one it shows how its values changed, and who moved an element. */
export function parameters(): View {
  const filter = make("input", { size: 20, type: "search" });
  const list = make("div");
  const told = statusLine();
  const detail = make("section", { hidden: true, tabindex: -1 });
  const element = make(
    "div",
    { class: "views" },
    make(
      "section",
      {},
      head("Parameters"),
      make("div", { class: "controls" }, make("label", {}, "Name contains", filter)),
      list,
      told,
    ),
    detail,
  );
  let job: string | undefined;
  let count: number | undefined;
  let all: readonly ParameterEntry[] = [];
  filter.addEventListener("input", show);

  async function load(name: string): Promise<void> {
    try {
      const path = jobPath(name, "parameters");
      ({ parameters: all } = await ask<{ parameters: ParameterEntry[] }>(
        path,
        AbortSignal.timeout(15_000),
      ));
      show();
    } catch (error) {
      fill(told, `✕ ${errorText(error)}`);
    }
  }

  function show(): void {
    const found = all.filter(({ name }) => name.includes(filter.value));
    const rows = found.slice(0, SHOWN_MAX);
    const columns: Column<ParameterEntry>[] = [
      {
        title: "name",
        className: "name",
        cell: ({ name }) => link(name, () => open(name), `show ${name}`),
      },
      { title: "type", cell: ({ dtype }) => dtype },
      { title: "shape", cell: ({ shape }) => shapeText(shape) },
      {
        title: "elements",
        isNumber: true,
        cell: ({ shape }) => numberText(shape.reduce((product, size) => product * size, 1)),
      },
      {
        title: "state",
        cell: ({ ready }) =>
          ready
            ? make("span", { class: "good" }, "● ready")
            : make("span", { class: "warn" }, "◐ not initialized"),
      },
    ];
    const none = all.length === 0 ? "No parameter has been declared yet." : "No parameter fits.";
    fill(list, table("Parameters", columns, rows, none));
    const isCut = found.length > rows.length;
    fill(told, isCut ? `${rows.length} of ${countText(found.length, "parameter")} are shown.` : "");
  }

  let shown = new AbortController();

  function open(name: string): void {
    const entry = all.find((each) => each.name === name);
    if (job === undefined || entry === undefined) return;
    detail.hidden = false;
    shown.abort();
    shown = new AbortController();
    showParameter(detail, job, entry, shown.signal);
    detail.focus();
  }

  return {
    element,
    update: ({ name, status }: JobView) => {
      const isNew = name !== job || status?.parameters.count !== count;
      if (name !== job) {
        detail.hidden = true;
        shown.abort();
      }
      job = name;
      count = status?.parameters.count;
      if (isNew) void load(name);
    },
  };
}

/** Shows a parameter; what is asked for it is given up when the signal is aborted. */
function showParameter(
  place: HTMLElement,
  job: string,
  { name, shape }: ParameterEntry,
  signal: AbortSignal,
): void {
  const chart = new LineChart(CHART_HEIGHT);
  const told = statusLine("The journal is folded once more …");
  const index = make("input", {
    size: 10,
    value: shape.map(() => 0).join(","),
    "aria-label": "indices of the element",
  });
  const blame = make("div");
  fill(
    place,
    head(name, make("p", { class: "soft" }, shapeText(shape))),
    chart.element,
    told,
    make(
      "form",
      {
        class: "controls",
        onsubmit: (event: Event) => {
          event.preventDefault();
          const of = shape.length === 0 ? name : `${name}[${index.value}]`;
          void showBlame(blame, job, of, signal);
        },
      },
      make("label", {}, "Element", index),
      make("button", { type: "submit" }, "Who moved it?"),
    ),
    blame,
  );
  askInTurn<{ samples: Sample[] }>(jobPath(job, "parameter", { name }), signal).then(
    ({ samples }) => {
      const x = samples.map(({ timeMs }) => timeMs);
      const lines = [
        { name: "norm", x, y: samples.map(({ norm }) => (typeof norm === "number" ? norm : null)) },
        { name: "min", x, y: samples.map(({ min }) => min ?? null) },
        { name: "max", x, y: samples.map(({ max }) => max ?? null) },
      ];
      const label = `norm, least and largest value of ${name} by time`;
      chart.show({ lines, by: "time", isLog: false, label });
      fill(told, "The L2 norm, and the least and the largest value, as updates changed them.");
    },
    (error: unknown) => {
      if (!signal.aborted) fill(told, `✕ ${errorText(error)}`);
    },
  );
}

async function showBlame(
  place: HTMLElement,
  job: string,
  of: string,
  signal: AbortSignal,
): Promise<void> {
  fill(place, statusLine("The journal is folded once more …"));
  try {
    const found = await askInTurn<BlameEntry>(jobPath(job, "blame", { of }), signal);
    fill(
      place,
      make(
        "p",
        {},
        `${of}: changed ${countText(found.changes, "time")}, now ${numberText(found.last)}.`,
      ),
      table("Sums by trainer", SUMS, found.trainers, "No trainer changed it."),
      table("Largest changes", CHANGES, found.largest, "Nothing changed it."),
    );
  } catch (error) {
    if (!signal.aborted) fill(place, make("p", { class: "bad" }, `✕ ${errorText(error)}`));
  }
}

const SUMS: readonly Column<BlameEntry["trainers"][number]>[] = [
  { title: "trainer", className: "name", cell: ({ trainer }) => trainer },
  { title: "changes", isNumber: true, cell: ({ changes }) => numberText(changes) },
  { title: "sum of changes", isNumber: true, cell: ({ sum }) => numberText(sum) },
];

const CHANGES: readonly Column<BlameEntry["largest"][number]>[] = [
  { title: "time", cell: ({ time }) => timeText(Date.parse(time)) },
  { title: "by", className: "name", cell: ({ trainer, kind }) => trainer ?? kind },
  { title: "before", isNumber: true, cell: ({ before }) => numberText(before) },
  { title: "after", isNumber: true, cell: ({ after }) => numberText(after) },
  { title: "change", isNumber: true, cell: ({ change }) => numberText(change) },
];
