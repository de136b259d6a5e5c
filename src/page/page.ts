import { ask, errorText, jobPath, listen } from "./api.ts";
import { charts } from "./charts.ts";
import { fill, make } from "./dom.ts";
import { events } from "./events.ts";
import type { JobStatus, JobView, ServerFacts, UpdateEntry } from "./job.ts";
import { moment } from "./moment.ts";
import { overview } from "./overview.ts";
import { parameters } from "./parameters.ts";
import { Rates } from "./rates.ts";
import { trainers } from "./trainers.ts";
import type { View } from "./view.ts";

// The page: one job in tabs. The address names both, as `#JOB/TAB`. What happens comes as server-sent events; each view
// asks for the rest itself.

/** Updates that are kept to be shown. */
const KEPT_UPDATES = 2_000;

/** Pause before a broken stream is opened again, and how long the server may take to list its jobs. */
const AGAIN_MS = 3_000;
const ASK_MS = 15_000;

/** How often the jobs of the broker are listed. */
const JOBS_MS = 15_000;

/** How often views are drawn at most, and how long they are not while the reader presses something. */
const DRAW_MS = 500;
const PRESS_MS = 1_000;

/** How long after updates were left out, sums over the newest ones are too small. */
const PARTIAL_MS = 15_000;

const VIEWS: Readonly<Record<string, () => View>> = {
  Overview: overview,
  Trainers: trainers,
  Charts: charts,
  Updates: events,
  Parameters: parameters,
  "Time travel": moment,
};

const TABS = Object.keys(VIEWS);

function byId<Found extends HTMLElement>(id: string): Found {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as Found;
}

const main = byId("main");
const tabs = byId("tabs");
const jobs = byId<HTMLSelectElement>("job");
const told = byId("link");
const heard = byId("heard");
const limits = byId("limits");

const views = new Map<string, View>();
let server: ServerFacts = { version: "", job: "", canChange: false };
let job = "";
let tab = TABS[0] ?? "";
let status: JobStatus | undefined;
let rates = new Rates();
let updates: UpdateEntry[] = [];
let limited: string | undefined;
let heardMs = 0;
let droppedMs = 0;
let following = new AbortController();
let drawing: number | undefined;
let pressedMs = 0;

/** Reads the address: which job, and which view. */
function readAddress(): void {
  const [name = "", view = ""] = location.hash.slice(1).split("/").map(decodeURIComponent);
  tab = TABS.includes(view) ? view : (TABS[0] ?? "");
  if (name !== "" && name !== job) open(name);
  showTabs();
  draw();
}

function setAddress(name: string, view: string): void {
  location.hash = `${encodeURIComponent(name)}/${encodeURIComponent(view)}`;
}

function showTabs(): void {
  // The tabs are made anew: what had the focus gives it to the one that is selected.
  const hadFocus = tabs.contains(document.activeElement);
  fill(
    tabs,
    TABS.map((name) =>
      make(
        "button",
        {
          ...{ type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "main" },
          "aria-selected": name === tab ? "true" : "false",
          tabindex: name === tab ? 0 : -1,
          onclick: () => setAddress(job, name),
        },
        name,
      ),
    ),
  );
  const selected = byId(`tab-${tab}`);
  selected.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (hadFocus) selected.focus();
  if (job === "") return;
  const view = views.get(tab) ?? VIEWS[tab]?.();
  if (view === undefined) return;
  views.set(tab, view);
  main.setAttribute("aria-label", tab);
  if (main.firstChild !== view.element) fill(main, view.element);
}

tabs.addEventListener("keydown", ({ key }) => {
  const to: Readonly<Record<string, number>> = {
    ArrowRight: TABS.indexOf(tab) + 1,
    ArrowLeft: TABS.indexOf(tab) - 1,
    Home: 0,
    End: TABS.length - 1,
  };
  const next = to[key];
  if (next !== undefined) setAddress(job, TABS[(next + TABS.length) % TABS.length] ?? tab);
});

function draw(): void {
  drawing = undefined;
  // A click on what is drawn anew before the button is released would be lost.
  if (Date.now() - pressedMs < PRESS_MS) {
    drawSoon();
    return;
  }
  const isPartial = Date.now() - droppedMs < PARTIAL_MS;
  const view: JobView = {
    ...{ name: job, status, updates, isPartial, rate: rates.rate },
    ...{ limited, server },
  };
  if (job !== "") views.get(tab)?.update(view);
}

function notePressed(timeMs: number): void {
  pressedMs = timeMs;
}

/** Draws soon: what comes within a short time is drawn once. */
function drawSoon(): void {
  if (drawing === undefined) drawing = window.setTimeout(draw, DRAW_MS);
}

/** Shows another job. */
function open(name: string): void {
  job = name;
  status = undefined;
  rates = new Rates();
  updates = [];
  limited = undefined;
  heardMs = 0;
  views.clear();
  fill(limits);
  listJob(name);
  jobs.value = name;
  document.title = `${name} – pserver`;
  following.abort();
  following = new AbortController();
  void follow(name, following.signal);
}

async function follow(name: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      tell("connecting …", "");
      for await (const { event, data } of listen(jobPath(name, "live"), signal)) take(event, data);
      tell("the connection has ended; it is opened again", "bad");
    } catch (error) {
      if (signal.aborted) return;
      tell(errorText(error), "bad");
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function take(event: string, data: unknown): void {
  if (event === "status") {
    heardMs = Date.now();
    status = data as JobStatus;
    rates.add(status, heardMs);
    tell("live", "good");
  } else if (event === "updates") {
    const more = data as { updates: UpdateEntry[]; dropped: number };
    if (more.dropped > 0) droppedMs = Date.now();
    updates = [...updates, ...more.updates].slice(-KEPT_UPDATES);
  } else if (event === "problem") {
    const { code, message } = data as { code: string; message: string };
    tell(`${code}: ${message}`, "bad");
  } else if (event === "limited") {
    const { code, message } = data as { code: string; message: string };
    limited = `${code}: ${message}`;
    const text =
      "This user of the broker may see the job as it is, but not its past: updates, charts and time travel stay empty.";
    fill(limits, make("p", { class: "notice", title: limited }, `ⓘ ${text}`));
  }
  drawSoon();
}

function clockText(timeMs: number): string {
  return new Date(timeMs).toLocaleTimeString([], { hour12: false });
}

/** Says how the page is connected; what is shown is pale while it is not. The time is not read out. */
function tell(text: string, style: "good" | "bad" | ""): void {
  const sign = { good: "● ", bad: "✕ ", "": "" }[style];
  document.body.classList.toggle("old", style === "bad" && heardMs > 0);
  if (told.textContent !== sign + text) {
    told.className = style;
    told.textContent = sign + text;
  }
  heard.textContent = heardMs === 0 ? "" : `as of ${clockText(heardMs)}`;
}

/** Adds a job to the list, unless it is there. */
function listJob(name: string): void {
  if ([...jobs.options].some(({ value }) => value === name)) return;
  jobs.append(make("option", { value: name }, name));
}

/** Lists the jobs of the broker again and again: others may come, also by a fork. */
async function keepJobsListed(): Promise<void> {
  while (true) {
    try {
      const found = await ask<{ job: string }[]>("jobs", AbortSignal.timeout(ASK_MS));
      for (const { job: name } of found) listJob(name);
      const [first] = found;
      const own = found.find(({ job: name }) => name === server.job) ?? first;
      if (job === "" && own !== undefined) setAddress(own.job, tab);
      else if (job === "") showNoJob();
    } catch (error) {
      // A user who may only look at one job cannot list them.
      if (job === "" && server.job !== "") setAddress(server.job, tab);
      else if (job === "") tell(errorText(error), "bad");
    }
    await new Promise((resolve) => setTimeout(resolve, JOBS_MS));
  }
}

function showNoJob(): void {
  tell("connected", "good");
  fill(
    main,
    make(
      "section",
      {},
      make("h2", {}, "The broker holds no job yet"),
      make(
        "p",
        { class: "soft" },
        "A host makes one: pserver up, or pserver host. It is shown here as soon as it is there.",
      ),
    ),
  );
}

async function start(): Promise<void> {
  window.addEventListener("pointerdown", () => notePressed(Date.now()), true);
  for (const event of ["pointerup", "pointercancel"]) {
    window.addEventListener(event, () => notePressed(0), true);
  }
  jobs.addEventListener("change", () => setAddress(jobs.value, tab));
  window.addEventListener("hashchange", readAddress);
  while (server.version === "") {
    try {
      server = await ask<ServerFacts>("", AbortSignal.timeout(ASK_MS));
    } catch (error) {
      tell(errorText(error), "bad");
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
  if (location.hash.length > 1) readAddress();
  await keepJobsListed();
}

showTabs();
void start();
