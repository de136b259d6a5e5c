import {
  decodeMessage,
  ensureError,
  type JobSubjects,
  PserverError,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { BlockHeader } from "../fold/block.ts";
import type { ShardHooks } from "../fold/block-table.ts";
import { parseFoldState } from "../fold/fold-state.ts";
import { Shard } from "../fold/shard.ts";
import { heldBytes, slotPlan } from "../fold/slots.ts";
import type { Journal } from "../journal/journal.ts";
import type { Manifest, StoredManifest } from "../snapshot/manifest.ts";
import { type BlockPieces, blockKey, readSnapshotState } from "../snapshot/state.ts";
import type { SnapshotStore } from "../snapshot/store.ts";
import { journalLost } from "./check-journal.ts";
import type { MarkKeeper } from "./mark-keeper.ts";

/** A shard as its owner holds it right after taking it over: the newest snapshot, fenced. */
export interface Holding {
  readonly shard: Shard;
  /** Pieces that the newest manifest names. */
  readonly stored: ReadonlyMap<string, BlockPieces>;
  /** The newest manifest, written again under this owner's term; undefined for a new shard. */
  readonly manifest: StoredManifest | undefined;
}

/** Pieces read from the broker at one time. */
const READS_AT_ONCE = 4;

/** Whose shard is taken over by whom. */
export interface TakeOverOptions {
  readonly subjects: JobSubjects;
  readonly shard: number;
  readonly host: string;
  /** Token of this taking over, unlike that of any other. */
  readonly owner: string;
  readonly store: SnapshotStore;
  readonly journal: Pick<Journal, "shard" | "lastSeq">;
  readonly marks: Pick<MarkKeeper, "read">;
  readonly hooks: ShardHooks;
  /** Sets memory aside for the values of these blocks, in bytes; @throws NO_MEMORY. */
  readonly reserve: (valueBytes: number, blocks: readonly BlockHeader[]) => void;
}

/**
 * Takes a shard over: writes its newest manifest again under the next term, so that the former
 * owner's next write is refused, and loads the snapshot that it names. Where that one is damaged
 * the one before it is as good: the journal reaches back to it.
 * @throws NOT_OWNER if somebody else takes it over at the same time, SNAPSHOT_DAMAGED if no
 * snapshot can be loaded, also because none is left of a shard that has a journal, JOURNAL_LOST if
 * nothing at all is left of a shard that was folded, NO_MEMORY before memory is asked for that the host
 * does not have.
 */
export async function takeShardOver(options: TakeOverOptions): Promise<Holding> {
  const { subjects, shard: number, host, owner, store, hooks } = options;
  const last = (await store.lastManifest()) ?? (await findOlderLife(options));
  if (last === undefined) {
    return {
      shard: new Shard({ subjects, shard: number, hooks }),
      stored: new Map(),
      manifest: undefined,
    };
  }
  const term = last.manifest.term + 1;
  const manifest: Manifest = { ...last.manifest, term, host, owner };
  const seq = await store.commit(manifest, last.seq);
  // The copy under the older term names the same snapshot.
  await store.remove([last.seq]);
  try {
    return await loadSnapshot(options, { seq, manifest });
  } catch (error) {
    if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
    return await loadOlder(options, { seq, manifest }, error);
  }
}

/**
 * Makes sure that a shard without a manifest is new. A manifest is stored before everything else, so
 * what there is without one belongs to a shard that has lost its snapshots. Another host may be
 * making the shard at this moment: then its manifest is there by now.
 * @throws SNAPSHOT_DAMAGED, JOURNAL_LOST
 */
async function findOlderLife(options: TakeOverOptions): Promise<StoredManifest | undefined> {
  const { store, journal, marks } = options;
  const mark = await marks.read();
  // The first one, if nothing was ever noted.
  const generation = mark?.generation ?? 1;
  const hasJournal = (await journal.lastSeq(generation)) !== undefined;
  if (!hasJournal && mark === undefined) return undefined;
  const last = await store.lastManifest();
  if (last !== undefined) return last;
  if (!hasJournal) throw journalLost(journal, 1, mark?.seq ?? 0, "and all snapshots are gone");
  const { shard } = journal;
  throw new PserverError(
    "SNAPSHOT_DAMAGED",
    `shard ${shard}: no snapshot is left, though there is a journal of generation ${generation}`,
    { shard, generation },
  );
}

/** Loads the newest older snapshot of the journal that is whole, and makes it the newest. */
async function loadOlder(
  options: TakeOverOptions,
  damaged: StoredManifest,
  error: unknown,
): Promise<Holding> {
  const { store } = options;
  const { term, host, owner, generation, created } = damaged.manifest;
  for (const older of (await store.manifests()).reverse()) {
    const usable = older.seq < damaged.seq && older.manifest.generation === generation;
    if (!usable || older.manifest.created !== created) continue;
    try {
      const manifest: Manifest = { ...older.manifest, term, host, owner };
      const held = await loadSnapshot(options, { seq: damaged.seq, manifest });
      const seq = await store.commit(manifest, damaged.seq);
      await store.remove([damaged.seq]);
      return { ...held, manifest: { seq, manifest } };
    } catch (cause) {
      if (ensureError(cause).code !== "SNAPSHOT_DAMAGED") throw cause;
    }
  }
  throw error;
}

/**
 * The shard as the snapshot of a manifest has it.
 * @throws SNAPSHOT_DAMAGED if a piece of it is lost or changed; what `reserve` throws.
 */
export async function loadSnapshot(
  options: Pick<TakeOverOptions, "subjects" | "shard" | "store" | "hooks"> &
    Partial<Pick<TakeOverOptions, "reserve">>,
  stored: StoredManifest,
): Promise<Holding> {
  const { subjects, shard: number, store, hooks } = options;
  const state = await readSnapshotState(store, stored.manifest);
  const { blocks, synchronization } = parseFoldState(state.fold);
  const valueBytes = blocks.map((block) => heldBytes(block, slotPlan(block, synchronization)));
  options.reserve?.(
    valueBytes.reduce((sum, bytes) => sum + bytes, 0),
    blocks,
  );
  const shard = Shard.restoreEmpty({ subjects, shard: number, hooks }, state.fold);
  await loadBlocks(shard, state.pieces, store);
  const pieces = state.pieces.map(
    (entry) => [blockKey(entry.parameter, entry.index), entry] as const,
  );
  return { shard, stored: new Map(pieces), manifest: stored };
}

/** Fills the blocks of a restored shard from their pieces, a few at a time. */
async function loadBlocks(
  shard: Shard,
  pieces: readonly BlockPieces[],
  store: SnapshotStore,
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
 * Whether what looks like a loss to this owner is another owner's doing: to one who has slept while
 * another owner purged and replaced journals, records are missing that nobody lost.
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
    // Unknown: the finding stands until the shard is taken over again.
    return false;
  }
}
