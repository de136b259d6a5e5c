import { ensureError, type JobSubjects, PserverError } from "../../protocol/index.ts";
import type { BlockHeader } from "../fold/block-actor.ts";
import { Shard } from "../fold/shard.ts";
import type { Journal } from "../journal/journal.ts";
import { journalLost } from "../journal/journal-check.ts";
import type { Manifest, StoredManifest } from "../journal/manifest.ts";
import { type LoadedShard, loadSnapshot, type SnapshotStore } from "../journal/snapshot-store.ts";
import type { WatermarkKeeper } from "../journal/watermark-keeper.ts";

/** A shard restored from its newest snapshot, whose manifest fences off former owners. */
export interface RecoveredShard extends LoadedShard {
  /** The newest manifest, written again under this owner's term; undefined for a new shard. */
  readonly manifest: StoredManifest | undefined;
}

/** Dependencies of {@link recoverShard}. */
interface RecoverDeps {
  readonly subjects: JobSubjects;
  readonly shard: number;
  readonly host: string;
  /** Token unique to this take-over. */
  readonly owner: string;
  readonly store: SnapshotStore;
  readonly journal: Pick<Journal, "shard" | "lastSeq" | "newestGeneration">;
  readonly watermarks: Pick<WatermarkKeeper, "read">;
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
    return { ...(await loadSnapshot(deps, { manifest })), manifest: { seq, manifest } };
  } catch (error) {
    if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
    return await loadOlder(deps, { seq, manifest }, error);
  }
}

/**
 * Checks that a shard without a manifest is new. A manifest is stored before anything else, so a journal or a
 * watermark without one belongs to a shard that has lost its snapshots.
 * @returns the manifest if another host has created the shard in between.
 * @throws SNAPSHOT_DAMAGED, JOURNAL_LOST
 */
async function checkIsNew(deps: RecoverDeps): Promise<StoredManifest | undefined> {
  const { store, journal, watermarks } = deps;
  const watermark = await watermarks.read();
  // The first journal of a fork has a later generation.
  const generation = watermark?.generation ?? Math.max(1, await journal.newestGeneration());
  const hasJournal = (await journal.lastSeq(generation)) !== undefined;
  if (!hasJournal && watermark === undefined) return undefined;
  const last = await store.lastManifest();
  if (last !== undefined) return last;
  if (!hasJournal)
    throw journalLost(journal.shard, 1, watermark?.seq ?? 0, "and all snapshots are gone");
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
      const loaded = await loadSnapshot(deps, { manifest });
      const seq = await store.commit(manifest, damaged.seq);
      await store.remove([damaged.seq]);
      return { ...loaded, manifest: { seq, manifest } };
    } catch (cause) {
      if (ensureError(cause).code !== "SNAPSHOT_DAMAGED") throw cause;
    }
  }
  throw error;
}

/**
 * Whether an apparent loss follows from another owner's take-over: an owner that was paused misses records of
 * journals that its successor has purged or replaced.
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
    // The broker does not say: the error stays until the shard is taken over again.
    return false;
  }
}
