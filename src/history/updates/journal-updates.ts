import { setTimeout as delay } from "node:timers/promises";
import type { Shard } from "../../actors/fold/shard.ts";
import { foldDescribed } from "../../actors/updates/fold-described.ts";
import type { UpdateEvent } from "../../actors/updates/update-event.ts";
import {
  comparePositions,
  ensureError,
  type JobSubjects,
  type Position,
  type PserverError,
} from "../../protocol/index.ts";
import { reachOf, takeInventory } from "../reach.ts";
import { summarizeRecord } from "../record-summary.ts";
import { foldUnlessDamaged, nextTurn, readAgain } from "../replay/fold-records.ts";
import { loadBase } from "../replay/replay-shard.ts";
import type { ShardHistory, TimedRecord } from "../source.ts";

/** Time for which records are folded in one turn of the event loop. */
const TURN_MS = 20;

/** As far as any journal goes. */
const END_SEQ = Number.MAX_SAFE_INTEGER;

/** Pause between two looks whether a shard whose journal cannot be folded on goes on under a new generation. */
const FAILED_PAUSE_MS = 1_000;

/**
 * Updates of a shard in the order of its journal: the records are folded, so that it is known what became of each. A
 * record that cannot be folded is one update that was rejected with FOLD_FAILED, the last one that is known of its part.
 */
export class JournalUpdates {
  readonly #history: ShardHistory;
  readonly #subjects: JobSubjects;
  readonly #signal: AbortSignal;
  #shard: Shard | undefined;
  #generation = 0;
  /** Why the shard cannot be folded on. */
  #failure: PserverError | undefined;

  constructor(history: ShardHistory, subjects: JobSubjects, signal: AbortSignal) {
    this.#history = history;
    this.#subjects = subjects;
    this.#signal = signal;
  }

  /**
   * The updates after a position up to another one, some at a time. What the source does not hold any more
   * is left out. May be called again to go on.
   * @throws what the source and the fold throw; the reason of the signal.
   */
  async *between(after: Position, to: Position): AsyncGenerator<readonly UpdateEvent[]> {
    for (const part of reachOf(await takeInventory(this.#history))) {
      const { generation, firstSeq, lastSeq } = part;
      const last = { generation, seq: lastSeq };
      if (generation > to.generation || comparePositions(last, after) <= 0) continue;
      const fromSeq = generation === after.generation ? Math.max(firstSeq, after.seq) : firstSeq;
      const toSeq = generation === to.generation ? Math.min(lastSeq, to.seq) : lastSeq;
      if (fromSeq >= toSeq) continue;
      await this.#load({ generation, seq: fromSeq });
      try {
        yield* this.#fold(fromSeq, toSeq);
      } catch (error) {
        if (ensureError(error).code !== "FOLD_FAILED") throw error;
      }
    }
  }

  /** The updates after a position as they come, until the signal is aborted. @throws as {@link between}. */
  async *follow(after: Position): AsyncGenerator<readonly UpdateEvent[]> {
    await this.#load(after);
    let afterSeq = after.seq;
    for (;;) {
      try {
        yield* this.#fold(afterSeq, END_SEQ);
      } catch (error) {
        const { code, retryable } = ensureError(error);
        this.#signal.throwIfAborted();
        const newer = await this.#newerGeneration();
        if (newer !== undefined) {
          await this.#load({ generation: newer, seq: 0 });
          afterSeq = 0;
        } else if (code === "FOLD_FAILED") {
          await delay(FAILED_PAUSE_MS, undefined, { signal: this.#signal }).catch(() => undefined);
        }
        // A journal without news for a while, or a connection that is lost now.
        else if (code !== "TIMEOUT" && !retryable) throw error;
      }
    }
  }

  /** Has a shard that was folded up to a position or less. */
  async #load({ generation, seq }: Position): Promise<void> {
    const present = this.#shard;
    const isUsable = this.#failure === undefined && present !== undefined && present.seq <= seq;
    if (this.#generation === generation && isUsable) return;
    const [subjects, signal] = [this.#subjects, this.#signal];
    this.#shard = await loadBase(this.#history, { generation, seq }, { subjects, signal });
    this.#generation = generation;
    this.#failure = undefined;
  }

  /** The generation that has followed upon the present one, if there is one. */
  async #newerGeneration(): Promise<number | undefined> {
    const last = (await this.#history.spans()).at(-1)?.generation;
    return last !== undefined && last > this.#generation ? last : undefined;
  }

  /** Folds the records up to `toSeq`, and describes those after `afterSeq`. */
  async *#fold(afterSeq: number, toSeq: number): AsyncGenerator<readonly UpdateEvent[]> {
    const shard = this.#shard;
    if (shard === undefined) return;
    if (this.#failure !== undefined) throw this.#failure;
    const [history, signal, generation] = [this.#history, this.#signal, this.#generation];
    const place = { shard: history.shard, generation };
    const fold = (record: TimedRecord) => foldDescribed(shard, record, place);
    let turnEndsAtMs = performance.now() + TURN_MS;
    for await (const batch of history.read({ generation, seq: shard.seq }, toSeq, signal)) {
      let events: UpdateEvent[] = [];
      for (const record of batch) {
        try {
          const folded = foldUnlessDamaged(record, fold);
          const { events: described } = folded
            ? folded.result
            : fold(await readAgain(history, { generation, seq: record.seq }, record, signal));
          if (record.seq > afterSeq) events.push(...described);
        } catch (error) {
          const found = ensureError(error);
          if (found.code !== "FOLD_FAILED") throw error;
          this.#failure = found;
          yield [...events, this.#failedUpdate(record, found)];
          throw found;
        }
        if (performance.now() < turnEndsAtMs) continue;
        yield events;
        events = [];
        await nextTurn();
        signal.throwIfAborted();
        turnEndsAtMs = performance.now() + TURN_MS;
      }
      yield events;
    }
  }

  /** The only thing known of a record that cannot be folded: where it is, whose, and why. */
  #failedUpdate(record: TimedRecord, { code, message }: PserverError): UpdateEvent {
    const { seq, timeMs, payload } = record;
    const summary = summarizeRecord(this.#subjects.job, record);
    return {
      ...{ timeMs, shard: this.#history.shard, generation: this.#generation, seq },
      ...{ entry: 0, entries: 1, verb: summary?.verb ?? "unreadable" },
      outcome: { kind: "rejected", code, message },
      ...summary?.sender,
      bytes: payload.length,
    };
  }
}
