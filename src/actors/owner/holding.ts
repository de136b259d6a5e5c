import { randomUUID } from "node:crypto";
import {
  decodeMessage,
  ensureError,
  type JobSubjects,
  PserverError,
} from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { ShardHooks } from "../fold/block-table.ts";
import { recordCrc } from "../fold/read-record.ts";
import { Shard } from "../fold/shard.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { Manifest, StoredManifest } from "../snapshot/manifest.ts";
import { type BlockPieces, blockKey, readSnapshotState } from "../snapshot/state.ts";
import type { SnapshotStore } from "../snapshot/store.ts";
import { journalDamaged } from "./hole.ts";

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
  readonly store: SnapshotStore;
  readonly hooks: ShardHooks;
}

/**
 * Takes a shard over: writes its newest manifest again under the next term, so that the former
 * owner's next write is refused, and loads the snapshot that it names. Where that one is damaged
 * the one before it is as good: the journal reaches back to it.
 * @throws NOT_OWNER if somebody else takes it over at the same time, SNAPSHOT_DAMAGED if no
 * snapshot can be loaded.
 */
export async function takeShardOver(options: TakeOverOptions): Promise<Holding> {
  const { subjects, shard: number, host, store, hooks } = options;
  const last = await store.lastManifest();
  if (last === undefined) {
    return {
      shard: new Shard({ subjects, shard: number, hooks }),
      stored: new Map(),
      manifest: undefined,
    };
  }
  const term = last.manifest.term + 1;
  const manifest: Manifest = { ...last.manifest, term, host, owner: randomUUID() };
  const seq = await store.commit(manifest, last.seq);
  // The copy under the older term names the same snapshot.
  await store.remove([last.seq]);
  try {
    return await load(options, { seq, manifest });
  } catch (error) {
    if (ensureError(error).code !== "SNAPSHOT_DAMAGED") throw error;
    return await loadOlder(options, { seq, manifest }, error);
  }
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
      const held = await load(options, { seq: damaged.seq, manifest });
      const seq = await store.commit(manifest, damaged.seq);
      await store.remove([damaged.seq]);
      return { ...held, manifest: { seq, manifest } };
    } catch (cause) {
      if (ensureError(cause).code !== "SNAPSHOT_DAMAGED") throw cause;
    }
  }
  throw error;
}

async function load(options: TakeOverOptions, stored: StoredManifest): Promise<Holding> {
  const { subjects, shard: number, store, hooks } = options;
  const state = await readSnapshotState(store, stored.manifest);
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
 * Checks that a journal is the one a shard has folded: made at the same time, not shorter, and
 * with the last folded record unchanged, unless records were passed over up to there.
 * @returns undefined if there is no stream.
 * @throws JOURNAL_LOST {from, to} if its newest records are gone, JOURNAL_DAMAGED {expected, found}
 * if records in it are.
 */
export async function checkJournal(
  journal: Journal,
  generation: number,
  created: string,
  shard: Pick<Shard, "seq" | "lastCrc">,
): Promise<JournalInfo | undefined> {
  const info = await journal.info(generation);
  if (info === undefined) return undefined;
  const { seq } = shard;
  if (created !== "" && info.created !== created) {
    throw journalLost(journal, 1, seq, `was made at ${created} and again at ${info.created}`);
  }
  if (info.lastSeq < seq) throw journalLost(journal, info.lastSeq + 1, seq, "ends too early");
  if (info.firstSeq > seq + 1) throw journalDamaged(journal.shard, seq + 1, info.firstSeq);
  // Without a checksum there is no record, or one that could not be told from another.
  if (shard.lastCrc !== 0) {
    const record = await journal.record(generation, seq);
    if (record === undefined) throw journalDamaged(journal.shard, seq, info.firstSeq);
    const crc = recordCrc(record.payload);
    if (crc !== shard.lastCrc) {
      throw new PserverError(
        "JOURNAL_DAMAGED",
        `shard ${journal.shard}: record ${seq} has changed: expected checksum ${shard.lastCrc}; found ${crc}`,
        { shard: journal.shard, seq, expected: shard.lastCrc, found: crc },
      );
    }
  }
  return info;
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

/** The error for folded records that a journal does not hold any more; none if `to` is 0. */
export function journalLost(
  journal: Pick<Journal, "shard">,
  from: number,
  to: number,
  how: string,
): PserverError {
  const what = to < from ? "nothing of it had been folded" : `records ${from} to ${to} are lost`;
  return new PserverError("JOURNAL_LOST", `shard ${journal.shard}: the journal ${how}; ${what}`, {
    shard: journal.shard,
    from,
    to,
  });
}
