import {
  comparePositions,
  ensureError,
  type JobSubjects,
  type Position,
  PserverError,
} from "../../protocol/index.ts";
import type { Block } from "../fold/block-actor.ts";
import type { Shard } from "../fold/shard.ts";
import type { ArchivedShard, ArchiverWatch } from "../journal/archivers.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import type { StoredManifest } from "../journal/manifest.ts";
import { HISTORY_SHARE, KeptSnapshots, type SnapshotStore } from "../journal/snapshot-store.ts";
import type { SnapshotBudget } from "../journal/snapshots/snapshot-budget.ts";
import type { PutOff } from "../journal/snapshots/snapshot-pace.ts";
import { type ManifestHeader, Snapshotter } from "../journal/snapshots/snapshotter.ts";
import type { TapeWriter } from "../journal/tape/tape-writer.ts";
import type { RecoveredShard } from "./recover-shard.ts";

/** Dependencies of {@link Retention}. */
interface RetentionDeps {
  readonly journal: Pick<Journal, "info" | "purgeBelow">;
  readonly store: Pick<SnapshotStore, "list" | "remove">;
  readonly kept: KeptSnapshots;
  /** Returns the most bytes of the snapshots that are kept; the newest two are kept in any case. */
  readonly keptBytesMax: () => number;
  /** Returns what each archiver of the job has copied of the shard. */
  readonly archived: () => Promise<readonly ArchivedShard[]>;
  /** Called for the first records that were removed before an archiver had them, since all had all; up to this one. */
  readonly onLeftBehind: (seq: number) => void;
}

/** Removes the snapshots of a shard that need not be kept, and the journal before the oldest kept. */
export class Retention {
  readonly #journal: RetentionDeps["journal"];
  readonly #store: RetentionDeps["store"];
  readonly #kept: KeptSnapshots;
  readonly #keptBytesMax: RetentionDeps["keptBytesMax"];
  readonly #archived: RetentionDeps["archived"];
  readonly #onLeftBehind: RetentionDeps["onLeftBehind"];
  /** Whether an archiver lacked records that were removed. */
  #isLeftBehind = false;
  /** Whether the records before a skipped gap may still be there. */
  #isBeforeGapLeft = false;

  constructor({ journal, store, kept, keptBytesMax, archived, onLeftBehind }: RetentionDeps) {
    this.#onLeftBehind = onLeftBehind;
    this.#journal = journal;
    this.#store = store;
    this.#kept = kept;
    this.#keptBytesMax = keptBytesMax;
    this.#archived = archived;
  }

  /** Oldest position from which the shard can be rebuilt. */
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
   * Does as {@link committed} for a snapshot after a skipped gap: removes all before it, records once the archivers
   * have them.
   */
  async committedAcrossGap(snapshot: StoredManifest): Promise<JournalInfo | undefined> {
    this.#kept.restartAt(snapshot);
    this.#isBeforeGapLeft = true;
    return await this.enforce();
  }

  /** Notes that the newest snapshot has another manifest, and removes the former one. */
  async renewed(newest: StoredManifest, formerSeq: number): Promise<void> {
    this.#kept.renew(newest);
    await this.#store.remove([formerSeq]);
  }

  /**
   * Removes what need not be kept, including what an owner that died has left. `isFull`: keeps the newest snapshot
   * only, because there was no room for another.
   */
  async enforce(isFull = false): Promise<JournalInfo | undefined> {
    this.#kept.dropEarlierGenerations();
    const { generation } = this.#kept;
    if (generation === undefined) return undefined;
    const archived = await this.#archived();
    let info = await this.#journal.info(generation);
    if (info !== undefined && this.#isBeforeGapLeft && !this.#kept.holdsBefore(info, archived)) {
      await this.#journal.purgeBelow(generation, this.oldestSeq);
      this.#noteArchivers({ generation, seq: this.oldestSeq - 1 }, archived);
      this.#isBeforeGapLeft = false;
      info = await this.#journal.info(generation);
    }
    const stored = await this.#store.list();
    const drop = (journal: JournalInfo): boolean =>
      this.#kept.dropOldest(journal, archived) ||
      this.#kept.dropBeyond(stored, this.#keptBytesMax(), isFull);
    while (info !== undefined && drop(info)) {
      await this.#journal.purgeBelow(generation, this.oldestSeq);
      this.#noteArchivers({ generation, seq: this.oldestSeq - 1 }, archived);
      info = await this.#journal.info(generation);
    }
    await this.#store.remove(this.#kept.unneeded(stored));
    return info;
  }

  /** Tells when archivers begin to lack records that were removed, up to a position. */
  #noteArchivers(removed: Position, archived: readonly ArchivedShard[]): void {
    const isBehind = archived.some(({ record }) => comparePositions(record, removed) < 0);
    if (isBehind && !this.#isLeftBehind) this.#onLeftBehind(removed.seq);
    this.#isLeftBehind = isBehind;
  }
}

/** Pause after a snapshot that failed. */
const RETRY_MS = 500;

/** How many snapshots in which every block has changed may be kept besides {@link SnapshotSettings.olderBytesMax}. */
const SNAPSHOTS_KEPT = 2;

/** The share of the interval between two snapshots by which one that is due may be put off while steps run. */
const PUT_OFF_SHARE = 0.5;

/** Share of a journal's limit from which on snapshots are made early. */
const EARLY_SHARE = 0.5;

/** Where the snapshots of a shard are stored, and when they are made. */
export interface SnapshotContext {
  readonly shard: number;
  readonly journal: Journal;
  readonly store: SnapshotStore;
  readonly worker: {
    readonly subjects: JobSubjects;
    readonly archivers: Pick<ArchiverWatch, "copied">;
    readonly snapshotBudget: SnapshotBudget;
    readonly settings: SnapshotSettings;
  };
}

/** Limits that decide when snapshots are made and how much is kept. */
export interface SnapshotSettings {
  /** Bytes of the journal between two snapshots. */
  readonly snapshotBytes: number;
  /** Bytes of the journal that are retained before the newest snapshots. */
  readonly retainBytes: number;
  /** Bytes of snapshots that may be kept in addition to twice the values and slots of the shard. */
  readonly olderBytesMax: number;
  /** The most bytes of a shard's state in one message. */
  readonly partBytesMax: number;
}

/** Reports of {@link ShardSnapshots} to whoever owns the shard. */
export interface SnapshotEvents {
  /** Called when copies were released and after each snapshot: the fold may go on. */
  onProgress(): void;
  /** Called when another owner has taken the shard over. */
  onDeposed(error: PserverError): void;
  /** Called when a snapshot was made, with the seconds that it took. */
  onSnapshotMade(seconds: number): void;
  /**
   * Called when a snapshot has failed; it is retried while the shard goes on. Not called again until one has succeeded,
   * or one fails for another reason.
   */
  onSnapshotFailed(error: PserverError): void;
  /** Called when records were removed before an archiver had copied them. */
  onArchiverBehind(error: PserverError): void;
}

/** State of a recovered shard that its snapshots begin with. */
export interface SnapshotBeginning {
  readonly recovered: RecoveredShard;
  /** All manifests in the store, oldest first. */
  readonly kept: readonly StoredManifest[];
  /** The tape, which must have the lines of all records that a snapshot covers; undefined for none. */
  readonly tape?: Pick<TapeWriter, "flush"> | undefined;
}

/** Makes the snapshots of one shard when they are due. */
export class ShardSnapshots {
  readonly #number: number;
  readonly #shard: Shard;
  readonly #settings: SnapshotSettings;
  readonly #budget: SnapshotBudget;
  readonly #events: SnapshotEvents;
  readonly #snapshotter: Snapshotter;
  readonly #retention: Retention;
  #manifest: StoredManifest | undefined;
  #making: Promise<StoredManifest> | undefined;
  /** Runs after a snapshot that failed, until the next attempt. */
  #retryTimer: NodeJS.Timeout | undefined;
  /** The failure that was reported last, since the last success. */
  #toldFailure: PserverError | undefined;
  #closed = false;
  #bytesSinceSnapshot = 0;
  /** Bytes of the journal that were folded since the snapshot under way became due. */
  #bytesSinceDue = 0;
  /** How many callers wait for a snapshot, which is then not put off. */
  #waiting = 0;
  #journalBytes = 0;
  #journalBytesMax = 0;

  constructor(
    { shard, journal, store, worker }: SnapshotContext,
    { recovered, kept, tape }: SnapshotBeginning,
    events: SnapshotEvents,
  ) {
    const { subjects, archivers, snapshotBudget: budget, settings } = worker;
    const { partBytesMax, retainBytes, olderBytesMax } = settings;
    this.#number = shard;
    this.#shard = recovered.shard;
    this.#settings = settings;
    this.#budget = budget;
    this.#events = events;
    this.#manifest = recovered.manifest;
    this.#snapshotter = new Snapshotter({
      ...{ store, subjects, shard, partBytesMax, budget, stored: recovered.stored },
      onProgress: () => events.onProgress(),
      ...(tape && { beforeCommit: (position: Position) => tape.flush(position) }),
    });
    this.#retention = new Retention({
      ...{ journal, store, kept: new KeptSnapshots(retainBytes, kept) },
      keptBytesMax: () => olderBytesMax + SNAPSHOTS_KEPT * recovered.shard.valueBytes,
      archived: () => archivers.copied(shard),
      onLeftBehind: (seq) => {
        const text = `records up to ${seq} were trimmed before an archiver had copied them`;
        events.onArchiverBehind(new PserverError("HISTORY_LOST", text, { shard, seq }));
      },
    });
  }

  /** The newest manifest. */
  get newest(): StoredManifest | undefined {
    return this.#manifest;
  }

  /** Oldest position from which the shard can be rebuilt. */
  get oldestSeq(): number {
    return this.#retention.oldestSeq;
  }

  /** Bytes of the journal: its size when it was last checked, and what was folded since. */
  get journalBytes(): number {
    return this.#journalBytes;
  }

  /** Bytes beyond which the broker refuses records; 0 before the journal was checked. */
  get journalBytesMax(): number {
    return this.#journalBytesMax;
  }

  /** Whether the fold has to wait until copies are released. */
  get holdsUp(): boolean {
    return this.#snapshotter.holdsUp;
  }

  /** Returns what the newest manifest begins with. @throws NOT_OWNER if there is no manifest yet. */
  manifestHeader(): ManifestHeader {
    const { seq: _seq, recordCrc: _crc, checksum: _checksum, ...rest } = this.#newest().manifest;
    const { state: _state, pieces: _pieces, ...header } = rest;
    return header;
  }

  /** Removes what the former owner has left. A failure is reported; the shard is served all the same. */
  async tidy(): Promise<void> {
    try {
      await this.#retention.enforce();
    } catch (error) {
      this.#tellFailure(ensureError(error));
    }
  }

  /** Notes the size of the journal. */
  journalIs({ bytes, bytesMax }: Pick<JournalInfo, "bytes" | "bytesMax">): void {
    this.#journalBytes = bytes;
    this.#journalBytesMax = bytesMax;
  }

  /**
   * Counts folded bytes of the journal, and makes a snapshot if one is due. `isCompared`: whether the records are
   * known to be those that were folded before; no snapshot is made of others.
   */
  advanced(bytes: number, isCompared: boolean): void {
    this.#bytesSinceSnapshot += bytes;
    this.#bytesSinceDue += bytes;
    this.#journalBytes += bytes;
    if (isCompared) this.#makeIfDue();
    this.#budget.worked();
    this.#budget.poke();
  }

  /** Must be called before a block's bytes change or are freed. */
  beforeChange(block: Block): void {
    this.#snapshotter.beforeChange(block);
  }

  /** Must be called when a block is gone. */
  blockRemoved(block: Block): void {
    this.#snapshotter.blockRemoved(block);
  }

  /** Ends a snapshot or a renewal under way, because its connection was lost. */
  abort(): void {
    const reason = new PserverError("NO_BROKER", "the broker was lost meanwhile");
    this.#snapshotter.abort(reason);
  }

  /** Starts no further snapshot. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    // One under way ends soon: its journal does not grow any more, and others may wait for their turn.
    this.#budget.poke();
  }

  /** Returns the newest snapshot if it is of `at` or later, else makes a new one; waits for one under way. */
  async make(at: Position): Promise<StoredManifest> {
    return await this.#waitFor(async () => {
      await this.#making?.catch(() => undefined);
      const newest = this.#manifest;
      if (newest !== undefined && isAtOrAfter(newest.manifest, at)) return newest;
      return await this.#start();
    });
  }

  /** Runs what waits for snapshots of the shard: none is put off meanwhile. */
  async #waitFor<Result>(run: () => Promise<Result>): Promise<Result> {
    this.#waiting += 1;
    this.#budget.poke();
    try {
      return await run();
    } finally {
      this.#waiting -= 1;
    }
  }

  /**
   * Commits the shard as it is when `header` is called, between two records. `putOff`: how long that may take; without
   * it, it is done at once.
   */
  async commit(header: () => ManifestHeader, putOff?: PutOff): Promise<StoredManifest> {
    const manifest = await this.#cut(header, putOff);
    await this.#retain((retention) => retention.committed(manifest));
    this.#toldFailure = undefined;
    return manifest;
  }

  /** Does as {@link commit} for a shard that has skipped a gap: no earlier record is needed then. */
  async commitAcrossGap(header: () => ManifestHeader): Promise<void> {
    await this.#waitFor(async () => {
      await this.#making?.catch(() => undefined);
      const manifest = await this.#cut(header);
      await this.#retain((retention) => retention.committedAcrossGap(manifest));
    });
  }

  /**
   * Writes the newest manifest again under the next term. If the broker takes it, no other host has taken the shard
   * over since it was first written.
   * @throws NOT_OWNER if one has.
   */
  async renew(): Promise<void> {
    let renewed = this.#newest();
    const formerSeq = await this.#snapshotter.renew(
      () => this.#newest(),
      (stored) => {
        this.#manifest = stored;
        renewed = stored;
      },
    );
    try {
      await this.#retention.renewed(renewed, formerSeq);
    } catch (error) {
      // The next snapshot removes it.
      this.#tellFailure(ensureError(error));
    }
  }

  async #cut(header: () => ManifestHeader, putOff?: PutOff): Promise<StoredManifest> {
    return await this.#snapshotter.cut(
      this.#shard,
      header,
      () => this.#manifest?.seq ?? 0,
      (stored) => {
        this.#manifest = stored;
      },
      putOff,
    );
  }

  #newest(): StoredManifest {
    if (this.#manifest !== undefined) return this.#manifest;
    throw new PserverError("NOT_OWNER", `shard ${this.#number} is not taken over yet`);
  }

  async #retain(forget: (retention: Retention) => Promise<JournalInfo | undefined>): Promise<void> {
    const info = await forget(this.#retention);
    if (info !== undefined) this.#journalBytes = info.bytes;
  }

  #makeIfDue(): void {
    const isPausing = this.#retryTimer !== undefined;
    if (this.#closed || isPausing || this.#making !== undefined || !this.#isDue()) return;
    // A failure is reported and retried.
    this.#start().catch(() => undefined);
  }

  #isDue(): boolean {
    return this.#bytesSinceSnapshot > 0 && this.#bytesSinceSnapshot >= this.#intervalBytes;
  }

  /** Bytes of the journal between two snapshots. */
  get #intervalBytes(): number {
    const { snapshotBytes } = this.#settings;
    const isEarly =
      this.#journalBytesMax > 0 && this.#journalBytes > EARLY_SHARE * this.#journalBytesMax;
    // Early snapshots are more than a sixteenth of the limit apart.
    const earlyBytes = Math.floor(this.#journalBytesMax / 16) + 1;
    return isEarly ? Math.min(snapshotBytes, earlyBytes) : snapshotBytes;
  }

  /** Returns how much of the growth of the journal has come by which a snapshot that is due may be put off. */
  readonly #putOff: PutOff = () => {
    // A journal that is full does not grow, until a snapshot lets it be trimmed.
    const isFilling =
      this.#journalBytesMax > 0 && this.#journalBytes > HISTORY_SHARE * this.#journalBytesMax;
    if (this.#closed || this.#waiting > 0 || isFilling) return 1;
    return this.#bytesSinceDue / (PUT_OFF_SHARE * this.#intervalBytes);
  };

  #start(): Promise<StoredManifest> {
    if (this.#making !== undefined) return this.#making;
    const result = this.#makeOrRetry().finally(() => {
      this.#making = undefined;
      this.#events.onProgress();
    });
    this.#making = result;
    // The journal may be full by now: then no further record triggers the next snapshot.
    void result.then(
      () => this.#makeIfDue(),
      () => undefined,
    );
    return result;
  }

  async #makeOrRetry(): Promise<StoredManifest> {
    let bytes = 0;
    this.#bytesSinceDue = 0;
    const startedMs = performance.now();
    try {
      const made = await this.commit(() => {
        // Records that were folded while the cut waited are in it.
        bytes = this.#bytesSinceSnapshot;
        this.#bytesSinceSnapshot = 0;
        return this.manifestHeader();
      }, this.#putOff);
      this.#events.onSnapshotMade((performance.now() - startedMs) / 1_000);
      return made;
    } catch (error) {
      const found = ensureError(error);
      this.#bytesSinceSnapshot += bytes;
      if (this.#closed) throw found;
      if (found.code === "NOT_OWNER") this.#events.onDeposed(found);
      else {
        this.#tellFailure(found);
        if (found.code === "JOURNAL_FULL") await this.#makeRoom();
        this.#retryLater();
      }
      throw found;
    }
  }

  /** Removes all snapshots but the newest, because the next one was refused. */
  async #makeRoom(): Promise<void> {
    try {
      await this.#retain((retention) => retention.enforce(true));
    } catch (error) {
      this.#tellFailure(ensureError(error));
    }
  }

  /** Retries by a timer: a full journal gets no record that could trigger it. */
  #retryLater(): void {
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = undefined;
      this.#makeIfDue();
    }, RETRY_MS);
  }

  #tellFailure(error: PserverError): void {
    const told = this.#toldFailure;
    this.#toldFailure = error;
    if (told?.code === error.code && told.message === error.message) return;
    this.#events.onSnapshotFailed(error);
  }
}

/** Whether a snapshot includes a position. */
function isAtOrAfter({ generation, seq }: Position, at: Position): boolean {
  return generation > at.generation || (generation === at.generation && seq >= at.seq);
}
