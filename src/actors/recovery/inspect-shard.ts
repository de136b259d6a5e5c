import { DeliverPolicy, type JetStreamClient } from "@nats-io/jetstream";
import { type ErrorCode, PserverError } from "../../protocol/index.ts";
import { changedOf } from "../fold/journal-checksum.ts";
import { recordCrc } from "../fold/read-record.ts";
import { brokerCall } from "../jetstream/broker-call.ts";
import { scanStream } from "../jetstream/scan-stream.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import { journalLost } from "../owner/check-journal.ts";
import type { HeadMark } from "../owner/head-mark.ts";
import { journalDamaged, lastRecordSeq } from "../owner/journal-gap.ts";
import type { Manifest } from "../snapshot/manifest.ts";
import { lackedAfterBatches } from "./batched-inits.ts";
import { choicesOf, newestWhole } from "./choices.ts";
import type {
  FailedRecord,
  FoundJournal,
  FoundRest,
  FoundSnapshot,
  ShardCondition,
  ShardFindings,
} from "./findings.ts";
import type { InitializedBlock } from "./initialized-blocks.ts";
import { inspectSnapshots, type ManifestEntry } from "./inspect-snapshots.ts";
import { JournalTally } from "./journal-tally.ts";
import { failedRecord, findRest, type RebuildDeps } from "./rebuild-from-broker.ts";
import { inspectArchive, type RecoveryArchive } from "./recovery-archive.ts";

/** Errors of a stopped shard that an operator can accept. */
const LOSSES: readonly ErrorCode[] = [
  "JOURNAL_DAMAGED",
  "JOURNAL_LOST",
  "SNAPSHOT_DAMAGED",
  "FOLD_FAILED",
];

/** Time limit of a look through the journal without a record. */
const SILENCE_MS = 5_000;

/** Dependencies of {@link inspectShard}. */
export interface InspectDeps extends Omit<RebuildDeps, "onStage"> {
  readonly client: JetStreamClient;
  readonly journalStorage: "file" | "memory";
  /** The error of its owner; undefined if it has none. */
  readonly ownerError: PserverError | undefined;
  /** The blocks that the shard must have. */
  readonly initialized: readonly InitializedBlock[];
  /** Mark of its owners. */
  readonly mark: HeadMark | undefined;
  /** Undefined if none was named. */
  readonly archive: RecoveryArchive | undefined;
}

/** What the store and the broker hold of a shard. */
interface Found {
  readonly entries: readonly ManifestEntry[];
  /** The newest manifest that can be read. */
  readonly newest: Manifest | undefined;
  readonly generation: number;
  /** Newest first. */
  readonly snapshots: readonly FoundSnapshot[];
  /** The newest whole snapshot of the generation. */
  readonly base: FoundSnapshot | undefined;
  /** Creation time of the stream that `base` belongs to; "" if it was not created then. */
  readonly created: string;
  readonly info: JournalInfo | undefined;
}

/**
 * Finds out whether a shard can be served, what is lost, and from which states it can go on; changes
 * nothing.
 * @throws TIMEOUT, JETSTREAM_UNAVAILABLE, NO_JETSTREAM, DENIED if the broker does not answer.
 */
export async function inspectShard(deps: InspectDeps): Promise<ShardFindings> {
  const { shard, subjects, ownerError, initialized } = deps;
  const found = await find(deps);
  const { entries, generation, snapshots, base, info } = found;
  const toldSeq = lastKnown(deps, found);
  const changed = ownerError && changedOf(ownerError);
  const failed = failedOf(ownerError, generation);
  const tally = new JournalTally({
    subjects,
    firstSeq: info?.firstSeq ?? 1,
    baseSeq: base?.seq ?? 0,
    places: snapshots.map(({ seq }) => seq),
    missing: info?.missing ?? [],
    changed,
    failedSeq: failed?.seq,
  });
  const journal = info && (await inspectJournal(deps, found, info, tally));
  const lacked = tally.stillLacked(base?.lacks ?? initialized);
  const error = ownerError ?? problemOf(deps, found, journal, tally.prefixEnd, toldSeq);
  const condition = conditionOf(error);
  const archive =
    condition === "stopped" && deps.archive !== undefined
      ? await inspectArchive(deps.archive, shard, initialized)
      : undefined;
  const lastKnownSeq =
    archive?.generation === generation ? Math.max(toldSeq, archive.seq) : toldSeq;
  const rest = failed && (await inspectRest(deps, found, journal, failed, tally.readableEnd));
  const choices = choicesOf({
    generation,
    snapshots,
    ...{ journal, archive, rest },
    prefixEnd: tally.prefixEnd,
    prefixLacks: await lackedAfterBatches(deps.journal, generation, tally.batches, lacked),
    lastKnownSeq,
    lostFrom: lostFrom(ownerError),
    behind: (seq) => tally.behind(seq),
  });
  return {
    ...{ shard, condition },
    ...(error && { error: error.toWire() }),
    generation,
    manifestSeq: entries.at(-1)?.seq ?? 0,
    snapshots,
    ...(journal && { journal: { ...journal, ...(changed && { changed }) } }),
    ...(archive && { archive }),
    ...(rest && { rest }),
    lastKnownSeq,
    choices,
  };
}

async function find({ store, journal, mark, initialized }: InspectDeps): Promise<Found> {
  const entries = await store.manifestEntries();
  const newest = entries.findLast(({ manifest }) => manifest !== undefined)?.manifest;
  const generation =
    newest?.generation ?? Math.max(await journal.newestGeneration(), mark?.generation ?? 0);
  const snapshots = await inspectSnapshots(store, entries, initialized);
  const base = newestWhole(snapshots.filter((each) => each.generation === generation));
  const created = entries.find(({ seq }) => seq === base?.manifestSeq)?.manifest?.created ?? "";
  const info = generation === 0 ? undefined : await journal.info(generation);
  return { entries, newest, generation, snapshots, base, created, info };
}

/** The record of the newest journal that the owner cannot fold, if that is what it has stopped for. */
function failedOf(error: PserverError | undefined, generation: number): FailedRecord | undefined {
  return error?.details["generation"] === generation ? failedRecord(error) : undefined;
}

/** What the journal gives without the record that cannot be folded; undefined if it is not to be read. */
async function inspectRest(
  deps: InspectDeps,
  { entries, generation, base }: Found,
  journal: FoundJournal | undefined,
  failed: FailedRecord,
  seq: number,
): Promise<FoundRest | undefined> {
  if (journal === undefined || journal.problem !== undefined) return undefined;
  const manifest = entries.find((entry) => entry.seq === base?.manifestSeq)?.manifest;
  // Only the first journal of a shard begins with an empty state.
  const isWhole = generation === 1 && journal.firstSeq === 1;
  if (manifest === undefined && !isWhole) return undefined;
  const stored = manifest && { seq: base?.manifestSeq ?? 0, manifest };
  return await findRest(deps, failed, { generation, seq }, stored);
}

/** Last record of the generation that is known to have existed. */
function lastKnown({ ownerError, mark }: InspectDeps, found: Found): number {
  const { entries, generation, info, created } = found;
  const manifests = entries.flatMap(({ manifest }) =>
    manifest?.generation === generation ? [manifest.seq] : [],
  );
  const isSame = info !== undefined && (created === "" || created === info.created);
  const to = ownerError?.details["to"];
  return Math.max(
    0,
    ...manifests,
    isSame ? lastRecordSeq(info) : 0,
    mark?.generation === generation ? mark.seq : 0,
    typeof to === "number" ? to : 0,
  );
}

/** Looks through the journal's records, which `tally` counts; skips those that it cannot deliver. */
async function inspectJournal(
  { manager, client, journal }: InspectDeps,
  found: Found,
  info: JournalInfo,
  tally: JournalTally,
): Promise<FoundJournal> {
  const stream = journal.stream(found.generation);
  const { firstSeq, bytes } = info;
  const lastSeq = lastRecordSeq(info);
  const start = { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: firstSeq };
  const scan = { manager, client, stream, start, graceMs: SILENCE_MS };
  if (firstSeq <= lastSeq) {
    await brokerCall(`looking through the journal ${stream}`, { stream }, () =>
      scanStream(scan, (seq, subject) => {
        if (seq <= lastSeq) tally.record(seq, subject);
        return seq < lastSeq;
      }),
    );
  }
  tally.end(lastSeq);
  const problem = await mismatchOf(journal, found, info);
  return { stream, firstSeq, lastSeq, bytes, gaps: tally.gaps, ...(problem && { problem }) };
}

/** Why a journal is not the one that a snapshot belongs to; undefined if it is. */
async function mismatchOf(
  journal: Journal,
  { generation, base, created }: Found,
  info: JournalInfo,
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
function lostFrom(ownerError: PserverError | undefined): number | undefined {
  if (ownerError?.code !== "JOURNAL_LOST") return undefined;
  const { from } = ownerError.details;
  return typeof from === "number" ? from : undefined;
}

function conditionOf(error: PserverError | undefined): ShardCondition {
  if (error === undefined) return "whole";
  return LOSSES.includes(error.code) ? "stopped" : "failed";
}

/** The error that a new owner would stop with; undefined if it could serve the shard. */
function problemOf(
  { shard, journalStorage, mark }: InspectDeps,
  { newest, snapshots, base }: Found,
  journal: FoundJournal | undefined,
  prefixEnd: number,
  lastKnownSeq: number,
): PserverError | undefined {
  const details = { shard };
  if (newest === undefined && snapshots.length === 0 && journal === undefined) {
    // A shard that was never created has no mark either.
    return mark && journalLost(shard, 1, mark.seq, "and all snapshots are gone");
  }
  if (base === undefined) {
    const text = `shard ${shard}: no whole snapshot is left`;
    return new PserverError("SNAPSHOT_DAMAGED", text, details);
  }
  if (journal === undefined) {
    if (journalStorage === "memory" || newest?.created === "") return undefined;
    return new PserverError("JOURNAL_LOST", `shard ${shard}: the journal stream is gone`, details);
  }
  // An owner replaces one in memory that is not the one that was folded, or ends before that.
  const isOther = journal.problem !== undefined || lastKnownSeq > journal.lastSeq;
  if (journalStorage === "memory" && isOther) return undefined;
  if (journal.problem !== undefined) {
    return new PserverError("JOURNAL_LOST", `shard ${shard}: ${journal.problem}`, details);
  }
  const gap = journal.gaps.find(({ to }) => to > base.seq);
  if (gap !== undefined) return journalDamaged(shard, gap.from, gap.to + 1);
  if (lastKnownSeq <= prefixEnd) return undefined;
  return journalLost(shard, prefixEnd + 1, lastKnownSeq, "ends too early");
}
