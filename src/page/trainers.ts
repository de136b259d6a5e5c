import { type Column, fill, make, table } from "./dom.ts";
import { ageText, bytesText, numberText } from "./format.ts";
import type { JobView, UpdateEntry, View } from "./job.ts";

/** Time over which a trainer's rate is measured. */
const RATE_MS = 10_000;

/** What the updates of a trainer say about it. */
interface TrainerRow {
  readonly id: string;
  readonly isAlive: boolean;
  heardMs: number | undefined;
  session: number | undefined;
  step: number | undefined;
  behind: number | undefined;
  recentBytes: number;
  rejected: number;
}

/** Shows the trainers of a job: those that are alive, and those of the newest updates. */
export function trainers(): View {
  const element = make("section");
  return {
    element,
    update: ({ status, updates }: JobView) => {
      const rows = rowsOf(status?.trainers ?? [], updates);
      const note =
        "Bytes, versions behind and rejections are those of updates since this page was opened.";
      fill(
        element,
        make("h2", {}, "Trainers"),
        table("Trainers", COLUMNS, rows, "No trainer has joined the job."),
        make("p", { class: "soft" }, note),
      );
    },
  };
}

const COLUMNS: readonly Column<TrainerRow>[] = [
  { title: "trainer", className: "name", cell: ({ id }) => id },
  {
    title: "state",
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
  { title: "session", isNumber: true, cell: ({ session }) => numberText(session) },
  { title: "step", isNumber: true, cell: ({ step }) => numberText(step) },
  { title: "behind", isNumber: true, cell: ({ behind }) => numberText(behind) },
  {
    title: "sent/s",
    isNumber: true,
    cell: ({ recentBytes }) => bytesText(Math.round((recentBytes * 1000) / RATE_MS)),
  },
  { title: "rejected", isNumber: true, cell: ({ rejected }) => rejected },
];

function rowsOf(alive: readonly string[], updates: readonly UpdateEntry[]): TrainerRow[] {
  const rows = new Map<string, TrainerRow>();
  const add = (id: string, isAlive: boolean): TrainerRow => {
    const unknown = { heardMs: undefined, session: undefined, step: undefined, behind: undefined };
    const row = rows.get(id) ?? { id, isAlive, ...unknown, recentBytes: 0, rejected: 0 };
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
    row.step = update.step ?? stepOf(update.note) ?? row.step;
    row.behind = update.behind ?? row.behind;
    if (timeMs > recentMs) row.recentBytes += update.bytes ?? 0;
    if (update.outcome === "rejected") row.rejected += 1;
  }
  return [...rows.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function stepOf(note: UpdateEntry["note"]): number | undefined {
  const step = note?.["step"];
  return typeof step === "number" ? step : undefined;
}
