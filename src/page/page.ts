import { ask, errorText, jobPath, listen } from "./api.ts";
import { charts } from "./charts.ts";
import { fill, make } from "./dom.ts";
import { events } from "./events.ts";
import type { JobStatus, JobView, UpdateEntry, View } from "./job.ts";
import { moment } from "./moment.ts";
import { overview } from "./overview.ts";
import { parameters } from "./parameters.ts";
import { trainers } from "./trainers.ts";

// The page: one job in tabs. The address names both, as `#JOB/TAB`. What happens comes as server-sent events; each view
// asks for the rest itself.

/** Updates that are kept to be shown. */
const KEPT_UPDATES = 2_000;

/** Time over which rates are measured, and the pause before a broken stream is opened again. */
const RATE_MS = 10_000;
const AGAIN_MS = 3_000;

/** How often views are drawn at most, and how long before the page says that nothing is heard. */
const DRAW_MS = 500;

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

const views = new Map<string, View>();
let job = "";
let tab = TABS[0] ?? "";
let status: JobStatus | undefined;
let updates: UpdateEntry[] = [];
let following = new AbortController();
let drawing: number | undefined;

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
  if (hadFocus) byId(`tab-${tab}`).focus();
  const view = views.get(tab) ?? VIEWS[tab]?.();
  if (view === undefined) return;
  views.set(tab, view);
  main.setAttribute("aria-label", tab);
  if (main.firstChild !== view.element) fill(main, view.element);
}

tabs.addEventListener("keydown", ({ key }) => {
  const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
  if (step === 0) return;
  const next = TABS[(TABS.indexOf(tab) + step + TABS.length) % TABS.length] ?? tab;
  setAddress(job, next);
});

function draw(): void {
  drawing = undefined;
  const view: JobView = { name: job, status, updates, rate: rateOf(updates) };
  if (job !== "") views.get(tab)?.update(view);
}

/** Draws soon: what comes within a short time is drawn once. */
function drawSoon(): void {
  if (drawing === undefined) drawing = window.setTimeout(draw, DRAW_MS);
}

function rateOf(all: readonly UpdateEntry[]): JobView["rate"] {
  const sinceMs = Date.now() - RATE_MS;
  const recent = all.filter(({ time }) => Date.parse(time) > sinceMs);
  const bytes = recent.reduce((sum, update) => sum + (update.bytes ?? 0), 0);
  return { bytes: (bytes * 1000) / RATE_MS, updates: (recent.length * 1000) / RATE_MS };
}

/** Shows another job. */
function open(name: string): void {
  job = name;
  status = undefined;
  updates = [];
  views.clear();
  jobs.value = name;
  document.title = `${name} – pserver`;
  following.abort();
  following = new AbortController();
  void follow(name, following.signal);
}

async function follow(name: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      tell("connecting …", false);
      for await (const { event, data } of listen(jobPath(name, "live"), signal)) take(event, data);
      tell("the connection has ended; it is opened again", true);
    } catch (error) {
      if (signal.aborted) return;
      tell(errorText(error), true);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

function take(event: string, data: unknown): void {
  if (event === "status") {
    status = data as JobStatus;
    tell(`live, ${new Date().toLocaleTimeString([], { hour12: false })}`, false);
  } else if (event === "updates") {
    updates = [...updates, ...(data as { updates: UpdateEntry[] }).updates].slice(-KEPT_UPDATES);
  } else if (event === "problem") {
    const { code, message } = data as { code: string; message: string };
    tell(`${code}: ${message}`, true);
  }
  drawSoon();
}

function tell(text: string, isBad: boolean): void {
  told.classList.toggle("bad", isBad);
  fill(told, isBad ? `✕ ${text}` : text);
}

async function start(): Promise<void> {
  try {
    const found = await ask<{ job: string }[]>("jobs", AbortSignal.timeout(15_000));
    fill(
      jobs,
      found.map(({ job: name }) => make("option", { value: name }, name)),
    );
    jobs.addEventListener("change", () => setAddress(jobs.value, tab));
    const [first] = found;
    if (location.hash.length > 1) readAddress();
    else if (first !== undefined) setAddress(first.job, tab);
    else tell("The broker holds no job yet.", true);
    if (job !== "") jobs.value = job;
  } catch (error) {
    tell(errorText(error), true);
  }
}

window.addEventListener("hashchange", readAddress);
showTabs();
void start();
