import { change, errorText, jobPath } from "./api.ts";
import { openDialog } from "./dialog.ts";
import { command, fill, head, make } from "./dom.ts";
import { rangesText, timeText } from "./format.ts";
import type { JobView, RewindEntry } from "./job.ts";

/** Lets a job, or a new one, go on from the moment that is shown; without a token it says which commands do that. */
export class GoOn {
  readonly element: HTMLElement = make("section");
  readonly #body: HTMLElement = make("div", { class: "views" });
  readonly #unfinished: HTMLElement = make("div");
  #shown = "";

  constructor() {
    this.element.append(head("Go on from this moment"), this.#unfinished, this.#body);
  }

  /** Shows what can be done at a point of a job's history; undefined for the newest state. */
  update({ name, server, status }: JobView, point: string | undefined, moment: string): void {
    const { canChange } = server;
    const shown = JSON.stringify([name, canChange, point, moment, status?.rewind]);
    // What has not changed keeps the focus that it may have.
    if (shown === this.#shown) return;
    this.#shown = shown;
    fill(this.#unfinished, status?.rewind && unfinishedRewind(name, status.rewind, canChange));
    fill(this.#body, canChange ? buttons(name, point, moment) : commands(name, point));
  }
}

function buttons(job: string, point: string | undefined, moment: string): HTMLElement[] {
  const fork = (): unknown => openFork(job, point ?? "now", moment);
  const rewind = (): unknown => point && openRewind(job, point, moment);
  return [
    make(
      "div",
      { class: "choices" },
      make(
        "div",
        {},
        make("button", { type: "button", class: "primary", onclick: fork }, "Fork a new job …"),
        make(
          "p",
          { class: "soft" },
          `Begins with the model of this moment. Job ${job} goes on as it is.`,
        ),
      ),
      make(
        "div",
        {},
        make(
          "button",
          { type: "button", class: "danger", disabled: point === undefined, onclick: rewind },
          `Rewind job ${job} …`,
        ),
        make(
          "p",
          { class: "soft" },
          point === undefined
            ? "Drag the slider to an earlier moment first."
            : "Gives up all updates after this moment, while hosts and trainers run.",
        ),
      ),
    ),
  ];
}

function commands(job: string, point: string | undefined): HTMLElement[] {
  const at = point === undefined ? "now" : `"${point}"`;
  return [
    make(
      "p",
      { class: "soft" },
      "This page only shows: its server was started without --http-token. These commands go on from here:",
    ),
    command(`pserver fork ${job} --at ${at} --as ${job}-fork`),
    ...(point === undefined ? [] : [command(`pserver rewind --job ${job} --to ${at}`)]),
  ];
}

function unfinishedRewind(
  job: string,
  { begunMs, goneBack, at }: RewindEntry,
  canChange: boolean,
): HTMLElement {
  const shards = `shards ${rangesText(goneBack)} of ${at.length} have gone back`;
  const what = goneBack.length === 0 ? "no shard has gone back" : shards;
  const complete = (): unknown => openEnding(job, "complete");
  const drop = (): unknown => openEnding(job, "drop");
  return make(
    "div",
    { class: "notice warn" },
    make("p", {}, `⚠ A rewind that was begun at ${timeText(begunMs)} is not complete: ${what}.`),
    canChange
      ? make(
          "div",
          { class: "controls" },
          make("button", { type: "button", onclick: complete }, "Complete it …"),
          make("button", { type: "button", onclick: drop }, "Drop it …"),
        )
      : [
          command(`pserver rewind --job ${job} --complete`),
          command(`pserver rewind --job ${job} --drop`),
        ],
  );
}

function openFork(job: string, point: string, moment: string): void {
  const name = make("input", { value: `${job}-fork`, required: true, maxlength: 40, size: 24 });
  const place = make("div");
  const form = make(
    "form",
    {
      onsubmit: (event: Event) => {
        event.preventDefault();
        void run(form, place, jobPath(job, "fork"), { at: point, as: name.value.trim() });
      },
    },
    make(
      "p",
      {},
      `A new job begins with the parameters, values and optimizer state of job ${job}, ${moment}.`,
    ),
    make(
      "div",
      { class: "controls" },
      make("label", { class: "field" }, "Name of the new job", name),
      make("button", { type: "submit", class: "primary" }, "Fork"),
    ),
  );
  openDialog(`Fork job ${job}`, form, place);
  name.select();
}

function openRewind(job: string, point: string, moment: string): void {
  const plan = make("div");
  const place = make("div");
  const form = confirmation(job, "Rewind", (confirm) => {
    void run(form, place, jobPath(job, "rewind"), { to: point, confirm });
  });
  form.hidden = true;
  openDialog(
    `Rewind job ${job}`,
    make("p", {}, `The job goes back to its state ${moment}.`),
    plan,
    form,
    place,
  );
  void run(undefined, plan, jobPath(job, "rewind"), { to: point, dryRun: true }).then((isDone) => {
    form.hidden = !isDone;
    form.querySelector("input")?.focus();
  });
}

function openEnding(job: string, how: "complete" | "drop"): void {
  const place = make("div");
  const what = {
    complete: "All shards go back to the point of the rewind, and give up what came after it.",
    drop: "Shards that have gone back stay there, the others stay as they are: the job may have shards of two times.",
  };
  const verb = how === "complete" ? "Complete" : "Drop";
  const form = confirmation(job, verb, (confirm) => {
    void run(form, place, jobPath(job, "rewind"), { [how]: true, confirm });
  });
  openDialog(`${verb} the rewind of job ${job}`, make("p", {}, what[how]), form, place);
}

/** Makes a form that calls `go` once the job's name has been typed. */
function confirmation(job: string, verb: string, go: (confirm: string) => void): HTMLFormElement {
  const typed = make("input", { required: true, autocomplete: "off", size: 24 });
  const button = make("button", { type: "submit", class: "danger", disabled: true }, verb);
  typed.addEventListener("input", () => {
    button.disabled = typed.value !== job;
  });
  return make(
    "form",
    {
      onsubmit: (event: Event) => {
        event.preventDefault();
        go(typed.value);
      },
    },
    make(
      "div",
      { class: "controls" },
      make("label", { class: "field" }, `Type the job's name, ${job}, to confirm`, typed),
      button,
    ),
  );
}

/** A line of a command that the server runs. */
interface CommandLine {
  readonly kind: "message" | "progress";
  readonly text: string;
}

/**
 * Asks for a change and shows what the command prints; returns whether it was done. The form is closed to the reader
 * meanwhile, and stays so once it was done.
 */
async function run(
  form: HTMLFormElement | undefined,
  place: HTMLElement,
  path: string,
  body: unknown,
): Promise<boolean> {
  const lines = make("pre", { role: "log", tabindex: 0, hidden: true });
  const progress = make("p", { class: "soft told", role: "status" }, "…");
  const controls = form?.querySelectorAll<HTMLInputElement | HTMLButtonElement>("input, button");
  for (const control of controls ?? []) control.disabled = true;
  fill(place, lines, progress);
  const show = ({ kind, text }: CommandLine): void => {
    if (kind === "progress") fill(progress, text);
    else {
      lines.hidden = false;
      lines.append(`${text}\n`);
    }
  };
  let exitCode: number | undefined;
  let isBegun = false;
  try {
    for await (const { event, data } of change(path, body)) {
      isBegun = true;
      if (event === "end") ({ exitCode } = data as { exitCode: number });
      else show(data as CommandLine);
    }
    if (exitCode === 0) fill(progress, form === undefined ? "" : "✓ Done.");
    else if (exitCode === undefined) fill(progress, CUT_OFF);
    else fill(progress, make("span", { class: "bad" }, "✕ It failed: the lines above say why."));
  } catch (error) {
    // Before the first event, the server has refused it.
    const text = isBegun ? `${errorText(error)}. ${CUT_OFF}` : errorText(error);
    fill(progress, make("span", { class: "bad" }, `✕ ${text}`));
  }
  if (exitCode !== 0) for (const control of controls ?? []) control.disabled = false;
  return exitCode === 0;
}

const CUT_OFF = "What was begun goes on at the server; the state of the job shows how it ends.";
