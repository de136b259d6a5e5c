import {
  type CloseRecord,
  type DilocoSettings,
  ensureError,
  type PserverError,
} from "../../protocol/index.ts";
import { type Clock, systemClock } from "../concurrent.ts";
import type { Fragment } from "../fold/fragments/fragment-table.ts";
import type { FoldedRecord, FoldObserver } from "../fold/journal-record.ts";
import type { Shard } from "../fold/shard.ts";

/** Pause before a close is written again: it could not be stored, or was stored and the round is still open. */
const REPEAT_MS = 5_000;

/** Times of which the median counts. */
const TIMES_KEPT = 5;

/**
 * How long something took lately: the median of the last times, the lower one of two. So one time in which the broker was
 * away, or a trainer stopped, changes no grace.
 */
class RecentTimes {
  readonly #timesMs: number[] = [];

  add(ms: number): void {
    this.#timesMs.push(ms);
    if (this.#timesMs.length > TIMES_KEPT) this.#timesMs.shift();
  }

  /** 0 before the first time. */
  get medianMs(): number {
    const sorted = this.#timesMs.toSorted((a, b) => a - b);
    return sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  }
}

/** What an owner knows of the open round of a fragment. Times are in milliseconds of its clock. */
interface OpenRound {
  readonly round: number;
  readonly openedMs: number;
  /** When it had its quorum; undefined before. */
  quorumMs: number | undefined;
  /** When its close was written; undefined before. */
  sentMs: number | undefined;
  cancelTimer: () => void;
}

/** Dependencies of {@link RoundCloser}. */
interface RoundCloserDeps {
  readonly shard: Pick<Shard, "steps" | "fragments" | "synchronization" | "sampledFor">;
  /** Writes a record into the journal. */
  readonly append: (record: CloseRecord) => Promise<unknown>;
  /** Told that a record could not be written; it is written again later. */
  readonly onFailed: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Decides for the owner of a shard when the rounds of its fragments close, and writes that into the journal: a round
 * closes when its quorum has contributed and the grace is over, or all members have, and no earlier than the minimum
 * interval allows. Where samples are drawn, only those count that were drawn for the round. The fold decides nothing of
 * this, and knows no time.
 *
 * What it measures begins anew with each owner: until it has seen a quorum and a step time, the grace is its cap.
 */
export class RoundCloser implements FoldObserver {
  readonly measures = false;
  readonly #deps: RoundCloserDeps;
  readonly #clock: Clock;
  readonly #rounds: Map<string, OpenRound> = new Map();
  /** When each fragment was last seen to close a round. */
  readonly #closedMs: Map<string, number> = new Map();
  /** How long the steps of each member take, as it says. */
  readonly #stepMs: Map<string, RecentTimes> = new Map();
  /** How long rounds have waited for a quorum, and closes for the journal. */
  readonly #quorumMs: RecentTimes = new RecentTimes();
  readonly #syncMs: RecentTimes = new RecentTimes();
  #isStopped = false;

  constructor(deps: RoundCloserDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
  }

  /** Notes how long a trainer's steps take, and when a round closes. */
  observe(folded: FoldedRecord): void {
    if (folded.kind === "trainer" && folded.contributed !== undefined) {
      const { stepMs } = folded.contributed.contribution;
      if (stepMs !== undefined) this.#timesOf(folded.subject.trainer).add(stepMs);
    }
    if (folded.kind !== "host" || folded.closed === undefined) return;
    const { fragment } = folded.closed;
    const nowMs = this.#clock.now();
    this.#closedMs.set(fragment, nowMs);
    const sentMs = this.#rounds.get(fragment)?.sentMs;
    if (sentMs !== undefined) this.#syncMs.add(nowMs - sentMs);
    this.#forget(fragment);
  }

  failed(): void {
    // Times that were not noted make a grace longer or shorter, and change no result.
  }

  /** Looks at the open rounds of all fragments, after records were folded by an owner that answers. */
  advanced(): void {
    const { synchronization, fragments, steps } = this.#deps.shard;
    if (synchronization.mode !== "diloco" || this.#isStopped) return;
    for (const trainer of this.#stepMs.keys()) {
      if (steps.clockOf(trainer) === undefined) this.#stepMs.delete(trainer);
    }
    for (const fragment of fragments.all()) this.#look(fragment, synchronization);
  }

  /** Ends all decisions. */
  stop(): void {
    this.#isStopped = true;
    for (const { cancelTimer } of this.#rounds.values()) cancelTimer();
    this.#rounds.clear();
  }

  #timesOf(trainer: string): RecentTimes {
    const known = this.#stepMs.get(trainer);
    if (known !== undefined) return known;
    const times = new RecentTimes();
    this.#stepMs.set(trainer, times);
    return times;
  }

  #look(fragment: Readonly<Fragment>, settings: DilocoSettings): void {
    const { name, version } = fragment;
    if (fragment.round.length === 0) {
      this.#forget(name);
      return;
    }
    const open = this.#openRound(name, version + 1);
    open.cancelTimer();
    const dueMs = this.#dueMs(fragment, open, settings);
    if (dueMs === undefined) return;
    const nowMs = this.#clock.now();
    if (dueMs > nowMs) {
      open.cancelTimer = this.#clock.after(dueMs - nowMs, () => this.#lookAgain(name, settings));
    } else {
      this.#close(fragment, open, settings);
    }
  }

  #lookAgain(name: string, settings: DilocoSettings): void {
    const fragment = this.#deps.shard.fragments.get(name);
    if (fragment !== undefined && !this.#isStopped) this.#look(fragment, settings);
  }

  #openRound(name: string, round: number): OpenRound {
    const known = this.#rounds.get(name);
    if (known?.round === round) return known;
    known?.cancelTimer();
    const openedMs = this.#clock.now();
    const cancelTimer = (): void => undefined;
    const open = { round, openedMs, quorumMs: undefined, sentMs: undefined, cancelTimer };
    this.#rounds.set(name, open);
    return open;
  }

  #forget(name: string): void {
    this.#rounds.get(name)?.cancelTimer();
    this.#rounds.delete(name);
  }

  /** Returns when a round is to be closed; undefined while it has no quorum. */
  #dueMs(
    { name, round }: Readonly<Fragment>,
    open: OpenRound,
    settings: DilocoSettings,
  ): number | undefined {
    const { shard } = this.#deps;
    const { steps } = shard;
    const sample = shard.sampledFor(name, open.round);
    const contributors = new Set(round.map(({ trainer }) => trainer));
    for (const id of contributors) if (sample?.has(id) === false) contributors.delete(id);
    const asked = sample?.size ?? steps.memberCount;
    const needed = Math.max(1, Math.min(settings.quorum, asked));
    if (!steps.started || contributors.size < needed) return undefined;
    if (open.quorumMs === undefined) {
      open.quorumMs = this.#clock.now();
      this.#quorumMs.add(open.quorumMs - open.openedMs);
    }
    let present = 0;
    for (const trainer of contributors) if (steps.clockOf(trainer) !== undefined) present += 1;
    const graceMs = present === asked ? 0 : this.#graceMs(settings);
    const closedMs = this.#closedMs.get(name);
    const earliestMs = closedMs === undefined ? 0 : closedMs + settings.minIntervalMs;
    return Math.max(open.quorumMs + graceMs, earliestMs, (open.sentMs ?? -REPEAT_MS) + REPEAT_MS);
  }

  /**
   * Returns for how long a round waits after its quorum: the margin of the time that the slowest member still has before
   * it would adopt the result, from 0 to the cap.
   */
  #graceMs({ graceMargin, graceSteps, graceCapMs }: DilocoSettings): number {
    if (this.#stepMs.size === 0) return graceCapMs;
    const slowestMs = Math.max(...[...this.#stepMs.values()].map(({ medianMs }) => medianMs));
    const leftMs = graceSteps * slowestMs - this.#quorumMs.medianMs - this.#syncMs.medianMs;
    return Math.min(graceCapMs, Math.max(0, graceMargin * leftMs));
  }

  #close({ name, round }: Readonly<Fragment>, open: OpenRound, settings: DilocoSettings): void {
    open.sentMs = this.#clock.now();
    const record: CloseRecord = {
      verb: "close",
      fragment: name,
      round: open.round,
      contributions: round.length,
    };
    open.cancelTimer = this.#clock.after(REPEAT_MS, () => this.#lookAgain(name, settings));
    this.#deps.append(record).catch((error: unknown) => {
      if (!this.#isStopped) this.#deps.onFailed(ensureError(error));
    });
  }
}
