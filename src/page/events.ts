import { ask, askInTurn, errorText, jobPath } from "./api.ts";
import { type Column, fill, link, make, table } from "./dom.ts";
import { bytesText, numberText, timeText } from "./format.ts";
import type { JobView, UpdateEntry, View } from "./job.ts";

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
    ["all", "applied", "rejected", "repeated"].map((name) => make("option", {}, name)),
  );
  const paused = make("input", { type: "checkbox" });
  const list = make("div");
  const told = make("p", { class: "soft", role: "status" });
  const element = make(
    "section",
    {},
    make("h2", {}, "Updates"),
    make(
      "form",
      { class: "controls", onsubmit: (event: Event) => event.preventDefault() },
      make("label", {}, "trainer", trainer),
      make("label", {}, "parameter", parameter),
      make("label", {}, "outcome", outcome),
      make("label", {}, paused, "pause"),
    ),
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
      if (!signal.aborted) fill(told, errorText(error));
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
    fill(list, table("Updates", columnsFor(job ?? ""), rows, "No update fits."));
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
      title: "update",
      cell: ({ shard, seq, generation }) => {
        const place = `${shard}:${seq}${generation === 1 ? "" : `@${generation}`}`;
        return link(place, () => void showUpdate(job, place), `show update ${place}`);
      },
    },
    { title: "trainer", className: "name", cell: ({ trainer }) => trainer ?? "a host" },
    { title: "what", cell: ({ verb }) => verb },
    { title: "parameter", className: "name", cell: whatOf },
    { title: "norm", isNumber: true, cell: ({ norm }) => numberText(norm) },
    { title: "behind", isNumber: true, cell: ({ behind }) => numberText(behind) },
    {
      title: "size",
      isNumber: true,
      cell: ({ bytes }) => (bytes === undefined ? "–" : bytesText(bytes)),
    },
    { title: "outcome", cell: outcomeOf },
  ];
}

function whatOf({ parameter, block, note }: UpdateEntry): string {
  if (note !== undefined) return JSON.stringify(note);
  if (parameter === undefined) return "";
  return block === undefined || block === 0 ? parameter : `${parameter} block ${block}`;
}

function outcomeOf({ outcome, code, message }: UpdateEntry): HTMLElement {
  if (outcome === "applied") return make("span", { class: "good" }, "✓ applied");
  if (outcome !== "rejected") return make("span", { class: "soft" }, `○ ${outcome}`);
  return make("span", { class: "bad", title: message }, `✕ ${code ?? outcome}`);
}

/** Shows everything about one update in a dialog. */
async function showUpdate(job: string, at: string): Promise<void> {
  const dialog = document.querySelector<HTMLDialogElement>("#dialog");
  if (dialog === null) return;
  const ended = new AbortController();
  dialog.addEventListener("close", () => ended.abort(), { once: true });
  const body = make("pre", { tabindex: 0 }, "The record is folded once more …");
  fill(
    dialog,
    make("h2", {}, `Update ${at}`),
    body,
    make(
      "form",
      { method: "dialog", class: "controls" },
      make("button", { type: "submit" }, "Close"),
    ),
  );
  dialog.showModal();
  try {
    const found = await askInTurn<unknown>(jobPath(job, "update", { at }), ended.signal);
    fill(body, JSON.stringify(found, null, 2));
  } catch (error) {
    if (!ended.signal.aborted) fill(body, errorText(error));
  }
}
