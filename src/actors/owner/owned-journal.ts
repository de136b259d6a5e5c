import { setTimeout as delay } from "node:timers/promises";
import {
  ensureError,
  type Fallback,
  type PserverError,
  withFallbacks,
} from "../../protocol/index.ts";
import type { Shard } from "../fold/shard.ts";
import type { Journal, JournalInfo } from "../journal/journal.ts";
import { RetryLimit } from "../journal/retry-limit.ts";
import type { CutHead } from "../snapshot/snapshotter.ts";
import { checkJournal, journalLost } from "./check-journal.ts";
import type { HeadMark } from "./head-mark.ts";
import { checkHole, findHead, type Hole, journalDamaged, lastRecordSeq } from "./hole.ts";
import type { MarkKeeper } from "./mark-keeper.ts";
import type { ShardSnapshots } from "./shard-snapshots.ts";

/** Pause after a hole could not be passed over because the broker could not store the snapshot. */
const RETRY_MS = 500;

/** What an {@link OwnedJournal} works with. */
export interface OwnedJournalOptions {
  readonly host: string;
  /** Token of this taking over. */
  readonly owner: string;
  readonly journal: Journal;
  readonly storage: "file" | "memory";
  readonly shard: Shard;
  readonly snapshots: ShardSnapshots;
  /** How far former owners had folded, as they noted it outside the journal. */
  readonly marks: Pick<MarkKeeper, "read">;
  /** The journal was replaced by one of the next generation. */
  readonly onReplaced: () => void;
  /** A hole could not be passed over yet; it is tried again. */
  readonly onHoleStays: (error: PserverError) => void;
}

/** The journal of a shard as its owner keeps it: made, checked, replaced, and led across holes. */
export class OwnedJournal {
  readonly #options: OwnedJournalOptions;
  /** The last record there was when this owner first saw the journal of a generation. */
  #taken: { readonly generation: number; readonly headSeq: number } | undefined;
  #headSeq = 0;
  #closed = false;

  constructor(options: OwnedJournalOptions) {
    this.#options = options;
  }

  /** Where the fold has to get to before it has caught up. */
  get headSeq(): number {
    return this.#headSeq;
  }

  /**
   * Where the journal continues; in memory mode a journal that is gone is made anew.
   * @throws JOURNAL_LOST, JOURNAL_DAMAGED if it is not the one that was folded.
   */
  async locate(): Promise<{ stream: string; generation: number }> {
    const { journal, storage, shard, snapshots, marks } = this.#options;
    const { generation, created } = snapshots.head();
    // Before the journal is looked at: a former owner that still folds may raise the mark meanwhile, and
    // a later one could be of a record that was stored after the look.
    const mark = await marks.read();
    const found = await checkJournal(journal, { generation, created, shard, mark });
    if (found !== undefined && created !== "") await this.#noteHead(generation, found);
    // One that was never finished. Another owner, deposed meanwhile, may be making it at this moment:
    // it has to be the same stream, because there is room for one only.
    else if (found !== undefined || (storage === "file" && created === "")) await this.#open();
    else if (storage === "file") {
      const noted = mark?.generation === generation ? mark.seq : 0;
      throw journalLost(journal, 1, Math.max(shard.seq, noted), "stream is gone");
    }
    // Records that it held may have gone with it, though nobody knows of any.
    else await this.replace([this.#leftBehind(generation, mark)]);
    const now = snapshots.head().generation;
    return { stream: journal.stream(now), generation: now };
  }

  /**
   * Makes the journal anew under the next generation: first the manifest of what is held, so that
   * nobody goes on under the old one, then the stream, then the manifest that knows the stream.
   * `left` says what is not kept of the journals that are left; by default nothing that was folded of
   * the present one is lost.
   */
  async replace(left?: readonly Fallback[]): Promise<void> {
    const { host, owner, shard, snapshots } = this.#options;
    const previous = snapshots.newest?.manifest;
    const generation = previous?.generation ?? 0;
    await snapshots.commit(() => {
      const folded = { generation, from: shard.seq + 1, to: shard.seq };
      const more = left ?? (previous === undefined ? [] : [folded]);
      const head: CutHead = {
        term: previous?.term ?? 1,
        host,
        owner,
        generation: generation + 1,
        created: "",
        fallbacks: withFallbacks(previous?.fallbacks ?? [], more),
      };
      shard.restartJournal();
      return head;
    });
    this.#options.onReplaced();
    await this.#open();
  }

  /**
   * Passes over records that were never written, once a snapshot says so: whoever takes the shard
   * over from then on begins behind the hole. Until the broker can store it, it is tried again.
   * @throws JOURNAL_DAMAGED if the hole may be a loss, NOT_OWNER if another owner has taken over, and what
   * else {@link RetryLimit} does not have tried again.
   */
  async passOver(hole: Hole): Promise<void> {
    const { journal, shard, snapshots, onHoleStays } = this.#options;
    const { generation } = snapshots.head();
    const info = await journal.info(generation);
    if (info === undefined || this.#taken?.generation !== generation) {
      throw journalDamaged(journal.shard, hole.from, hole.to + 1);
    }
    checkHole(journal.shard, hole, this.#taken.headSeq, info);
    const limit = new RetryLimit();
    while (!this.#closed) {
      try {
        await snapshots.commitAcrossHole(() => {
          if (shard.seq < hole.to) shard.skipTo(hole.to);
          return snapshots.head();
        });
        return;
      } catch (error) {
        const found = ensureError(error);
        if (limit.isReachedBy(found)) throw found;
        onHoleStays(found);
        await delay(RETRY_MS);
      }
    }
  }

  /** Ends an attempt to pass over a hole. */
  close(): void {
    this.#closed = true;
  }

  /** What was folded of a journal that is gone is kept; what a former owner had folded beyond is not. */
  #leftBehind(generation: number, mark: HeadMark | undefined): Fallback {
    const { seq } = this.#options.shard;
    const noted = mark?.generation === generation ? mark.seq : 0;
    return { generation, from: seq + 1, to: Math.max(seq, noted) };
  }

  /** Makes the stream of the present generation, or completes it, and says so in a manifest. */
  async #open(): Promise<void> {
    const { journal, shard, snapshots } = this.#options;
    const head = snapshots.head();
    const rules = shard.rules === 0 ? journal.rules : undefined;
    const left = await journal.setAside(head.fallbacks.map(({ generation }) => generation));
    const info = await this.#make(head, rules);
    const fallbacks = head.fallbacks.map((fallback) => {
      // What trainers had stored until nobody could store there any more is lost, too.
      const journalLeft = left.get(fallback.generation);
      const endSeq = journalLeft === undefined ? 0 : lastRecordSeq(journalLeft);
      return { ...fallback, to: Math.max(fallback.to, endSeq) };
    });
    await snapshots.commit(() => ({ ...head, created: info.created, fallbacks }));
    await this.#noteHead(head.generation, info);
  }

  /** Makes the stream of a generation. Journals that were left give way to it if there is no room. */
  async #make({ generation, fallbacks }: CutHead, rules: number | undefined): Promise<JournalInfo> {
    const { journal } = this.#options;
    try {
      return await journal.open(generation, rules);
    } catch (error) {
      if (ensureError(error).code !== "NO_SPACE") throw error;
      await journal.remove(fallbacks.map((fallback) => fallback.generation));
      return await journal.open(generation, rules);
    }
  }

  async #noteHead(generation: number, info: JournalInfo): Promise<void> {
    const { journal, shard, snapshots } = this.#options;
    snapshots.journalIs(info);
    if (this.#taken?.generation === generation) {
      this.#headSeq = lastRecordSeq(info);
      return;
    }
    this.#headSeq = await findHead(journal, generation, shard.seq, info);
    this.#taken = { generation, headSeq: this.#headSeq };
  }
}
