import type { Manifest } from "../snapshot/manifest.ts";
import type { SnapshotStore } from "../snapshot/store.ts";

/** What a {@link RecoveryWatch} works with. */
export interface RecoveryWatchOptions {
  readonly store: Pick<SnapshotStore, "lastManifest">;
  /** Token of the owner that has failed. */
  readonly owner: string;
  readonly everyMs: number;
  /** Called once, with the newest manifest, when it is another owner's. */
  readonly onRecovered: (manifest: Manifest) => void;
}

/**
 * Looks for the end of a failure: an operator accepts a loss with `pserver recover`, which writes a
 * manifest of its own, and the host that had failed is told by nobody else.
 */
export class RecoveryWatch {
  readonly #options: RecoveryWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  /** Sequence of another owner's manifest whose journal was still to be made at the last look. */
  #unfinished: number | undefined;

  constructor(options: RecoveryWatchOptions) {
    this.#options = options;
    this.#wait();
  }

  /** Looks no more. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #wait(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#look(), this.#options.everyMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const { store, owner, onRecovered } = this.#options;
    try {
      const last = await store.lastManifest();
      if (last !== undefined && last.manifest.owner !== owner) {
        // Whoever recovers it makes the journal next; one that has died meanwhile does not.
        if (last.manifest.created !== "" || last.seq === this.#unfinished) {
          if (!this.#stopped) onRecovered(last.manifest);
          return;
        }
        this.#unfinished = last.seq;
      }
    } catch {
      // The broker does not answer, or the manifest is what is damaged: the next look may tell more.
    }
    this.#wait();
  }
}
