import { type Column, facts, fill, make, table } from "./dom.ts";
import { bytesText, numberText } from "./format.ts";
import type { JobStatus, JobView, ShardEntry, View } from "./job.ts";

/** Words for states, with a sign: no colour alone says which. */
const STATES: Readonly<Record<string, readonly [sign: string, style: string]>> = {
  serving: ["●", "good"],
  ready: ["●", "good"],
  unowned: ["✕", "bad"],
  failed: ["✕", "bad"],
};

/** Shows a job at a glance: how it is, its hosts, and its shards. */
export function overview(): View {
  const element = make("div", { class: "views" });
  const summary = make("section");
  const shards = make("section");
  element.append(summary, shards);
  return {
    element,
    update: ({ status, rate }: JobView) => {
      if (status === undefined) return;
      const { parameters, hosts, trainers, synchronization, tape } = status;
      fill(
        summary,
        make("h2", {}, "Job"),
        facts([
          ["state", stateOf(status.state)],
          ["parameters", `${parameters.count}`],
          ["values", bytesText(parameters.bytes)],
          ["trainers", trainers.length],
          ["hosts", hosts.length],
          ["steps", synchronization.mode],
          ["updates/s", numberText(rate.updates)],
          ["received/s", bytesText(Math.round(rate.bytes))],
          ["journals", bytesText(sumOf(status, "journalBytes"))],
          ["tape", tape === undefined ? "none" : bytesText(tape.bytes)],
        ]),
      );
      fill(shards, make("h2", {}, "Shards"), shardTable(status));
    },
  };
}

/** Writes a state with its sign. */
function stateOf(state: string): HTMLElement {
  const [sign, style] = STATES[state] ?? ["◐", "warn"];
  return make("span", { class: style }, `${sign} ${state}`);
}

function shardTable({ shards, hosts }: JobStatus): HTMLElement {
  const ownerOf = new Map(hosts.flatMap(({ id, shards: own }) => own.map((shard) => [shard, id])));
  const columns: Column<ShardEntry>[] = [
    { title: "shard", isNumber: true, cell: ({ shard }) => shard },
    { title: "state", cell: ({ state }) => stateOf(state) },
    { title: "owner", className: "name", cell: ({ shard }) => ownerOf.get(shard) ?? "none" },
    { title: "folded to", isNumber: true, cell: positionText },
    { title: "to fold", isNumber: true, cell: ({ seq = 0, endSeq = seq }) => endSeq - seq },
    { title: "snapshot", isNumber: true, cell: ({ snapshotSeq }) => numberText(snapshotSeq) },
    { title: "blocks", isNumber: true, cell: ({ blocks }) => numberText(blocks) },
    { title: "values", isNumber: true, cell: ({ valueBytes }) => bytesText(valueBytes ?? 0) },
    { title: "journal", isNumber: true, cell: journalText },
    { title: "applied", isNumber: true, cell: ({ updates }) => numberText(updates?.applied) },
    { title: "rejected", isNumber: true, cell: ({ updates }) => numberText(updates?.rejected) },
  ];
  return table("Shards", columns, shards, "The job has no shards.");
}

function positionText({ generation, seq }: ShardEntry): string {
  if (seq === undefined) return "–";
  return generation === undefined || generation === 1 ? `${seq}` : `${seq}@${generation}`;
}

function journalText({ journalBytes = 0, journalBytesMax }: ShardEntry): string {
  if (journalBytesMax === undefined) return bytesText(journalBytes);
  const share = (100 * journalBytes) / journalBytesMax;
  return `${bytesText(journalBytes)} (${share < 10 ? share.toFixed(1) : share.toFixed(0)} %)`;
}

function sumOf({ shards }: JobStatus, name: "journalBytes"): number {
  return shards.reduce((sum, shard) => sum + (shard[name] ?? 0), 0);
}
