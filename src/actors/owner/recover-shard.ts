import {
  decodeMessage,
  ensureError,
  type JobSubjects,
  PserverError,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import { type BlockHeader, heldBytes, slotPlan } from "../fold/block-actor.ts";
import { parseFoldState } from "../fold/fold-state.ts";
import { Shard } from "../fold/shard.ts";

import type { Journal } from "../journal/journal.ts";
import { journalLost } from "../journal/journal-check.ts";
import type { Manifest, StoredManifest } from "../journal/manifest.ts";
import type { MarkKeeper } from "../journal/mark-keeper.ts";
import {
  type BlockPieces,
  blockKey,
  readSnapshotState,
  type SnapshotStore,
} from "../journal/snapshot-store.ts";

/** A shard restored from its newest snapshot, whose manifest fences off former owners. */
export interface RecoveredShard {
  readonly shard: Shard;
  /** Pieces that the newest manifest names, by block. */
  readonly stored: ReadonlyMap<string, BlockPieces>;
  /** The newest manifest, written again under this owner's term; undefined for a new shard. */
  readonly manifest: StoredManifest | undefined;
}

/** Pieces read from the broker at one time. */
const READS_AT_ONCE = 4;

/** Dependencies of {@link recoverShard}. */
interface RecoverDeps {
  readonly subjects: JobSubjects;
  readonly shard: number;
  readonly host: string;
  /** Token unique to this take-over. */
  readonly owner: string;
  readonly store: SnapshotStore;
  readonly journal: Pick<Journal, "shard" | "lastSeq">;
  readonly marks: Pick<MarkKeeper, "read">;
  /** Reserves memory for the values of these blocks. @throws NO_MEMORY. */
  readonly reserve: (valueBytes: number, blocks: readonly BlockHeader[]) => void;
}

/**
 * Takes a shard over: writes its newest manifest again under the next term, so that the broker refuses
 * the former owner's next write, and loads the snapshot that it names, or, if that one is damaged, an
 * older one: the journal reaches back to it.
 * @throws NOT_OWNER if somebody else takes it over at the same time; SNAPSHOT_DAMAGED if no snapshot
 * can be loaded, or none is left of a shard that has a journal; JOURNAL_LOST if neither is left of a
 * shard that was folded; NO_MEMORY, before allocating, if the host lacks the memory.
 */
export async function recoverShard(deps: RecoverDeps): Promise<RecoveredShard> {
  const { subjects, shard, host, owner, store } = deps;
  const last = (await store.lastManifest()) ?? (await checkIsNew(deps));
  if (last === undefined) {
    return { shard: Shard.create({ subjects, shard }), stored: new Map(), manifest: undefined };
  }
  const term = last.manifest.term + 1;
  const manifest: Manifest = { ...last.manifest, term, host, owner };
  const seq = await store.commit(manifest, last.seq);
  // The copy under the older term names the same snapshot.
  await store.remove([last.seq]);
  try {
    return await loadSnapshot(deps, { seq, manifest });
  } catch (error) {
    if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
    return await loadOlder(deps, { seq, manifest }, error);
  }
}

/**
 * Passes if a shard without a manifest is new: a manifest is stored before anything else, so a journal
 * or a mark without one belongs to a shard that has lost its snapshots.
 * @returns the manifest if another host has created the shard meanwhile.
 * @throws SNAPSHOT_DAMAGED, JOURNAL_LOST
 */
async function checkIsNew(deps: RecoverDeps): Promise<StoredManifest | undefined> {
  const { store, journal, marks } = deps;
  const mark = await marks.read();
  const generation = mark?.generation ?? 1;
  const hasJournal = (await journal.lastSeq(generation)) !== undefined;
  if (!hasJournal && mark === undefined) return undefined;
  const last = await store.lastManifest();
  if (last !== undefined) return last;
  if (!hasJournal)
    throw journalLost(journal.shard, 1, mark?.seq ?? 0, "and all snapshots are gone");
  const { shard } = journal;
  throw new PserverError(
    "SNAPSHOT_DAMAGED",
    `shard ${shard}: no snapshot is left, though there is a journal of generation ${generation}`,
    { shard, generation },
  );
}

/** Loads the newest older snapshot of the same journal that can be read, and commits it as the newest. */
async function loadOlder(
  deps: RecoverDeps,
  damaged: StoredManifest,
  error: unknown,
): Promise<RecoveredShard> {
  const { store } = deps;
  const { term, host, owner, generation, created } = damaged.manifest;
  for (const older of (await store.manifests()).reverse()) {
    const usable = older.seq < damaged.seq && older.manifest.generation === generation;
    if (!usable || older.manifest.created !== created) continue;
    try {
      const manifest: Manifest = { ...older.manifest, term, host, owner };
      const recovered = await loadSnapshot(deps, { seq: damaged.seq, manifest });
      const seq = await store.commit(manifest, damaged.seq);
      await store.remove([damaged.seq]);
      return { ...recovered, manifest: { seq, manifest } };
    } catch (cause) {
      if (ensureError(cause).code !== "SNAPSHOT_DAMAGED") throw cause;
    }
  }
  throw error;
}

/**
 * Restores the shard from the snapshot of a manifest.
 * @throws SNAPSHOT_DAMAGED if a piece of it is lost or has changed; the errors of `reserve`.
 */
export async function loadSnapshot(
  deps: Pick<RecoverDeps, "subjects" | "shard"> &
    Partial<Pick<RecoverDeps, "reserve">> & { readonly store: Pick<SnapshotStore, "read"> },
  stored: StoredManifest,
): Promise<RecoveredShard> {
  const { subjects, shard: number, store } = deps;
  const state = await readSnapshotState(store, stored.manifest);
  const { blocks, synchronization } = parseFoldState(state.fold);
  const valueBytes = blocks.map((block) => heldBytes(block, slotPlan(block, synchronization)));
  deps.reserve?.(
    valueBytes.reduce((sum, bytes) => sum + bytes, 0),
    blocks,
  );
  const shard = Shard.restoreEmpty({ subjects, shard: number }, state.fold);
  shard.continueChecksum(stored.manifest.checksum);
  await loadBlocks(shard, state.pieces, store);
  const pieces = state.pieces.map(
    (entry) => [blockKey(entry.parameter, entry.index), entry] as const,
  );
  return { shard, stored: new Map(pieces), manifest: stored };
}

/** Loads the slots of a restored shard from their pieces, a few at a time. */
async function loadBlocks(
  shard: Shard,
  pieces: readonly BlockPieces[],
  store: Pick<SnapshotStore, "read">,
): Promise<void> {
  const items = pieces.flatMap((entry) => entry.slots.map((ref, slot) => ({ entry, ref, slot })));
  const load = async ({ entry, ref, slot }: (typeof items)[number]): Promise<void> => {
    const { data } = decodeMessage(await store.read(ref));
    shard.loadSlot(entry.parameter, entry.index, slot, data);
  };
  await mapConcurrently(items, load, READS_AT_ONCE);
  shard.checkLoaded();
}

/**
 * Whether an apparent loss follows from another owner's take-over: an owner that was paused misses
 * records of journals that its successor has purged or replaced.
 */
export async function isDeposed(
  { code }: PserverError,
  store: Pick<SnapshotStore, "lastManifest">,
  owner: string | undefined,
): Promise<boolean> {
  if (code !== "JOURNAL_DAMAGED" && code !== "JOURNAL_LOST") return false;
  try {
    const last = await store.lastManifest();
    return last?.manifest.owner !== owner;
  } catch {
    // Unknown: the error stays until the shard is taken over again.
    return false;
  }
}
