import { ask, askInTurn, errorText, jobPath } from "./api.ts";
import { openDialog } from "./dialog.ts";
import { type Column, fill, head, link, make, refill, statusLine, table } from "./dom.ts";
import { bytesText, numberText, timeText } from "./format.ts";
import type { JobView, UpdateEntry } from "./job.ts";
import type { View } from "./view.ts";

/** Updates that are listed. */
const SHOWN_MAX = 200;

/** Updates that are asked for when a job is opened, or a filter is set. */
const ASKED = 200;

/** Lists the updates of a job, the newest first, and shows one in full. */
export function events(): View {
  const trainer = make("input", { size: 12 });
  const parameter = make("input", { size: 16 });
  const outcome = make(
    "select",
    {},
    ["all", "applied", "set-aside", "rejected", "repeated"].map((name) => make("option", {}, name)),
  );
  const paused = make("input", { type: "checkbox" });
  const list = make("div");
  const told = statusLine();
  const untold = statusLine();
  const element = make(
    "section",
    {},
    head(
      "Updates",
      make("p", { class: "soft" }, `The newest ${SHOWN_MAX}, notes included; the newest first`),
    ),
    make(
      "form",
      { class: "controls", onsubmit: (event: Event) => event.preventDefault() },
      make("label", {}, "Trainer", trainer),
      make("label", {}, "Parameter", parameter),
      make("label", {}, "Outcome", outcome),
      make("label", {}, paused, "Pause"),
    ),
    untold,
    list,
    told,
  );
  let job: string | undefined;
  let earlier: readonly UpdateEntry[] = [];
  let asking = new AbortController();
  let last: JobView | undefined;

  async function load(): Promise<void> {
    if (job === undefined) return;
    asking.abort();
    asking = new AbortController();
    const { signal } = asking;
    const query: Record<string, string> = { limit: String(ASKED) };
    if (trainer.value !== "") query["trainer"] = trainer.value;
    if (parameter.value !== "") query["param"] = parameter.value;
    try {
      const path = jobPath(job, "last", query);
      ({ updates: earlier } = await ask<{ updates: UpdateEntry[] }>(path, signal));
      fill(told);
    } catch (error) {
      if (!signal.aborted) fill(told, `✕ ${errorText(error)}`);
    }
    show();
  }
  for (const control of [trainer, parameter]) control.addEventListener("change", () => void load());
  outcome.addEventListener("change", show);

  function show(): void {
    const live = (last?.updates ?? []).filter(isWanted);
    const known = new Set(live.map(keyOf));
    const before = earlier.filter((update) => isWanted(update) && !known.has(keyOf(update)));
    const rows = [...before, ...live].slice(-SHOWN_MAX).reverse();
    refill(list, table("Updates", columnsFor(job ?? ""), rows, noneText()));
  }

  function noneText(): string {
    if (last?.limited !== undefined) return "This user of the broker may not read updates.";
    const isFiltered = trainer.value !== "" || parameter.value !== "" || outcome.value !== "all";
    return isFiltered
      ? "No update fits: clear a field to see others."
      : "Nothing has been updated yet.";
  }

  function isWanted(update: UpdateEntry): boolean {
    if (trainer.value !== "" && update.trainer !== trainer.value) return false;
    if (parameter.value !== "" && update.parameter !== parameter.value) return false;
    return outcome.value === "all" || update.outcome === outcome.value;
  }

  return {
    element,
    update: (view: JobView) => {
      const isOther = view.name !== job;
      job = view.name;
      if (isOther) void load();
      const hasTape = view.status === undefined || view.status.tape !== undefined;
      fill(
        untold,
        hasTape
          ? ""
          : "This job has no tape: updates are listed when this view is opened, not as they come.",
      );
      if (paused.checked) return;
      last = view;
      show();
    },
  };
}

function keyOf({ shard, generation, seq, entry }: UpdateEntry): string {
  return `${shard}:${seq}@${generation}/${entry}`;
}

function columnsFor(job: string): readonly Column<UpdateEntry>[] {
  return [
    { title: "time", cell: ({ time }) => timeText(Date.parse(time)) },
    {
      title: "record",
      hint: "SHARD:SEQ, as commands take it",
      cell: ({ shard, seq, generation }) => {
        const place = `${shard}:${seq}${generation === 1 ? "" : `@${generation}`}`;
        return link(place, () => void showUpdate(job, place), `show update ${place}`);
      },
    },
    { title: "trainer", className: "name", cell: ({ trainer }) => trainer ?? "a host" },
    { title: "kind", cell: ({ verb }) => verb },
    { title: "parameter or note", className: "name", cell: whatOf },
    {
      title: "norm",
      hint: "the L2 norm of what was sent",
      isNumber: true,
      cell: ({ norm }) => numberText(norm),
    },
    {
      title: "behind",
      hint: "versions by which the values were older that it was computed from",
      isNumber: true,
      cell: ({ behind }) => numberText(behind),
    },
    {
      title: "size",
      hint: "bytes of its elements",
      isNumber: true,
      cell: ({ bytes }) => (bytes === undefined ? "–" : bytesText(bytes)),
    },
    { title: "outcome", cell: outcomeOf },
  ];
}

function whatOf({ parameter, block, note }: UpdateEntry): string {
  if (note !== undefined) return noteText(note);
  if (parameter === undefined) return "";
  return block === undefined || block === 0 ? parameter : `${parameter} block ${block}`;
}

function noteText(note: NonNullable<UpdateEntry["note"]>): string {
  const valueText = (value: unknown): string =>
    typeof value === "number" ? numberText(value) : JSON.stringify(value);
  return Object.entries(note)
    .map(([name, value]) => `${name} ${valueText(value)}`)
    .join(" · ");
}

function outcomeOf({ outcome, code, message, guard, limit }: UpdateEntry): HTMLElement {
  if (outcome === "applied" && guard !== undefined) {
    const title = `a guard has clipped it to a norm of ${numberText(limit)}`;
    return make("span", { class: "warn", title }, "✂ clipped");
  }
  if (outcome === "applied") return make("span", { class: "good" }, "✓ applied");
  if (outcome === "set-aside") {
    const title = `its norm is above the limit of a guard, ${numberText(limit)}`;
    return make("span", { class: "warn", title }, "⚠ set aside");
  }
  if (outcome !== "rejected") return make("span", { class: "soft" }, `○ ${outcome}`);
  return make("span", { class: "bad", title: message }, `✕ ${code ?? outcome}`);
}

/** Shows everything about one update in a dialog. */
async function showUpdate(job: string, at: string): Promise<void> {
  const body = make("pre", { tabindex: 0 }, "The record is folded once more …");
  const ended = new AbortController();
  const dialog = openDialog(`Update ${at}`, body);
  void dialog.closed.then(() => ended.abort());
  try {
    const found = await askInTurn<unknown>(jobPath(job, "update", { at }), ended.signal);
    fill(body, JSON.stringify(found, null, 2));
  } catch (error) {
    if (!ended.signal.aborted) fill(body, `✕ ${errorText(error)}`);
  }
}
