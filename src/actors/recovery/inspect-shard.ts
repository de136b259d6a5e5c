import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { type ErrorCode, type JobSubjects, PserverError } from "../../protocol/index.ts";
import { recordCrc } from "../fold/read-record.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { HeadMark } from "../owner/head-mark.ts";
import { lastRecordSeq } from "../owner/hole.ts";
import type { Manifest } from "../snapshot/manifest.ts";
import type { SnapshotStore } from "../snapshot/store.ts";
import { choicesOf, newestWhole } from "./choices.ts";
import type { FoundJournal, FoundSnapshot, ShardCondition, ShardFindings } from "./findings.ts";
import type { InitializedBlock } from "./initialized-blocks.ts";
import { inspectSnapshots, type ManifestEntry } from "./inspect-snapshots.ts";
import { JournalTally } from "./journal-tally.ts";
import { scanJournal } from "./scan-journal.ts";

/** What a shard stops for that an operator can accept. */
const LOSSES: readonly ErrorCode[] = ["JOURNAL_DAMAGED", "JOURNAL_LOST", "SNAPSHOT_DAMAGED"];

/** A shard that is to be looked at, and what is needed for it. */
export interface InspectOptions {
  readonly shard: number;
  readonly subjects: JobSubjects;
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;
  readonly journal: Journal;
  readonly journalStorage: "file" | "memory";
  readonly store: SnapshotStore;
  /** What its owner has failed for; `none` if nobody owns it. */
  readonly owner: "none" | PserverError;
  /** The blocks that the shard must have. */
  readonly initialized: readonly InitializedBlock[];
  /** How far its owner had folded, as it noted it outside the journal. */
  readonly mark: HeadMark | undefined;
}

/**
 * Finds out where a shard stands, what is lost of it and what it can go on from; changes nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, NO_JETSTREAM, DENIED if the broker does not answer.
 */
export async function inspectShard(options: InspectOptions): Promise<ShardFindings> {
  const { shard, store, journal, owner } = options;
  const entries = await store.manifestEntries();
  const newest = entries.findLast(({ manifest }) => manifest !== undefined)?.manifest;
  const generation = newest?.generation ?? (await newestGeneration(options));
  const snapshots = await inspectSnapshots(store, entries, options.initialized);
  const base = newestWhole(snapshots.filter((each) => each.generation === generation));
  const info = generation === 0 ? undefined : await journal.info(generation);
  const created = createdOf(entries, base);
  const lastKnownSeq = lastKnown(options, generation, entries, info, created);
  const tally = new JournalTally({
    subjects: options.subjects,
    firstSeq: info?.firstSeq ?? 1,
    baseSeq: base?.seq ?? 0,
    places: snapshots.map(({ seq }) => seq),
    missing: info?.missing ?? [],
  });
  const found = info && (await inspectJournal(options, { generation, info, base, created, tally }));
  const choices = choicesOf({
    generation,
    snapshots,
    journal: found,
    prefixEnd: tally.prefixEnd,
    prefixLacks: tally.stillLacked(base?.lacks ?? options.initialized),
    lastKnownSeq,
    lostFrom: lostFrom(owner),
    behind: (seq) => tally.behind(seq),
  });
  const error =
    ownFailure(owner) ??
    problemOf({ ...options, newest, snapshots, base, found, tally, lastKnownSeq });
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

/** The newest generation of a shard that has no manifest which can be read. */
async function newestGeneration({ journal, mark }: InspectOptions): Promise<number> {
  return Math.max(await journal.newestGeneration(), mark?.generation ?? 0);
}

/** When the stream was made that a snapshot belongs to; "" if it was still to be made. */
function createdOf(entries: readonly ManifestEntry[], base: FoundSnapshot | undefined): string {
  const manifest = entries.find(({ seq }) => seq === base?.manifestSeq)?.manifest;
  return manifest?.created ?? "";
}

function lastKnown(
  { owner, mark }: InspectOptions,
  generation: number,
  entries: readonly ManifestEntry[],
  info: JournalInfo | undefined,
  created: string,
): number {
  const manifests = entries.flatMap(({ manifest }) =>
    manifest?.generation === generation ? [manifest.seq] : [],
  );
  const isSame = info !== undefined && (created === "" || created === info.created);
  const to = owner instanceof PserverError ? owner.details["to"] : 0;
  return Math.max(
    0,
    ...manifests,
    isSame ? lastRecordSeq(info) : 0,
    mark?.generation === generation ? mark.seq : 0,
    typeof to === "number" ? to : 0,
  );
}

async function inspectJournal(
  { manager, client, journal }: InspectOptions,
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
  const problem = await strangeness(journal, generation, info, base, created);
  return { stream, firstSeq, lastSeq, bytes, gaps: tally.gaps, ...(problem && { problem }) };
}

/** Why a journal is not the one that a snapshot was made of; undefined if it is. */
async function strangeness(
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
  // A record that is lost or damaged says nothing of those after it; another one does.
  if (crc === 0 || base.recordCrc === 0 || crc === base.recordCrc) return undefined;
  return `record ${base.seq} is another than the one in the snapshot`;
}

function lostFrom(owner: InspectOptions["owner"]): number | undefined {
  if (!(owner instanceof PserverError) || owner.code !== "JOURNAL_LOST") return undefined;
  const { from } = owner.details;
  return typeof from === "number" ? from : undefined;
}

function ownFailure(owner: InspectOptions["owner"]): PserverError | undefined {
  return owner instanceof PserverError ? owner : undefined;
}

function conditionOf(error: PserverError | undefined): ShardCondition {
  if (error === undefined) return "whole";
  return LOSSES.includes(error.code) ? "stopped" : "failed";
}

/** What whoever takes the shard over would stop for; undefined if it would find all it needs. */
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
