import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { KeptSnapshots } from "../snapshot/kept-snapshots.ts";
import type { StoredManifest } from "../snapshot/manifest.ts";
import type { SnapshotStore } from "../snapshot/store.ts";

/** Removes the snapshots of a shard that need not be kept, and the journal before the oldest kept. */
export class Retention {
  readonly #journal: Pick<Journal, "info" | "purgeBelow">;
  readonly #store: Pick<SnapshotStore, "list" | "remove">;
  readonly #kept: KeptSnapshots;

  constructor(deps: {
    readonly journal: Pick<Journal, "info" | "purgeBelow">;
    readonly store: Pick<SnapshotStore, "list" | "remove">;
    readonly kept: KeptSnapshots;
  }) {
    this.#journal = deps.journal;
    this.#store = deps.store;
    this.#kept = deps.kept;
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

  /** As {@link committed}, for a snapshot behind a skipped gap: all before it is removed. */
  async committedAcrossGap(snapshot: StoredManifest): Promise<JournalInfo | undefined> {
    this.#kept.restartAt(snapshot);
    await this.#journal.purgeBelow(snapshot.manifest.generation, this.oldestSeq);
    return await this.enforce();
  }

  /** Removes what need not be kept, including what an owner that died has left. */
  async enforce(): Promise<JournalInfo | undefined> {
    this.#kept.dropEarlierGenerations();
    const { generation } = this.#kept;
    if (generation === undefined) return undefined;
    let info = await this.#journal.info(generation);
    while (info !== undefined && this.#kept.dropOldest(info)) {
      await this.#journal.purgeBelow(generation, this.oldestSeq);
      info = await this.#journal.info(generation);
    }
    await this.#store.remove(this.#kept.unneeded(await this.#store.list()));
    return info;
  }
}
