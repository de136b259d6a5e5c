import {
  asMap,
  ensureError,
  type Fields,
  integerField,
  type PserverError,
  TRAINERS_MAX,
} from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import { Rounds } from "../rounds.ts";

/** Trainers in a shard's table from which on it counts as crowded. */
const CROWD = TRAINERS_MAX / 4;

/** How many more than were live after the last sweep make it crowded again. */
const CROWD_GROWTH = TRAINERS_MAX / 8;

/**
 * Time after which a full table is swept again even if all in it were live: they may have left. A sweep
 * reads the records of all trainers and is too expensive for every half second.
 */
const FULL_AGAIN_MS = 10_000;

/** How often the tables are checked: many short sessions fill them within seconds. */
const CHECK_MS = 500;

/** Dependencies of {@link SessionsWatch}. */
export interface SessionsWatchDeps {
  readonly service: Pick<LifecycleService, "endSessions" | "checkCounter">;
  /** The last statuses of the host's shards. */
  readonly statuses: () => readonly Fields[];
  /** Told of each check that failed; the next one comes in its time. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/** The last sweep that was written into a shard's journal: its position, and how many sessions are live. */
interface Sweep {
  readonly generation: number;
  readonly seq: number;
  readonly live: number;
  /** When it was written, by the host's clock. */
  readonly atMs: number;
}

/**
 * Keeps the tables of trainers of a host's shards from filling up with trainers that are gone: a crowded
 * shard is told which sessions have ended, and which were never given. Many sessions share one sweep, and
 * shards with few trainers cost nothing.
 */
export class SessionsWatch {
  readonly #deps: SessionsWatchDeps;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  readonly #sweeps: Map<number, Sweep> = new Map();
  #isCounterChecked = false;

  constructor(deps: SessionsWatchDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
    this.#rounds = new Rounds(() => this.#check(), this.#clock);
  }

  /** Checks at once, and then until {@link SessionsWatch.stop}. */
  start(): void {
    void this.#rounds.start();
  }

  /** Stops checking and waits for a check under way. */
  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  /** Finds out, once, whether the bucket has lost records; repeated while it cannot be read. */
  async #checkCounter(): Promise<void> {
    try {
      await this.#deps.service.checkCounter();
      this.#isCounterChecked = true;
    } catch (caught) {
      const error = ensureError(caught);
      if (error.retryable) return;
      this.#isCounterChecked = true;
      this.#deps.onError(error);
    }
  }

  async #check(): Promise<number> {
    if (!this.#isCounterChecked) await this.#checkCounter();
    try {
      const crowded = this.#deps.statuses().filter((status) => this.#isCrowded(status));
      if (crowded.length > 0) await this.#end(crowded.map(({ shard }) => Number(shard)));
    } catch (error) {
      this.#deps.onError(ensureError(error));
    }
    return CHECK_MS;
  }

  async #end(shards: readonly number[]): Promise<void> {
    const { live, at } = await this.#deps.service.endSessions(shards);
    for (const [shard, position] of at) {
      this.#sweeps.set(shard, { ...position, live, atMs: this.#clock.now() });
    }
  }

  #isCrowded({ shard, state, senders, generation, seq }: Fields): boolean {
    if (state !== "serving") return false;
    const trainers = integerField(asMap(senders, "senders"), "trainers");
    if (trainers < CROWD) return false;
    const sweep = this.#sweeps.get(Number(shard));
    if (sweep === undefined) return true;
    // The status does not show the effect of the last sweep before the shard has folded it.
    const isFolded =
      Number(generation) > sweep.generation ||
      (Number(generation) === sweep.generation && Number(seq) >= sweep.seq);
    if (!isFolded) return false;
    if (trainers >= sweep.live + CROWD_GROWTH) return true;
    return trainers >= TRAINERS_MAX && this.#clock.now() - sweep.atMs >= FULL_AGAIN_MS;
  }
}
