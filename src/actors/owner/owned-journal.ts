import { setTimeout as delay } from "node:timers/promises";
import {
  ensureError,
  type Fallback,
  type Position,
  type PserverError,
  withFallbacks,
} from "../../protocol/index.ts";
import type { NotedChecksum } from "../fold/journal-checksum.ts";
import type { Shard } from "../fold/shard.ts";
import {
  type Journal,
  type JournalInfo,
  majorityInfo,
  majorityRecord,
} from "../journal/journal.ts";
import {
  checkJournal,
  type ExpectedJournal,
  type JournalGap,
  journalDamaged,
  journalLost,
  lastRecordSeq,
  type ObservedEnd,
  seqToReach,
} from "../journal/journal-check.ts";
import { RetryLimit } from "../journal/journal-reader.ts";
import { openGeneration } from "../journal/next-generation.ts";
import type { ReplicaDamage } from "../journal/replicas.ts";
import type { ManifestHeader } from "../journal/snapshots/snapshotter.ts";
import { notedChecksums, type Watermark } from "../journal/watermark.ts";
import type { WatermarkKeeper } from "../journal/watermark-keeper.ts";
import type { ShardSnapshots } from "./shard-snapshots.ts";

/** Pause after the broker could not store the snapshot for a skipped gap. */
const RETRY_MS = 500;

/** Dependencies of {@link OwnedJournal}. */
interface OwnedJournalDeps {
  readonly host: string;
  /** Token of this take-over. */
  readonly owner: string;
  readonly journal: Journal;
  readonly storage: "file" | "memory";
  readonly shard: Shard;
  readonly snapshots: ShardSnapshots;
  readonly journalEnd: ObservedEnd;
  /** Reads the watermark of former owners. */
  readonly watermarks: Pick<WatermarkKeeper, "read">;
  /** Called when the journal was replaced by one of the next generation. */
  readonly onReplaced: () => void;
  /** Called when the journal in memory is gone, and with it records that former owners have noted as folded. */
  readonly onFellBack: (manifest: ManifestHeader) => void;
  /** Called when a copy of the journal has another record than was folded, and another copy has that record. */
  readonly onReplicaDamaged: (damage: ReplicaDamage) => void;
  /** Called when a gap could not be skipped yet; it is retried. */
  readonly onGapRemains: (error: PserverError) => void;
}

/** Where a journal continues. */
export interface LocatedJournal {
  readonly stream: string;
  readonly generation: number;
  /** Checksums that were noted of it when it was folded before, ascending. */
  readonly noted: readonly NotedChecksum[];
}

/** The journal of a shard as its owner sees it: creates, checks and replaces it, and skips gaps. */
export class OwnedJournal {
  readonly #deps: OwnedJournalDeps;
  #closed = false;
  /**
   * How far the journal that is being replaced was folded. The fold's own position begins from 0 before the manifest
   * that says so is stored, which may take several attempts.
   */
  #replacing: Position | undefined;

  constructor(deps: OwnedJournalDeps) {
    this.#deps = deps;
  }

  /**
   * Checks the journal and returns where it continues. A journal in memory that is gone is replaced, and so is one
   * that is not the one that was folded: the brokers of a cluster make a stream again, empty and under its old
   * creation time, when the last of them that had it is started again. No file could give its records back.
   * @throws JOURNAL_LOST, JOURNAL_DAMAGED if a journal on file is not the one that was folded.
   */
  async locate(): Promise<LocatedJournal> {
    const { journal, storage, shard, snapshots, watermarks } = this.#deps;
    const { generation, created } = snapshots.manifestHeader();
    // The watermark is read first: after the journal was checked, a former owner that still folds may store records
    // and raise the watermark.
    const watermark = await watermarks.read();
    const found = await this.#checked({ generation, created, shard, watermark });
    if (found !== undefined && created !== "") await this.#noteEnd(generation, found);
    // Its creation was not completed. A deposed owner may be creating it at this moment, under the same
    // generation: there can be only one stream with the subjects.
    else if (found !== undefined || (storage === "file" && created === "")) await this.#open();
    else if (storage === "file") {
      throw journalLost(journal.shard, 1, this.#notedSeq(generation, watermark), "stream is gone");
    }
    // The journal in memory is gone, and records of other trainers may be lost with it.
    else {
      const from = this.#foldedSeq(generation) + 1;
      const to = this.#notedSeq(generation, watermark);
      await this.replace({ generation, from, to });
      if (to >= from) this.#deps.onFellBack(snapshots.manifestHeader());
    }
    const now = snapshots.manifestHeader().generation;
    return { stream: journal.stream(now), generation: now, noted: notedChecksums(watermark, now) };
  }

  /**
   * Replaces the journal by one of the next generation, from what is folded. `left`: the range of records that is
   * lost with the old journal; by default none that was folded.
   */
  async replace(left?: Fallback): Promise<void> {
    const { host, owner, shard, snapshots } = this.#deps;
    const previous = snapshots.newest?.manifest;
    const generation = previous?.generation ?? 0;
    await snapshots.commit(() => {
      const seq = this.#foldedSeq(generation);
      const lost = left ?? { generation, from: seq + 1, to: seq };
      this.#replacing = { generation, seq };
      shard.restartJournal();
      return {
        term: snapshots.newest?.manifest.term ?? 1,
        ...{ host, owner, generation: generation + 1, created: "" },
        fallbacks: previous === undefined ? [] : withFallbacks(previous.fallbacks, [lost]),
        ...(previous?.rewind && { rewind: previous.rewind }),
      };
    });
    this.#deps.onReplaced();
    await this.#open();
  }

  /**
   * Skips records that were never stored, by a snapshot after the gap: whoever takes the shard over later starts
   * there. Retries until the broker can store the snapshot.
   * @throws JOURNAL_DAMAGED if the gap may be a loss, NOT_OWNER if another owner has taken over, and the errors that
   * {@link RetryLimit} does not retry.
   */
  async skipGap(gap: JournalGap): Promise<void> {
    const { journal, shard, snapshots, journalEnd, onGapRemains } = this.#deps;
    const { generation } = snapshots.manifestHeader();
    journalEnd.checkGap(gap, generation, await majorityInfo(journal, generation));
    const limit = new RetryLimit();
    while (!this.#closed) {
      try {
        await snapshots.commitAcrossGap(() => {
          if (shard.seq < gap.to) shard.skipTo(gap.to);
          return snapshots.manifestHeader();
        });
        return;
      } catch (error) {
        const found = ensureError(error);
        if (limit.isReachedBy(found)) throw found;
        onGapRemains(found);
        await delay(RETRY_MS);
      }
    }
  }

  /**
   * Returns the state of the journal as `checkJournal` does; undefined also if a journal in memory is not the one
   * that was folded.
   */
  async #checked(expected: ExpectedJournal): Promise<JournalInfo | undefined> {
    const { journal, storage } = this.#deps;
    // Its replacement has begun: the fold has left it, and could not tell any more that it is another journal.
    if (storage === "memory" && this.#replacing?.generation === expected.generation)
      return undefined;
    try {
      const info = await checkJournal(journal, expected, this.#deps.onReplicaDamaged);
      if (info === undefined) return undefined;
      // None of its records was folded, so nothing can be compared: at least it must begin with its first record.
      const isOnlyMade =
        storage === "memory" && expected.created !== "" && expected.shard.seq === 0;
      const isSame = !isOnlyMade || (await journal.beginsWithRules(expected.generation));
      return isSame ? info : undefined;
    } catch (error) {
      const { code } = ensureError(error);
      const isOther = code === "JOURNAL_LOST" || code === "JOURNAL_DAMAGED";
      if (storage === "memory" && isOther) return undefined;
      throw error;
    }
  }

  /** Ends the retries of {@link skipGap}. */
  close(): void {
    this.#closed = true;
  }

  /** Returns the last record of a journal that this owner has folded. */
  #foldedSeq(generation: number): number {
    return this.#replacing?.generation === generation ? this.#replacing.seq : this.#deps.shard.seq;
  }

  /** Returns the last record that this owner or, according to the watermark, a former one has folded. */
  #notedSeq(generation: number, watermark: Watermark | undefined): number {
    const watermarkSeq = watermark?.generation === generation ? watermark.seq : 0;
    return Math.max(this.#foldedSeq(generation), watermarkSeq);
  }

  /** Creates the stream of the present generation, or completes it. */
  async #open(): Promise<void> {
    const { journal, storage, shard, snapshots } = this.#deps;
    const header = (): ManifestHeader => snapshots.manifestHeader();
    const commit = (made: () => ManifestHeader): Promise<unknown> => snapshots.commit(made);
    const info = await openGeneration({ journal, storage, shard, manifestHeader: header, commit });
    await this.#noteEnd(header().generation, info);
  }

  async #noteEnd(generation: number, info: JournalInfo): Promise<void> {
    const { snapshots, journalEnd } = this.#deps;
    snapshots.journalIs(info);
    const isKnown = journalEnd.knows(generation);
    journalEnd.note(
      generation,
      isKnown ? lastRecordSeq(info) : await this.#findEnd(generation, info),
    );
  }

  /** Finds the journal end when the shard is taken over. @throws JOURNAL_DAMAGED if that record cannot be read. */
  async #findEnd(generation: number, info: JournalInfo): Promise<number> {
    const { journal, shard } = this.#deps;
    const seq = seqToReach(journal.shard, shard.seq, info);
    if (seq > shard.seq && (await majorityRecord(journal, generation, seq)) === undefined) {
      throw journalDamaged(journal.shard, seq, undefined);
    }
    return seq;
  }
}
