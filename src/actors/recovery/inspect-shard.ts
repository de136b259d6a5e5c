import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { type ErrorCode, type JobSubjects, PserverError } from "../../protocol/index.ts";
import { recordCrc } from "../fold/read-record.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { HeadMark } from "../owner/head-mark.ts";
import { lastRecordSeq } from "../owner/journal-gap.ts";
import type { Manifest } from "../snapshot/manifest.ts";
import type { SnapshotStore } from "../snapshot/store.ts";
import { choicesOf, newestWhole } from "./choices.ts";
import type { FoundJournal, FoundSnapshot, ShardCondition, ShardFindings } from "./findings.ts";
import type { InitializedBlock } from "./initialized-blocks.ts";
import { inspectSnapshots, type ManifestEntry } from "./inspect-snapshots.ts";
import { JournalTally } from "./journal-tally.ts";
import { scanJournal } from "./scan-journal.ts";

/** Errors of a stopped shard that an operator can accept. */
const LOSSES: readonly ErrorCode[] = ["JOURNAL_DAMAGED", "JOURNAL_LOST", "SNAPSHOT_DAMAGED"];

/** Whether a shard that is not served has an owner that has failed. */
export type ShardOwnership =
  | { readonly kind: "none" }
  | { readonly kind: "failed"; readonly error: PserverError };

/** Dependencies of {@link inspectShard}. */
export interface InspectDeps {
  readonly shard: number;
  readonly subjects: JobSubjects;
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly journal: Journal;
  readonly journalStorage: "file" | "memory";
  readonly store: SnapshotStore;
  readonly owner: ShardOwnership;
  /** The blocks that the shard must have. */
  readonly initialized: readonly InitializedBlock[];
  /** Mark of its owners. */
  readonly mark: HeadMark | undefined;
}

/**
 * Finds out whether a shard can be served, what is lost, and from which states it can go on; changes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, NO_JETSTREAM, DENIED if the broker does not answer.
 */
export async function inspectShard(deps: InspectDeps): Promise<ShardFindings> {
  const { shard, store, journal, owner } = deps;
  const entries = await store.manifestEntries();
  const newest = entries.findLast(({ manifest }) => manifest !== undefined)?.manifest;
  const generation = newest?.generation ?? (await newestGeneration(deps));
  const snapshots = await inspectSnapshots(store, entries, deps.initialized);
  const base = newestWhole(snapshots.filter((each) => each.generation === generation));
  const info = generation === 0 ? undefined : await journal.info(generation);
  const created = createdOf(entries, base);
  const lastKnownSeq = lastKnown(deps, generation, entries, info, created);
  const tally = new JournalTally({
    subjects: deps.subjects,
    firstSeq: info?.firstSeq ?? 1,
    baseSeq: base?.seq ?? 0,
    places: snapshots.map(({ seq }) => seq),
    missing: info?.missing ?? [],
  });
  const found = info && (await inspectJournal(deps, { generation, info, base, created, tally }));
  const choices = choicesOf({
    generation,
    snapshots,
    journal: found,
    prefixEnd: tally.prefixEnd,
    prefixLacks: tally.stillLacked(base?.lacks ?? deps.initialized),
    lastKnownSeq,
    lostFrom: lostFrom(owner),
    behind: (seq) => tally.behind(seq),
  });
  const error =
    (owner.kind === "failed" ? owner.error : undefined) ??
    problemOf({ ...deps, newest, snapshots, base, found, tally, lastKnownSeq });
  return {
    shard,
    condition: conditionOf(error),
    ...(error === undefined ? {} : { error: error.toWire() }),
    generation,
    manifestSeq: entries.at(-1)?.seq ?? 0,
    snapshots,
    ...(found === undefined ? {} : { journal: found }),
    lastKnownSeq,
    choices,
  };
}

/** The newest generation of a shard without a readable manifest. */
async function newestGeneration({ journal, mark }: InspectDeps): Promise<number> {
  return Math.max(await journal.newestGeneration(), mark?.generation ?? 0);
}

/** Creation time of the stream that a snapshot belongs to; "" if it was not created then. */
function createdOf(entries: readonly ManifestEntry[], base: FoundSnapshot | undefined): string {
  const manifest = entries.find(({ seq }) => seq === base?.manifestSeq)?.manifest;
  return manifest?.created ?? "";
}

function lastKnown(
  { owner, mark }: InspectDeps,
  generation: number,
  entries: readonly ManifestEntry[],
  info: JournalInfo | undefined,
  created: string,
): number {
  const manifests = entries.flatMap(({ manifest }) =>
    manifest?.generation === generation ? [manifest.seq] : [],
  );
  const isSame = info !== undefined && (created === "" || created === info.created);
  const to = owner.kind === "failed" ? owner.error.details["to"] : 0;
  return Math.max(
    0,
    ...manifests,
    isSame ? lastRecordSeq(info) : 0,
    mark?.generation === generation ? mark.seq : 0,
    typeof to === "number" ? to : 0,
  );
}

async function inspectJournal(
  { manager, client, journal }: InspectDeps,
  {
    generation,
    info,
    base,
    created,
    tally,
  }: {
    readonly generation: number;
    readonly info: JournalInfo;
    readonly base: FoundSnapshot | undefined;
    readonly created: string;
    readonly tally: JournalTally;
  },
): Promise<FoundJournal> {
  const stream = journal.stream(generation);
  const lastSeq = lastRecordSeq(info);
  await scanJournal(
    { manager, client, stream },
    { from: info.firstSeq, to: lastSeq },
    (seq, subject) => tally.record(seq, subject),
  );
  tally.end(lastSeq);
  const { firstSeq, bytes } = info;
  const problem = await mismatchOf(journal, generation, info, base, created);
  return { stream, firstSeq, lastSeq, bytes, gaps: tally.gaps, ...(problem && { problem }) };
}

/** Why a journal is not the one that a snapshot belongs to; undefined if it is. */
async function mismatchOf(
  journal: Journal,
  generation: number,
  info: JournalInfo,
  base: FoundSnapshot | undefined,
  created: string,
): Promise<string | undefined> {
  if (created !== "" && created !== info.created) {
    return `the stream was made at ${created} and again at ${info.created}`;
  }
  if (base === undefined || base.seq === 0) return undefined;
  const record = await journal.record(generation, base.seq);
  const crc = record === undefined ? 0 : recordCrc(record.payload);
  // A lost or damaged record says nothing about those after it; a different one does.
  if (crc === 0 || base.recordCrc === 0 || crc === base.recordCrc) return undefined;
  return `record ${base.seq} is another than the one in the snapshot`;
}

/** First lost record according to the error of the owner. */
function lostFrom(owner: ShardOwnership): number | undefined {
  if (owner.kind !== "failed" || owner.error.code !== "JOURNAL_LOST") return undefined;
  const { from } = owner.error.details;
  return typeof from === "number" ? from : undefined;
}

function conditionOf(error: PserverError | undefined): ShardCondition {
  if (error === undefined) return "whole";
  return LOSSES.includes(error.code) ? "stopped" : "failed";
}

/** The error that a new owner would stop with; undefined if it could serve the shard. */
function problemOf({
  shard,
  journalStorage,
  newest,
  snapshots,
  base,
  found,
  tally,
  lastKnownSeq,
}: {
  readonly shard: number;
  readonly journalStorage: "file" | "memory";
  readonly newest: Manifest | undefined;
  readonly snapshots: readonly FoundSnapshot[];
  readonly base: FoundSnapshot | undefined;
  readonly found: FoundJournal | undefined;
  readonly tally: JournalTally;
  readonly lastKnownSeq: number;
}): PserverError | undefined {
  const details = { shard };
  if (newest === undefined && snapshots.length === 0 && found === undefined) return undefined;
  if (base === undefined) {
    const text = `shard ${shard}: no whole snapshot is left`;
    return new PserverError("SNAPSHOT_DAMAGED", text, details);
  }
  if (found === undefined) {
    if (journalStorage === "memory" || newest?.created === "") return undefined;
    return new PserverError("JOURNAL_LOST", `shard ${shard}: the journal stream is gone`, details);
  }
  if (found.problem !== undefined) {
    return new PserverError("JOURNAL_LOST", `shard ${shard}: ${found.problem}`, details);
  }
  const gap = found.gaps.find(({ to }) => to > base.seq);
  if (gap !== undefined) {
    const { from, to } = gap;
    const text = `shard ${shard}: expected record ${from}; found ${to + 1}`;
    return new PserverError("JOURNAL_DAMAGED", text, { ...details, expected: from, found: to + 1 });
  }
  if (lastKnownSeq <= tally.prefixEnd) return undefined;
  const text = `shard ${shard}: the journal ends too early; records ${tally.prefixEnd + 1} to ${lastKnownSeq} are lost`;
  return new PserverError("JOURNAL_LOST", text, {
    ...details,
    from: tally.prefixEnd + 1,
    to: lastKnownSeq,
  });
}
