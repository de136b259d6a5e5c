import { type Column, type Fact, facts, fill, head, make, refill, table } from "./dom.ts";
import {
  ageText,
  bytesText,
  countText,
  numberText,
  rangesText,
  rateText,
  shareText,
} from "./format.ts";
import type { JobStatus, JobView, ShardEntry } from "./job.ts";
import { lossChart } from "./losses.ts";
import type { View } from "./view.ts";

/** Words for states, with a sign: no colour alone says which. */
const STATES: Readonly<Record<string, readonly [sign: string, style: string]>> = {
  serving: ["●", "good"],
  ready: ["●", "good"],
  unowned: ["✕", "bad"],
  failed: ["✕", "bad"],
};

/** What each state means for whoever reads it the first time. */
const MEANINGS: Readonly<Record<string, string>> = {
  uninitialized: "no trainer has initialized it yet",
  initializing: "a trainer gives the first values",
  ready: "initialized: trainers push and pull",
};

/** Shows a job at a glance: how it is, its loss, its hosts, and its shards. */
export function overview(): View {
  const summary = make("section", { "aria-label": "Job" });
  const attention = make("div", { class: "views" });
  const loss = lossChart();
  const hostList = make("section");
  const shards = make("section");
  const element = make(
    "div",
    { class: "views" },
    attention,
    summary,
    make("div", { class: "beside" }, loss.element, hostList),
    shards,
  );
  const seenHosts = new SeenHosts();
  return {
    element,
    update: (view: JobView) => {
      loss.update(view);
      const { status } = view;
      if (status === undefined) return;
      seenHosts.see(status.hosts, Date.now());
      fill(attention, attentionTo(status));
      fill(summary, facts(factsOf(view, status)));
      refill(hostList, head("Hosts"), hostTable(seenHosts, status));
      refill(shards, head("Shards"), shardTable(status));
    },
  };
}

function factsOf({ rate }: JobView, status: JobStatus): Fact[] {
  const { state, parameters, hosts, trainers, synchronization, tape } = status;
  const serving = status.shards.filter((each) => each.state === "serving").length;
  const journals = status.shards.reduce((sum, { journalBytes = 0 }) => sum + journalBytes, 0);
  const room = status.shards.reduce((sum, { journalBytesMax = 0 }) => sum + journalBytesMax, 0);
  return [
    ["Job is", stateOf(state), MEANINGS[state]],
    ["Updates per second", rateText(rate?.updates), `${rateText(rate?.records)} records`],
    ["Trainers", numberText(trainers.length), `steps: ${synchronization.mode}`],
    [
      "Hosts",
      numberText(hosts.length),
      `${serving} of ${countText(status.shards.length, "shard")} served`,
    ],
    ["Parameters", numberText(parameters.count), `${bytesText(parameters.bytes)} of values`],
    [
      "Journals",
      bytesText(journals),
      room === 0 ? undefined : `${shareText(journals, room)} of ${bytesText(room)}`,
    ],
    [
      "Tape",
      tape === undefined ? "none" : bytesText(tape.bytes),
      tape && `${shareText(tape.bytes, tape.bytesMax)} of ${bytesText(tape.bytesMax)}`,
    ],
  ];
}

/** Writes a state with its sign. */
function stateOf(state: string): HTMLElement {
  const [sign, style] = STATES[state] ?? ["◐", "warn"];
  return make("span", { class: style }, `${sign} ${state}`);
}

/** What a person should look at: shards without an owner, a rewind that is not complete. */
function attentionTo({ shards, rewind, hosts }: JobStatus): HTMLElement[] {
  const idle = new Map<string, number[]>();
  for (const { shard, state, error } of shards) {
    if (state === "serving") continue;
    const what = error === undefined ? state : `${state}, ${error.code}: ${error.message}`;
    idle.set(what, [...(idle.get(what) ?? []), shard]);
  }
  const texts = [...idle].map(
    ([state, numbers]) =>
      `${numbers.length === 1 ? "Shard" : "Shards"} ${rangesText(numbers)}: ${state}.`,
  );
  if (hosts.length === 0) texts.unshift("No host serves this job: trainers wait until one does.");
  if (rewind !== undefined) {
    texts.push("A rewind of this job is not complete; Time travel shows how to go on.");
  }
  return texts.map((text) => make("p", { class: "notice warn", role: "status" }, `⚠ ${text}`));
}

/** Hosts that have been seen since the page was opened, also those that have gone. */
class SeenHosts {
  readonly #seenMs: Map<string, number> = new Map();

  see(hosts: JobStatus["hosts"], nowMs: number): void {
    for (const { id } of hosts) this.#seenMs.set(id, nowMs);
  }

  /** Returns the hosts that are not among those that are alive, with the time at which each was seen last. */
  gone(alive: JobStatus["hosts"]): readonly (readonly [id: string, seenMs: number])[] {
    const ids = new Set(alive.map(({ id }) => id));
    return [...this.#seenMs].filter(([id]) => !ids.has(id));
  }
}

/** A host as the list shows it. */
interface HostRow {
  readonly id: string;
  readonly shards: readonly number[];
  readonly goneMs: number | undefined;
}

const HOST_COLUMNS: readonly Column<HostRow>[] = [
  { title: "host", className: "name", cell: ({ id }) => id },
  {
    title: "state",
    cell: ({ goneMs }) =>
      goneMs === undefined
        ? make("span", { class: "good" }, "● alive")
        : make("span", { class: "warn" }, `○ gone for ${ageText(Date.now() - goneMs)}`),
  },
  { title: "shards", className: "wraps", cell: ({ shards }) => rangesText(shards) || "none" },
];

function hostTable(seen: SeenHosts, { hosts }: JobStatus): HTMLElement {
  const rows = [
    ...hosts.map(({ id, shards }): HostRow => ({ id, shards, goneMs: undefined })),
    ...seen.gone(hosts).map(([id, goneMs]): HostRow => ({ id, shards: [], goneMs })),
  ].sort((a, b) => (a.id < b.id ? -1 : 1));
  return table("Hosts", HOST_COLUMNS, rows, "No host is alive.");
}

function shardTable({ shards, hosts }: JobStatus): HTMLElement {
  const ownerOf = new Map(hosts.flatMap(({ id, shards: own }) => own.map((shard) => [shard, id])));
  const columns: Column<ShardEntry>[] = [
    { title: "shard", isNumber: true, cell: ({ shard }) => shard },
    { title: "state", cell: ({ state }) => stateOf(state) },
    { title: "owner", className: "name", cell: ({ shard }) => ownerOf.get(shard) ?? "none" },
    {
      title: "folded to",
      hint: "the last record of the journal that its owner has applied or rejected",
      isNumber: true,
      cell: positionText,
    },
    {
      title: "to fold",
      hint: "records of the journal that its owner has not folded yet",
      isNumber: true,
      cell: ({ seq = 0, endSeq = seq }) => numberText(endSeq - seq),
    },
    {
      title: "snapshot at",
      hint: "the record after which the newest snapshot was made",
      isNumber: true,
      cell: ({ snapshotSeq }) => numberText(snapshotSeq),
    },
    { title: "blocks", isNumber: true, cell: ({ blocks }) => numberText(blocks) },
    { title: "values", isNumber: true, cell: ({ valueBytes }) => bytesText(valueBytes ?? 0) },
    {
      title: "journal",
      hint: "its size, and how much of its limit that is",
      isNumber: true,
      cell: journalText,
    },
    {
      title: "applied",
      hint: "block updates since its owner has it",
      isNumber: true,
      cell: ({ updates }) => numberText(updates?.applied),
    },
    {
      title: "rejected",
      hint: "block updates since its owner has it",
      isNumber: true,
      cell: ({ updates }) => numberText(updates?.rejected),
    },
  ];
  return table("Shards", columns, shards, "The job has no shards.");
}

function positionText({ generation, seq }: ShardEntry): string {
  if (seq === undefined) return "–";
  const record = numberText(seq);
  return generation === undefined || generation === 1 ? record : `${record} @${generation}`;
}

function journalText({ journalBytes = 0, journalBytesMax }: ShardEntry): string {
  if (journalBytesMax === undefined) return bytesText(journalBytes);
  return `${bytesText(journalBytes)} · ${shareText(journalBytes, journalBytesMax)}`;
}
