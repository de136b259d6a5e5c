import { type Column, head, make, refill, table } from "./dom.ts";
import { ageText, bytesText, numberText } from "./format.ts";
import type { JobView, UpdateEntry } from "./job.ts";
import type { View } from "./view.ts";

/** Time over which a trainer's rate is measured. */
const RATE_MS = 10_000;

/** What the updates of a trainer say about it. */
interface TrainerRow {
  readonly id: string;
  readonly isAlive: boolean;
  heardMs: number | undefined;
  session: number | undefined;
  step: number | undefined;
  loss: number | undefined;
  behind: number | undefined;
  recentBytes: number;
  rejected: number;
}

/** Shows the trainers of a job: those that are alive, and those of the newest updates. */
export function trainers(): View {
  const list = make("div");
  const element = make(
    "section",
    {},
    head(
      "Trainers",
      make(
        "p",
        { class: "soft" },
        "Updates, losses and rejections are those since this page was opened",
      ),
    ),
    list,
  );
  return {
    element,
    update: ({ status, updates, isPartial }: JobView) => {
      const rows = rowsOf(status?.trainers ?? [], updates);
      const none =
        "No trainer has joined the job. One that connects with this job's name shows up here.";
      refill(list, table("Trainers", columnsFor(isPartial), rows, none));
    },
  };
}

const columnsFor = (isPartial: boolean): readonly Column<TrainerRow>[] => [
  { title: "trainer", className: "name", cell: ({ id }) => id },
  {
    title: "state",
    hint: "alive while its lease lasts",
    cell: ({ isAlive }) =>
      isAlive
        ? make("span", { class: "good" }, "● alive")
        : make("span", { class: "warn" }, "○ gone"),
  },
  {
    title: "last update",
    isNumber: true,
    cell: ({ heardMs }) => (heardMs === undefined ? "–" : `${ageText(Date.now() - heardMs)} ago`),
  },
  { title: "step", isNumber: true, cell: ({ step }) => numberText(step) },
  {
    title: "loss",
    hint: "as it noted it last",
    isNumber: true,
    cell: ({ loss }) => numberText(loss),
  },
  {
    title: "behind",
    hint: "versions by which the values were older that its last gradient was computed from",
    isNumber: true,
    cell: ({ behind }) => numberText(behind),
  },
  {
    title: "sent per second",
    hint: "bytes of updates, over the last 10 s",
    isNumber: true,
    cell: ({ recentBytes }) =>
      `${isPartial ? "≥ " : ""}${bytesText(Math.round((recentBytes * 1000) / RATE_MS))}`,
  },
  {
    title: "rejected",
    hint: "its updates that were not applied",
    isNumber: true,
    cell: ({ rejected }) => numberText(rejected),
  },
  {
    title: "session",
    hint: "the number of its session in the job",
    isNumber: true,
    cell: ({ session }) => numberText(session),
  },
];

function rowsOf(alive: readonly string[], updates: readonly UpdateEntry[]): TrainerRow[] {
  const rows = new Map<string, TrainerRow>();
  const add = (id: string, isAlive: boolean): TrainerRow => {
    const row = rows.get(id) ?? {
      ...{ id, isAlive, heardMs: undefined, session: undefined, step: undefined, loss: undefined },
      ...{ behind: undefined, recentBytes: 0, rejected: 0 },
    };
    rows.set(id, row);
    return row;
  };
  for (const id of alive) add(id, true);
  const recentMs = Date.now() - RATE_MS;
  for (const update of updates) {
    if (update.trainer === undefined) continue;
    const row = add(update.trainer, false);
    const timeMs = Date.parse(update.time);
    row.heardMs = timeMs;
    row.session = update.session;
    row.step = update.step ?? noted(update, "step") ?? row.step;
    row.loss = noted(update, "loss") ?? row.loss;
    row.behind = update.behind ?? row.behind;
    if (timeMs > recentMs) row.recentBytes += update.bytes ?? 0;
    if (update.outcome === "rejected") row.rejected += 1;
  }
  return [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function noted({ note }: UpdateEntry, name: string): number | undefined {
  const value = note?.[name];
  return typeof value === "number" ? value : undefined;
}
