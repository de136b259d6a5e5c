import type { ArchivedShard } from "../archivers/archiver-record.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { KeptSnapshots } from "../snapshot/kept-snapshots.ts";
import type { StoredManifest } from "../snapshot/manifest.ts";
import type { SnapshotStore } from "../snapshot/store.ts";

/** Dependencies of {@link Retention}. */
export interface RetentionDeps {
  readonly journal: Pick<Journal, "info" | "purgeBelow">;
  readonly store: Pick<SnapshotStore, "list" | "remove">;
  readonly kept: KeptSnapshots;
  /** What each archiver of the job has copied of the shard. */
  readonly archived: () => Promise<readonly ArchivedShard[]>;
}

/** Removes the snapshots of a shard that need not be kept, and the journal before the oldest kept. */
export class Retention {
  readonly #journal: RetentionDeps["journal"];
  readonly #store: RetentionDeps["store"];
  readonly #kept: KeptSnapshots;
  readonly #archived: RetentionDeps["archived"];
  /** Whether the records before a skipped gap may still be there. */
  #isBeforeGapLeft = false;

  constructor({ journal, store, kept, archived }: RetentionDeps) {
    this.#journal = journal;
    this.#store = store;
    this.#kept = kept;
    this.#archived = archived;
  }

  /** Oldest position from which on the shard can be rebuilt. */
  get oldestSeq(): number {
    return this.#kept.oldestSeq;
  }

  /**
   * Adds a new snapshot and removes what need not be kept any more.
   * @returns the journal's state afterwards; undefined if it is gone.
   */
  async committed(snapshot: StoredManifest): Promise<JournalInfo | undefined> {
    this.#kept.add(snapshot);
    return await this.enforce();
  }

  /**
   * As {@link committed}, for a snapshot behind a skipped gap: all before it is removed, records once the
   * archivers have them.
   */
  async committedAcrossGap(snapshot: StoredManifest): Promise<JournalInfo | undefined> {
    this.#kept.restartAt(snapshot);
    this.#isBeforeGapLeft = true;
    return await this.enforce();
  }

  /** Notes that the newest snapshot has another manifest, and removes the one that it had. */
  async renewed(newest: StoredManifest, formerSeq: number): Promise<void> {
    this.#kept.renew(newest);
    await this.#store.remove([formerSeq]);
  }

  /** Removes what need not be kept, including what an owner that died has left. */
  async enforce(): Promise<JournalInfo | undefined> {
    this.#kept.dropEarlierGenerations();
    const { generation } = this.#kept;
    if (generation === undefined) return undefined;
    const archived = await this.#archived();
    let info = await this.#journal.info(generation);
    if (info !== undefined && this.#isBeforeGapLeft && !this.#kept.holdsBefore(info, archived)) {
      await this.#journal.purgeBelow(generation, this.oldestSeq);
      this.#isBeforeGapLeft = false;
      info = await this.#journal.info(generation);
    }
    while (info !== undefined && this.#kept.dropOldest(info, archived)) {
      await this.#journal.purgeBelow(generation, this.oldestSeq);
      info = await this.#journal.info(generation);
    }
    await this.#store.remove(this.#kept.unneeded(await this.#store.list()));
    return info;
  }
}
