import type { Manifest } from "../snapshot/manifest.ts";
import type { SnapshotStore } from "../snapshot/store.ts";

/** Dependencies of {@link RecoveryWatch}. */
export interface RecoveryWatchDeps {
  readonly store: Pick<SnapshotStore, "lastManifest">;
  /** Token of the owner that has failed. */
  readonly owner: string;
  readonly everyMs: number;
  /** Called once when the newest manifest is another owner's. */
  readonly onRecovered: (manifest: Manifest) => void;
}

/**
 * Polls for the end of a failure: `pserver recover` writes a manifest of its own, and does not notify
 * the host that had failed.
 */
export class RecoveryWatch {
  readonly #deps: RecoveryWatchDeps;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  /** Sequence of another owner's manifest without a journal at the last look. */
  #unfinished: number | undefined;

  constructor(deps: RecoveryWatchDeps) {
    this.#deps = deps;
    this.#wait();
  }

  /** Stops polling. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #wait(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#look(), this.#deps.everyMs);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const { store, owner, onRecovered } = this.#deps;
    try {
      const last = await store.lastManifest();
      if (last !== undefined && last.manifest.owner !== owner) {
        // The recovery creates the journal next, unless it has died: then the next look finds it unchanged.
        if (last.manifest.created !== "" || last.seq === this.#unfinished) {
          if (!this.#stopped) onRecovered(last.manifest);
          return;
        }
        this.#unfinished = last.seq;
      }
    } catch {
      // The broker does not answer, or the manifest is damaged: the next look may succeed.
    }
    this.#wait();
  }
}
