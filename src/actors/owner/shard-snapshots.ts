import { ensureError, type Position, PserverError } from "../../protocol/index.ts";
import type { Block } from "../fold/block.ts";
import type { JournalInfo } from "../journal/journal.ts";
import type { StoredManifest } from "../snapshot/manifest.ts";
import { type CutHead, Snapshotter } from "../snapshot/snapshotter.ts";
import type { Holding } from "./holding.ts";
import { Retention } from "./retention.ts";
import type { ShardOwnerOptions } from "./shard-owner-options.ts";

/** Pause after a snapshot that the broker kept from success. */
const RETRY_MS = 500;

/** At this share of its limit a journal is snapshotted early. */
const EARLY_SHARE = 0.5;

/** What of the owner's options its snapshots need. */
type Options = Pick<
  ShardOwnerOptions,
  | "shard"
  | "subjects"
  | "journal"
  | "store"
  | "snapshotBytes"
  | "retainBytes"
  | "partBytesMax"
  | "snapshotBudget"
  | "onSnapshotFailed"
>;

/** The shard that is snapshotted, and who is told of it. */
export interface Snapshotted {
  readonly holding: Holding;
  /** All manifests there are, oldest first. */
  readonly kept: readonly StoredManifest[];
  /** Called when copies have gone and after each snapshot: the fold may go on. */
  readonly onProgress: () => void;
  /** Another owner has taken the shard over. */
  readonly onDeposed: (error: PserverError) => void;
}

/** Makes the snapshots of one shard when they are due, and knows the newest. */
export class ShardSnapshots {
  readonly #options: Options;
  readonly #snapshotted: Snapshotted;
  readonly #snapshotter: Snapshotter;
  readonly #retention: Retention;
  #manifest: StoredManifest | undefined;
  #making: Promise<StoredManifest> | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #closed = false;
  #bytesSinceSnapshot = 0;
  #journalBytes = 0;
  #journalBytesMax = 0;

  constructor(options: Options, snapshotted: Snapshotted) {
    const { shard, subjects, journal, store, retainBytes, partBytesMax } = options;
    const { holding, kept, onProgress } = snapshotted;
    this.#options = options;
    this.#snapshotted = snapshotted;
    this.#manifest = holding.manifest;
    this.#snapshotter = new Snapshotter({
      store,
      subjects,
      shard,
      partBytesMax,
      budget: options.snapshotBudget,
      onProgress,
      stored: holding.stored,
    });
    this.#retention = new Retention({ journal, store, retainBytes, kept });
  }

  /** The newest manifest. */
  get newest(): StoredManifest | undefined {
    return this.#manifest;
  }

  /** The oldest position that can still be rebuilt. */
  get oldestSeq(): number {
    return this.#retention.oldestSeq;
  }

  /** Bytes of the journal, as last heard and counted since. */
  get journalBytes(): number {
    return this.#journalBytes;
  }

  /** Whether the fold has to wait for copies to go. */
  get holdsUp(): boolean {
    return this.#snapshotter.holdsUp;
  }

  /** What the newest manifest says beside the fold; @throws NOT_OWNER if there is none yet. */
  head(): CutHead {
    const manifest = this.#manifest?.manifest;
    if (manifest === undefined) {
      const { shard } = this.#options;
      throw new PserverError("NOT_OWNER", `shard ${shard} is not taken over yet`);
    }
    const { term, host, owner, generation, created, fallbacks } = manifest;
    return { term, host, owner, generation, created, fallbacks };
  }

  /** Forgets what the former owner had not. What cannot be forgotten does not hinder serving. */
  async tidy(): Promise<void> {
    try {
      await this.#retention.enforce();
    } catch (error) {
      this.#options.onSnapshotFailed(ensureError(error));
    }
  }

  /** The journal was looked at. */
  journalIs({ bytes, bytesMax }: Pick<JournalInfo, "bytes" | "bytesMax">): void {
    this.#journalBytes = bytes;
    this.#journalBytesMax = bytesMax;
  }

  /** So many bytes of journal were folded: makes a snapshot if one is due. */
  advanced(bytes: number): void {
    this.#bytesSinceSnapshot += bytes;
    this.#journalBytes += bytes;
    this.#makeIfDue();
  }

  /** To be called before a block's bytes change or go. */
  beforeChange(block: Block): void {
    this.#snapshotter.beforeChange(block);
  }

  /** To be called when a block is gone. */
  blockRemoved(block: Block): void {
    this.#snapshotter.blockRemoved(block);
  }

  /** Ends a snapshot under way: the connection that carried it was lost. */
  abort(): void {
    const reason = new PserverError("NO_BROKER", "the broker was lost meanwhile");
    this.#snapshotter.abort(reason);
  }

  /** Makes no snapshot any more. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#retryTimer);
  }

  /** The newest snapshot if it is of `at` or later, else one made now; waits for one being made. */
  async make(at: Position): Promise<StoredManifest> {
    await this.#making?.catch(() => undefined);
    const newest = this.#manifest;
    if (newest !== undefined && isAtOrAfter(newest.manifest, at)) return newest;
    return await this.#start();
  }

  /** Commits the shard as it is once `head` was called; that is between two records. */
  async commit(head: () => CutHead): Promise<StoredManifest> {
    const manifest = await this.#cut(head);
    await this.#retain((retention) => retention.committed(manifest));
    return manifest;
  }

  /** As {@link commit}, of a shard whose journal is of no use up to where it is then. */
  async commitAcrossHole(head: () => CutHead): Promise<void> {
    await this.#making?.catch(() => undefined);
    const manifest = await this.#cut(head);
    await this.#retain((retention) => retention.committedAcrossHole(manifest));
  }

  async #cut(head: () => CutHead): Promise<StoredManifest> {
    const { shard } = this.#snapshotted.holding;
    return await this.#snapshotter.cut(
      shard,
      head,
      () => this.#manifest?.seq ?? 0,
      (stored) => {
        this.#manifest = stored;
      },
    );
  }

  async #retain(forget: (retention: Retention) => Promise<JournalInfo | undefined>): Promise<void> {
    const info = await forget(this.#retention);
    if (info !== undefined) this.#journalBytes = info.bytes;
  }

  #makeIfDue(): void {
    if (this.#closed || this.#making !== undefined || !this.#isDue()) return;
    // One that fails is told of, and tried again.
    this.#start().catch(() => undefined);
  }

  #isDue(): boolean {
    if (this.#bytesSinceSnapshot === 0) return false;
    if (this.#bytesSinceSnapshot >= this.#options.snapshotBytes) return true;
    const early =
      this.#journalBytesMax > 0 && this.#journalBytes > EARLY_SHARE * this.#journalBytesMax;
    // Early, but not after each record: a sixteenth of the limit lies between two of them.
    return early && this.#bytesSinceSnapshot > this.#journalBytesMax / 16;
  }

  #start(): Promise<StoredManifest> {
    if (this.#making !== undefined) return this.#making;
    const result = this.#makeOrRetry().finally(() => {
      this.#making = undefined;
      this.#snapshotted.onProgress();
    });
    this.#making = result;
    // So much may have come meanwhile that the journal is full, and nothing more will come.
    void result.then(
      () => this.#makeIfDue(),
      () => undefined,
    );
    return result;
  }

  async #makeOrRetry(): Promise<StoredManifest> {
    const bytes = this.#bytesSinceSnapshot;
    this.#bytesSinceSnapshot = 0;
    try {
      return await this.commit(() => this.head());
    } catch (error) {
      const found = ensureError(error);
      this.#bytesSinceSnapshot += bytes;
      if (this.#closed) throw found;
      if (found.code === "NOT_OWNER") this.#snapshotted.onDeposed(found);
      else {
        this.#options.onSnapshotFailed(found);
        // By a timer: to a journal that is full no record comes that could set it off.
        this.#retryTimer = setTimeout(() => this.#makeIfDue(), RETRY_MS);
      }
      throw found;
    }
  }
}

/** Whether a snapshot holds what was folded at a position. Generations replace each other in order. */
function isAtOrAfter({ generation, seq }: Position, at: Position): boolean {
  return generation > at.generation || (generation === at.generation && seq >= at.seq);
}
