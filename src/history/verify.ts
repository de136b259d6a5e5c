import { changedRecordsOf } from "../actors/fold/journal-checksum.ts";
import type { Shard } from "../actors/fold/shard.ts";
import { journalDamaged } from "../actors/journal/journal-check.ts";
import type { Manifest } from "../actors/journal/manifest.ts";
import type { Watermark } from "../actors/journal/watermark.ts";
import {
  type ErrorCode,
  ensureError,
  type Fields,
  type Position,
  PserverError,
  parsePosition,
  type WireError,
} from "../protocol/index.ts";
import { foldRecords, type ReplayOptions, replayShard, shardAt } from "./replay/replay-shard.ts";
import type { ReplayedShard } from "./replay/replayed-model.ts";
import {
  basesOf,
  connectedUpTo,
  type HistorySource,
  type Inventory,
  isEndOfGap,
  type JournalSpan,
  notedIn,
  type ReplayBase,
  rebuildableRanges,
  recordsNotKept,
  type ShardHistory,
  spanWith,
  type TimedRecord,
  takeInventory,
} from "./source.ts";

/** Errors of a state that cannot be rebuilt. */
const UNKNOWN_BEFORE: readonly ErrorCode[] = [
  "HISTORY_LOST",
  "JOURNAL_DAMAGED",
  "SNAPSHOT_DAMAGED",
  "FOLD_FAILED",
];

/**
 * Compares the state that a generation began with, of which `shard` was loaded, with the state of the older
 * generation that it went on from. `first` if that cannot be rebuilt, or differs and need not be the same: after
 * an accepted loss the shard may have gone on from another state than its manifest tells.
 * @throws as `replayShard`, except for damage, which is reported where it is.
 */
async function compareBeginning(
  history: ShardHistory,
  { spans }: Inventory,
  manifest: Manifest,
  shard: Shard,
  { subjects, signal }: Pick<ReplayOptions, "subjects" | "signal">,
): Promise<"equal" | "different" | "first"> {
  const from = predecessorOf(manifest);
  if (from === undefined) return "first";
  if (!spans.some(({ generation }) => generation === from.generation)) return "first";
  try {
    const edit = withoutAside(manifest, from.generation);
    const before = await replayShard(history, from, { subjects, signal, edit });
    before.restartJournal();
    if (before.digest() === shard.digest()) return "equal";
    return manifest.past === undefined ? "first" : "different";
  } catch (error) {
    if (!UNKNOWN_BEFORE.includes(ensureError(error).code)) throw error;
    return "first";
  }
}

/** Returns the position from whose state a generation went on; undefined if its manifest does not tell. */
function predecessorOf({ fallbacks }: Manifest): Position | undefined {
  // Generations after that one were left out as a whole.
  const base = fallbacks.findLast(({ generation, from }) => from > 1 || generation === 1);
  return base && { generation: base.generation, seq: base.from - 1 };
}

/** Leaves out records that were put aside: of several losses of one generation, all but the last. */
function withoutAside(
  { fallbacks }: Manifest,
  generation: number,
): (record: TimedRecord) => TimedRecord | undefined {
  const aside = fallbacks.filter((fallback) => fallback.generation === generation).slice(0, -1);
  return (record) =>
    aside.some(({ from, to }) => from <= record.seq && record.seq <= to) ? undefined : record;
}

/** Result about one snapshot, or about the records after a position. */
export type VerifiedPlace = Position &
  (
    | { readonly kind: "equal" | "different" | "first" }
    | {
        readonly kind: "damaged" | "unreadable" | "given-up" | "not-kept";
        readonly error: WireError;
      }
  );

/** Result about a shard. */
export interface ShardVerification {
  readonly shard: number;
  /** Number of records folded. */
  readonly records: number;
  /**
   * In order: snapshots that are `equal` to the fold, `different`, or `damaged`; the `first` of each part that
   * can be folded, which nothing before it can be compared with; positions after which the journal is
   * `unreadable`, or, in what the shard did not keep of a journal after a loss that was accepted, `given-up`, or whose
   * next records are `not-kept`: they were trimmed before an archiver had copied them, or while they were read. That
   * with which a generation begins is compared with the fold of the one before, up to the
   * record from which the shard went on.
   */
  readonly places: readonly VerifiedPlace[];
}

/** Options of {@link verifyShard}. */
export interface VerifyOptions extends ReplayOptions {
  /** The fold begins at the nearest snapshot at or before this position; by default at the oldest snapshot. */
  readonly from?: Position | undefined;
}

/** Errors at which the fold of a journal ends. */
const UNREADABLE: readonly ErrorCode[] = ["JOURNAL_DAMAGED", "HISTORY_LOST", "FOLD_FAILED"];

/** A shard that was folded. */
interface FoldedShard {
  readonly shard: Shard;
  readonly generation: number;
}

/** A verification under way. */
interface Verifying {
  readonly history: ShardHistory;
  readonly inventory: Inventory;
  readonly options: VerifyOptions;
  readonly places: VerifiedPlace[];
  /** Gaps of the inventory that a place tells of. */
  readonly toldGaps: Set<JournalSpan>;
  /** The shard as far as it was folded; undefined before a snapshot was loaded, and after damage. */
  folded: FoldedShard | undefined;
  records: number;
  /** Watermark of its owners. */
  readonly watermark: Watermark | undefined;
}

/**
 * Folds all that is kept of a shard, from its oldest snapshot on, and compares the fold with each later snapshot:
 * state, values and slots. After damage it goes on from the next snapshot.
 * @returns the findings, and the shard at the end of its newest journal; undefined if damage hides it.
 * @throws errors of the source if it cannot be read now; the reason of the signal.
 */
export async function verifyShard(
  history: ShardHistory,
  options: VerifyOptions,
): Promise<{ verification: ShardVerification; end: FoldedShard | undefined }> {
  const inventory = await takeInventory(history);
  const state: Verifying = {
    ...{ history, inventory, options, places: [], toldGaps: new Set<JournalSpan>() },
    ...{ folded: undefined, records: 0, watermark: await history.watermark?.() },
  };
  const totalRecords = recordsToFold(inventory);
  for (const base of basesFrom(inventory, options.from)) {
    await foldAbandonedJournal(state, base.generation);
    await foldTo(state, base);
    await compareWith(state, base);
    options.onProgress?.(state.records, Math.max(totalRecords, state.records));
  }
  const newest = inventory.spans.at(-1);
  if (newest !== undefined) await foldTo(state, { ...newest, seq: newest.lastSeq });
  const { records, places, folded } = state;
  return { verification: { shard: history.shard, records, places }, end: folded };
}

/** Returns the snapshots to compare with: all from the nearest at or before a position on. */
function basesFrom(inventory: Inventory, from: Position | undefined): ReplayBase[] {
  const bases = basesOf(inventory);
  if (from === undefined) return bases;
  const isAfter = ({ generation, seq }: ReplayBase): boolean =>
    generation > from.generation || (generation === from.generation && seq > from.seq);
  const first = bases.findLastIndex((base) => !isAfter(base));
  return bases.slice(Math.max(0, first));
}

function recordsToFold(inventory: Inventory): number {
  return rebuildableRanges(inventory).reduce(
    (sum, { firstSeq, lastSeq }) => sum + lastSeq - firstSeq,
    0,
  );
}

/** Ends the fold of an older generation at its last record, before one of `generation` begins. */
async function foldAbandonedJournal(state: Verifying, generation: number): Promise<void> {
  const { folded, inventory } = state;
  if (folded === undefined || folded.generation === generation) return;
  const last = inventory.spans.findLast((span) => span.generation === folded.generation);
  await foldTo(state, { generation: folded.generation, seq: last?.lastSeq ?? folded.shard.seq });
  state.folded = undefined;
  const place = state.places.at(-1);
  if (place?.kind !== "unreadable" || !isGivenUp(inventory, place)) return;
  state.places[state.places.length - 1] = { ...place, kind: "given-up" };
}

/**
 * Whether the records after a position were given up with a journal that was abandoned for its loss, not by a rewind.
 */
function isGivenUp({ snapshots }: Inventory, { generation, seq }: Position): boolean {
  const manifests = snapshots.map(({ manifest }) => manifest);
  const lost = manifests.at(-1)?.fallbacks.find((fallback) => fallback.generation === generation);
  return (
    lost !== undefined && seq + 1 >= lost.from && manifests.every(({ past }) => past !== generation)
  );
}

/** Folds up to a position of the same generation; ends before it where records are missing. */
async function foldTo(state: Verifying, { generation, seq }: Position): Promise<void> {
  const { folded, inventory } = state;
  if (folded === undefined || folded.generation !== generation) return;
  const endSeq = connectedUpTo(inventory, { generation, seq: folded.shard.seq });
  await foldOn(state, folded, Math.min(seq, endSeq));
  if (seq <= endSeq || state.folded === undefined) return;
  state.folded = undefined;
  // Records that were never written are skipped by a snapshot right after them.
  if (isEndOfGap(inventory.spans, { generation, seq }, endSeq)) return;
  const { shard } = state.history;
  const gap = spanWith(inventory.gaps, { generation, seq: endSeq + 1 });
  if (gap === undefined) {
    const error = journalDamaged(shard, endSeq + 1, undefined).toWire();
    state.places.push({ generation, seq: endSeq, kind: "unreadable", error });
  } else if (!state.toldGaps.has(gap)) {
    // There may be snapshots of records in it: one place stands for all of it.
    state.toldGaps.add(gap);
    const error = recordsNotKept(shard, gap).toWire();
    state.places.push({ generation, seq: endSeq, kind: "not-kept", error });
  }
}

/** Folds records that are listed; ends at damage. */
async function foldOn(
  state: Verifying,
  { shard, generation }: FoldedShard,
  seq: number,
): Promise<void> {
  const from = shard.seq;
  try {
    await foldRecords(shard, state.history, { generation, seq }, state.options);
  } catch (thrown) {
    const found = ensureError(thrown);
    if (!UNREADABLE.includes(found.code)) throw thrown;
    const changed = changedRecordsOf(found);
    const before = changed === undefined ? shard.seq : changed.from - 1;
    const kind = found.code === "HISTORY_LOST" ? "not-kept" : "unreadable";
    const error = found.toWire();
    state.places.push({ generation, seq: before, kind, error });
    state.folded = undefined;
  } finally {
    state.records += shard.seq - from;
  }
}

/** Compares the fold with a snapshot at its position; if nothing is folded yet, the fold begins with the snapshot. */
async function compareWith(state: Verifying, base: ReplayBase): Promise<void> {
  const { history, options, places, folded } = state;
  const { generation, seq } = base;
  try {
    const shard = await shardAt(history, base, options.subjects);
    if (folded === undefined) {
      state.folded = { shard, generation };
      shard.expect(notedIn(state.inventory, state.watermark, generation));
    }
    const kind =
      folded === undefined
        ? await compareFirstSnapshot(state, base, shard)
        : isSame(folded.shard, shard);
    places.push({ generation, seq, kind });
  } catch (error) {
    const found = ensureError(error);
    if (found.code !== "SNAPSHOT_DAMAGED") throw error;
    if (await isStillKept(history, base)) {
      places.push({ generation, seq, kind: "damaged", error: found.toWire() });
    }
  }
}

/** Whether a snapshot is kept, and not removed since it was listed. */
async function isStillKept(
  history: ShardHistory,
  { generation, seq }: ReplayBase,
): Promise<boolean> {
  const snapshots = await history.snapshots();
  return snapshots.some(
    ({ manifest }) => manifest.generation === generation && manifest.seq === seq,
  );
}

/** Compares a snapshot that no fold has led to with the generation before it, if that can be rebuilt. */
async function compareFirstSnapshot(
  { history, inventory, options, places }: Verifying,
  { seq, snapshot }: ReplayBase,
  shard: Shard,
): Promise<"equal" | "different" | "first"> {
  if (places.length === 0 || seq > 0 || snapshot === undefined) return "first";
  return await compareBeginning(history, inventory, snapshot.manifest, shard, options);
}

function isSame(a: Shard, b: Shard): "equal" | "different" {
  return a.digest() === b.digest() ? "equal" : "different";
}

/** Kinds of places at which something is damaged or differs. */
const UNSOUND: readonly VerifiedPlace["kind"][] = ["different", "damaged", "unreadable"];

/** Whether nothing of a shard is damaged or different, apart from records that were given up. */
export function isSound({ places }: ShardVerification): boolean {
  return places.every(({ kind }) => !UNSOUND.includes(kind));
}

/** Result of the comparison of the fold with the host that serves the shard. */
export type ServedVerification =
  | { readonly kind: "equal"; readonly position: Position; readonly blocks: number }
  | {
      readonly kind: "different";
      readonly position: Position;
      /** What differs: `state`, or blocks as `"name" block 3`. */
      readonly what: readonly string[];
    }
  | { readonly kind: "unknown"; readonly error: WireError };

/** Errors after which it is not known what hosts hold: no host serves the shard, or an older version does. */
const UNKNOWN: readonly ErrorCode[] = [
  "NO_OWNER",
  "BAD_MESSAGE",
  "DENIED",
  "JOURNAL_REPLACED",
  "TIMEOUT",
];

/**
 * Compares the state and every block of a shard with what its owner holds, each at the position that the
 * owner has reached when it answers: the shard follows the journal up to there, so that trainers may train.
 * @throws JOURNAL_DAMAGED and the like if the journal cannot be followed; errors of the owner.
 */
export async function verifyServed(
  source: Pick<HistorySource, "askOwner">,
  shard: ReplayedShard,
): Promise<ServedVerification> {
  const what: string[] = [];
  let blocks = 0;
  try {
    if ((await ownersDigest(source, shard, {})) !== (await shard.stateDigest())) what.push("state");
    for (const { parameter, index } of shard.blocks) {
      const held = await ownersDigest(source, shard, { parameter, index });
      const own = await shard.blockDigest(parameter, index);
      if (held !== own) what.push(`${JSON.stringify(parameter)} block ${index}`);
      blocks += 1;
    }
  } catch (error) {
    const found = ensureError(error);
    if (!UNKNOWN.includes(found.code)) throw error;
    return { kind: "unknown", error: found.toWire() };
  }
  const { position } = shard;
  return what.length === 0
    ? { kind: "equal", position, blocks }
    : { kind: "different", position, what };
}

/** Returns the owner's digest, after the shard has folded up to the position of the digest. */
async function ownersDigest(
  source: Pick<HistorySource, "askOwner">,
  shard: ReplayedShard,
  block: Fields,
): Promise<unknown> {
  const { position } = shard;
  const message = await source.askOwner?.(shard.shard, "digest", { ...position, ...block });
  if (message === undefined) throw new PserverError("NO_OWNER", "no host can be reached from here");
  await shard.advance(parsePosition(message.fields));
  return message.fields["digest"] ?? undefined;
}
