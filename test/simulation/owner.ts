import type { JournalRecord } from "../../src/actors/fold/journal-record.ts";
import type { RecordAnswer } from "../../src/actors/fold/shard.ts";
import {
  checkRecordAt,
  checkState,
  type JournalGap,
  ObservedEnd,
  seqToReach,
} from "../../src/actors/journal/journal-check.ts";
import type { StoredManifest } from "../../src/actors/journal/manifest.ts";
import {
  type BlockPieces,
  blockKey,
  KeptSnapshots,
} from "../../src/actors/journal/snapshot-store.ts";
import { SnapshotBudget } from "../../src/actors/journal/snapshots/snapshot-budget.ts";
import { SnapshotCut } from "../../src/actors/journal/snapshots/snapshotter.ts";
import {
  isLater,
  nextWatermark,
  notedChecksums,
  type Watermark,
} from "../../src/actors/journal/watermark.ts";
import { FoldQueue } from "../../src/actors/owner/fold-loop.ts";
import { FragmentQueue, PositionQueue, StepQueue } from "../../src/actors/owner/pending-reads.ts";
import { OwnerCore } from "../../src/actors/owner/serving-shard.ts";

import { unpackValue } from "../../src/protocol/codec.ts";
import { ensureError } from "../../src/protocol/errors.ts";
import type { Outcome } from "../../src/protocol/messages/outcomes.ts";
import { BufferPool } from "../../src/transport/buffers.ts";
import type { Fold, FoldMaker, MemoryPool } from "./fold-maker.ts";
import { SHARD } from "./intents.ts";
import type { Journal } from "./journal.ts";
import type { Network } from "./network.ts";
import type { SimulatedClock } from "./simulated-clock.ts";
import { readValues, type Snapshot, type SnapshotStream } from "./snapshot-stream.ts";
import { promise } from "./violation.ts";

const GENERATION = 1;

/** Nothing of the journal is retained beyond the snapshots that are kept in any case. */
const RETAIN_BYTES = 0;

/** Deliveries of one record in a row that may be damaged: an owner takes many for a damaged journal. */
const DAMAGED_MAX = 3;

/** More rereads of one record than damage explains: one more confirms a record that is stored damaged. */
const REREADS_MAX = DAMAGED_MAX + 1;

/** Memory for the copies of all cuts. */
export const COPY_BUDGET = new SnapshotBudget(new BufferPool());

/** Deviations of an owner, for proving that the oracles find them. */
export interface OwnerFaults {
  /** Copies no block of a snapshot before it changes. */
  readonly copiesLate?: boolean;
  /** Answers outcome requests before it has folded so far. */
  readonly answersEarly?: boolean;
  /** Takes over one record further than its snapshot. */
  readonly skipsRecord?: boolean;
  /** Goes on behind a gap without a snapshot that says so. */
  readonly skipsSilently?: boolean;
  /** Takes the last sequence for the last record when it takes over. */
  readonly countsSequences?: boolean;
  /** Folds a record that was damaged in transit as it came. */
  readonly trustsDeliveries?: boolean;
  /** Takes an earlier end of the journal for the present one. */
  readonly trustsOldEnds?: boolean;
  /** Removes the pieces that only an older kept snapshot needs. */
  readonly forgetsOlder?: boolean;
}

/** What all owners share: the broker, and the watermark in the job's bucket. */
export interface OwnerWorld {
  readonly journal: Journal;
  readonly stream: SnapshotStream;
  readonly network: Network;
  readonly clock: SimulatedClock;
  readonly maker: FoldMaker;
  readonly pool: MemoryPool;
  watermark: Watermark | undefined;
  /** Keeps a snapshot that was committed for the oracles. */
  committed(snapshot: Snapshot): void;
}

/** The fold as a snapshot left it. */
export function restoreFold(maker: FoldMaker, pool: MemoryPool, snapshot: Snapshot): Fold {
  return maker.restore(pool.options(), unpackValue(snapshot.state.slice()), (block) =>
    readValues(snapshot, block),
  );
}

/**
 * A host that owns the shard, or still believes so. What it decides is decided by the code of the
 * actors: order, gaps and redeliveries by `FoldQueue`, the end at take-over by `ObservedEnd`, the
 * checks of the journal by `check-journal`, when it answers by `OwnerCore` and `PositionQueue`,
 * snapshots by `SnapshotCut`, what is kept of them by `KeptSnapshots`.
 *
 * Models are: the broker, with its compare-and-swap of manifests, because it is another program; the
 * reading of a snapshot, because it is nothing but I/O, and planted bugs change the state there; the
 * order of these steps (`ServingShard`, `OwnedJournal`, `Retention`, `Snapshotter`, `WatermarkKeeper`),
 * because they await the broker. The replacement of a journal that is lost is not simulated.
 */
export class Owner {
  readonly term: number;
  readonly fold: Fold;
  readonly #world: OwnerWorld;
  readonly #faults: OwnerFaults;
  readonly #queue: FoldQueue;
  readonly #core: OwnerCore;
  readonly #kept: KeptSnapshots;
  #manifest: StoredManifest;
  #stored: Map<string, BlockPieces>;
  #cut: SnapshotCut | undefined;
  #settled: RecordAnswer | undefined;
  #knownEnd = 0;
  #deliveries = 0;
  #rereads = 0;
  #alive = true;

  /** Takes over from a manifest, which it commits again under its term. */
  constructor(
    world: OwnerWorld,
    options: {
      readonly term: number;
      readonly from: StoredManifest;
      readonly faults: OwnerFaults;
      /** Whether it checks the journal; planted bugs change records. */
      readonly verifies: boolean;
    },
  ) {
    const { stream, journal } = world;
    this.#world = world;
    this.term = options.term;
    this.#faults = options.faults;
    this.#manifest = this.#fence(options.from);
    const { snapshot, stored } = stream.read(this.#manifest);
    this.#stored = new Map(stored);
    this.fold = this.#restore(snapshot);
    this.#kept = new KeptSnapshots(RETAIN_BYTES, stream.manifests);
    this.#queue = this.#makeQueue();
    this.#core = this.#makeCore();
    if (options.verifies) this.#checkJournal();
    const { journalEnd } = this.#core;
    const last = seqToReach(SHARD, this.fold.seq, journal.info());
    journalEnd.note(GENERATION, options.faults.countsSequences === true ? journal.last : last);
    this.#core.catchUp();
  }

  get alive(): boolean {
    return this.#alive;
  }

  get behind(): number {
    return this.#world.journal.lastRecord - this.fold.seq;
  }

  kill(): void {
    this.#alive = false;
  }

  /**
   * Folds the next record as it is delivered, perhaps damaged; skips a gap before it.
   * @returns the answer that it sends, if it sends one.
   */
  foldNext(
    isDamaged: boolean,
    note: (seq: number, settled: RecordAnswer | undefined) => void,
  ): RecordAnswer | undefined {
    const entry = this.#world.journal.readFrom(this.#queue.startSeq);
    if (!this.#alive || entry === undefined) return undefined;
    this.#queue.clear();
    this.#deliveries += 1;
    const damages = isDamaged && this.#rereads < DAMAGED_MAX;
    this.#queue.add(damages ? damaged(entry, this.#deliveries) : entry);
    this.#settled = undefined;
    const mayAnswer = this.#core.isServing;
    const stop = this.#queue.fold();
    if (stop.kind === "failed") throw stop.error;
    if (stop.kind === "gap") this.#skip(stop.gap);
    if (stop.kind === "reread") {
      this.#rereads += 1;
      const isSound = this.#queue.rememberMismatched() && this.#rereads <= REREADS_MAX;
      promise(isSound, () => `record ${entry.seq} is read again and again`);
    }
    if (stop.kind !== "idle") return undefined;
    this.#rereads = 0;
    note(entry.seq, this.#settled);
    this.#core.catchUp();
    this.#core.advanced(this.#position);
    return mayAnswer ? this.#settled : undefined;
  }

  /** Answers an outcome request once it has folded so far. */
  ask(
    trainer: string,
    request: { session: number; numbers: readonly number[] },
    seq: number,
    answer: (outcomes: readonly Outcome[]) => void,
  ): void {
    if (!this.#alive) return;
    const run = (): void => {
      if (this.#alive) answer(this.fold.outcomes(trainer, request));
    };
    const refuse = ({ code }: { readonly code: string }): void =>
      promise(code !== "JOURNAL_LOST", () => `record ${seq} of ${trainer} is said to be lost`);
    if (this.#faults.answersEarly === true) run();
    else if (this.#core.isServing) {
      const wanted = { generation: GENERATION, seq, asker: trainer };
      this.#core.positions.at(this.#position, { from: trainer, wanted, waitMs: 1, run, refuse });
    }
  }

  /** Writes the watermark, as far as a later owner or a later watermark lets it. */
  writeWatermark(): void {
    const { fold, term } = this;
    const world = this.#world;
    if (!this.#alive || !fold.endsWithRecord || term < (world.watermark?.term ?? 0)) return;
    const progress = { term, generation: GENERATION, ...fold.noted, recordCrc: fold.lastCrc };
    if (!isLater(progress, world.watermark)) return;
    world.watermark = nextWatermark(progress, world.watermark);
  }

  /** Begins a snapshot of this moment. */
  beginSnapshot(): void {
    this.#cut?.end();
    this.#cut = new SnapshotCut(this.fold, this.#stored, COPY_BUDGET);
  }

  /** Stores one block of the snapshot begun before; false if there is none left. */
  storeBlock(): boolean {
    const cut = this.#cut;
    const [pending] = cut?.pending ?? [];
    if (cut === undefined || pending === undefined) return false;
    const { parameter, index } = pending.block;
    const slots = cut.release(pending, (all) =>
      all.map((bytes) => this.#world.stream.publish(bytes)),
    );
    cut.stored({ parameter, index, ...pending.version, slots });
    return true;
  }

  /** Commits the snapshot begun before, unless a later owner has fenced it off. */
  finishSnapshot(): boolean {
    const cut = this.#cut;
    return this.#alive && cut !== undefined && this.#commit(cut, (kept) => this.#kept.add(kept));
  }

  get #position(): { generation: number; seq: number } {
    return { generation: GENERATION, seq: this.fold.seq };
  }

  /** Commits a manifest under this owner's term; a newer one that was damaged goes. */
  #fence({ manifest }: StoredManifest): StoredManifest {
    const { stream } = this.#world;
    const last = stream.manifests.at(-1)?.seq ?? 0;
    const own = { ...manifest, term: this.term, owner: `${this.term}` };
    const stored = stream.commit(own, last) as StoredManifest;
    stream.remove([last]);
    return stored;
  }

  #restore(snapshot: Snapshot): Fold {
    const { maker, pool, journal } = this.#world;
    const { copiesLate, skipsRecord } = this.#faults;
    const state = unpackValue(snapshot.state.slice()) as { seq: number };
    if (skipsRecord === true && snapshot.seq > 0 && snapshot.seq < journal.last) state.seq += 1;
    const options = pool.options({
      beforeChange: (block) => {
        if (copiesLate !== true) this.#cut?.beforeChange(block);
      },
      blockRemoved: (block) => {
        this.#cut?.blockRemoved(block);
        this.#stored.delete(blockKey(block.parameter, block.index));
      },
    });
    const fold = maker.restore(options, state, (block) => readValues(snapshot, block));
    fold.continueChecksum(this.#manifest.manifest.checksum);
    return fold;
  }

  #makeQueue(): FoldQueue {
    const { fold } = this;
    const trusts = this.#faults.trustsDeliveries === true;
    const apply = (record: JournalRecord) =>
      fold.apply(trusts ? { ...record, reread: true } : record);
    return new FoldQueue(
      {
        get seq() {
          return fold.seq;
        },
        apply,
      },
      {
        mayFold: () => true,
        onFolded: () => undefined,
        onSettled: (settled) => {
          this.#settled = settled;
        },
        onReread: () => undefined,
      },
    );
  }

  #makeCore(): OwnerCore {
    const { journal, network, clock } = this.#world;
    const positions = new PositionQueue({
      shard: SHARD,
      fallbacks: () => [],
      lastSeq: (_wanted, tell) =>
        network.send(() => {
          const before = this.#knownEnd;
          this.#knownEnd = journal.last;
          const found = this.#faults.trustsOldEnds === true ? before : this.#knownEnd;
          network.send(() => tell(found));
        }),
      onLost: () => undefined,
      clock,
    });
    const journalEnd = new ObservedEnd(SHARD);
    return new OwnerCore({
      shard: this.fold,
      journalEnd,
      positions,
      steps: new StepQueue(SHARD, clock),
      fragments: new FragmentQueue(SHARD, clock),
    });
  }

  #checkJournal(): void {
    const { journal, watermark } = this.#world;
    const expected = { generation: GENERATION, created: "now", shard: this.fold, watermark };
    const info = journal.info();
    for (const end of checkState(SHARD, expected, info)) {
      checkRecordAt(end, SHARD, info, journal.at(end.seq));
    }
    this.fold.expect(notedChecksums(watermark, GENERATION));
  }

  /** Skips records that were never stored, by a snapshot behind them. */
  #skip(gap: JournalGap): void {
    const { journal, stream } = this.#world;
    try {
      this.#core.journalEnd.checkGap(gap, GENERATION, journal.info());
    } catch (error) {
      // A newer owner may have purged the records.
      const isDeposed = stream.manifests.at(-1)?.manifest.owner !== `${this.term}`;
      const { message } = ensureError(error);
      promise(isDeposed, () => `the owner of term ${this.term} is stopped by a gap: ${message}`);
      this.kill();
      return;
    }
    this.fold.skipTo(gap.to);
    if (this.#faults.skipsSilently === true) return;
    this.beginSnapshot();
    if (this.#cut !== undefined) this.#commit(this.#cut, (kept) => this.#kept.restartAt(kept));
    this.#core.advanced(this.#position);
  }

  #commit(cut: SnapshotCut, keep: (stored: StoredManifest) => void): boolean {
    const { stream, journal } = this.#world;
    while (this.storeBlock());
    const header = { term: this.term, owner: `${this.term}` };
    const stored = stream.commitCut(cut, header, this.#manifest.seq);
    this.#cut = undefined;
    cut.end();
    if (stored === undefined) {
      this.kill();
      return false;
    }
    this.#manifest = stored;
    this.#stored = cut.reusable;
    this.#world.committed(stream.read(stored).snapshot);
    keep(stored);
    journal.purgeBelow(this.#kept.oldestSeq);
    while (this.#kept.dropOldest(journal.info(), [])) journal.purgeBelow(this.#kept.oldestSeq);
    const { forgetsOlder } = this.#faults;
    const kept = forgetsOlder === true ? new KeptSnapshots(RETAIN_BYTES, [stored]) : this.#kept;
    const manifests = forgetsOlder === true ? stream.manifests.map(({ seq }) => seq) : [];
    const unneeded = kept.unneeded(new Map(stream.sequences.map((seq) => [seq, 0])));
    stream.remove(unneeded.filter((seq) => !manifests.includes(seq)));
    return true;
  }
}

/** A record whose last byte was changed in transit, in each delivery to another one. */
function damaged(record: JournalRecord, delivery: number): JournalRecord {
  const payload = record.payload.slice();
  payload[payload.length - 1] = (payload.at(-1) ?? 0) ^ (1 + (delivery % 255));
  return { ...record, payload };
}
