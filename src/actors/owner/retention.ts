import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { StoredManifest } from "../snapshot/manifest.ts";
import type { SnapshotStore } from "../snapshot/store.ts";

/** Snapshots that are kept in any case: the newest may turn out to be damaged. */
const MANIFESTS_MIN = 2;

/** At this share of its limit a journal gives up its history. */
const HISTORY_SHARE = 0.75;

/**
 * Keeps the newest snapshots of a shard, and older ones while the journal back to them fits in the
 * bytes to retain; forgets the rest, and the journal before the oldest kept.
 */
export class Retention {
  readonly #journal: Journal;
  readonly #store: SnapshotStore;
  readonly #retainBytes: number;
  /** Oldest first. */
  #kept: StoredManifest[];

  constructor(options: {
    readonly journal: Journal;
    readonly store: SnapshotStore;
    readonly retainBytes: number;
    readonly kept: readonly StoredManifest[];
  }) {
    this.#journal = options.journal;
    this.#store = options.store;
    this.#retainBytes = options.retainBytes;
    this.#kept = [...options.kept];
  }

  /** The oldest position that can still be rebuilt. */
  get oldestSeq(): number {
    return this.#kept[0]?.manifest.seq ?? 0;
  }

  /**
   * Takes note of a new manifest and forgets what is no longer kept.
   * @returns the journal's state afterwards, undefined if it is gone.
   */
  async committed(manifest: StoredManifest): Promise<JournalInfo | undefined> {
    this.#kept.push(manifest);
    return await this.enforce();
  }

  /**
   * As {@link committed}, of a snapshot made where records were passed over: all older ones go, and
   * the journal with them, because no replay leads from one of them across the hole.
   */
  async committedAcrossHole(manifest: StoredManifest): Promise<JournalInfo | undefined> {
    this.#kept = [manifest];
    await this.#journal.purgeBelow(manifest.manifest.generation, this.oldestSeq);
    return await this.enforce();
  }

  /** Forgets what is no longer kept, also what an owner that died had not forgotten yet. */
  async enforce(): Promise<JournalInfo | undefined> {
    const generation = this.#kept.at(-1)?.manifest.generation;
    if (generation === undefined) return undefined;
    // A snapshot of a journal that was replaced has no records after it any more.
    this.#kept = this.#kept.filter((entry) => entry.manifest.generation === generation);
    let info = await this.#journal.info(generation);
    while (info !== undefined && this.#kept.length > this.#least(info) && this.#isTooMuch(info)) {
      this.#kept.shift();
      await this.#journal.purgeBelow(generation, this.oldestSeq);
      info = await this.#journal.info(generation);
    }
    await this.#collect();
    return info;
  }

  /** Deletes every message of the shard that no kept snapshot names. */
  async #collect(): Promise<void> {
    const named = new Set<number>();
    for (const { seq, manifest } of this.#kept) {
      named.add(seq);
      for (const piece of manifest.state) named.add(piece.seq);
      for (const piece of manifest.pieces) named.add(piece);
    }
    const newest = this.#kept.at(-1)?.seq ?? 0;
    const all = await this.#store.list();
    await this.#store.remove(all.filter((seq) => seq < newest && !named.has(seq)));
  }

  #least(info: JournalInfo): number {
    return isCrowded(info) ? 1 : MANIFESTS_MIN;
  }

  #isTooMuch(info: JournalInfo): boolean {
    return info.bytes > this.#retainBytes || isCrowded(info);
  }
}

function isCrowded(info: JournalInfo): boolean {
  return info.bytesMax > 0 && info.bytes > HISTORY_SHARE * info.bytesMax;
}
