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

/** Trainers in a shard's table from which on those that have ended are looked for. */
const CROWD = TRAINERS_MAX / 4;

/** How many more there must be than were live the last time, before it is looked again. */
const CROWD_GROWTH = TRAINERS_MAX / 8;

/**
 * After which time a full table is looked at again, though as many are live: they may have left. A look
 * reads the records of all trainers, so that it is no matter of every half second.
 */
const FULL_AGAIN_MS = 10_000;

/** How often the tables are looked at: many short lives fill them within seconds. */
const LOOK_MS = 500;

/** What a {@link SessionsWatch} works with. */
export interface SessionsWatchOptions {
  readonly service: Pick<LifecycleService, "endSessions" | "checkCounter">;
  /** What the host's shards last said of themselves. */
  readonly statuses: () => readonly Fields[];
  /** Told of each look that failed; the next one comes in its time. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/** What was last written into a shard's journal, and how many trainers it leaves. */
interface Told {
  readonly generation: number;
  readonly seq: number;
  readonly live: number;
  /** When, by the host's clock. */
  readonly atMs: number;
}

/**
 * Keeps the tables of trainers of a host's shards from filling up with those that are gone: a shard that
 * remembers many is told which sessions have ended, and which were never given. Many lives share one look, and shards that few
 * trainers ever push to cost nothing.
 */
export class SessionsWatch {
  readonly #options: SessionsWatchOptions;
  readonly #clock: Clock;
  readonly #told: Map<number, Told> = new Map();
  #running = false;
  #isChecked = false;
  #look: Promise<void> = Promise.resolve();
  #cancelTimer: () => void = () => undefined;

  constructor(options: SessionsWatchOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Looks for the first time, and then until {@link SessionsWatch.stop}. */
  start(): void {
    this.#running = true;
    this.#look = this.#lookOnce();
  }

  /** Ends looking and waits for a look under way. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelTimer();
    await this.#look;
  }

  /** A bucket that has lost records shows in what is left of it; until that could be read it is tried again. */
  async #check(): Promise<void> {
    try {
      await this.#options.service.checkCounter();
      this.#isChecked = true;
    } catch (caught) {
      const error = ensureError(caught);
      if (error.retryable) return;
      this.#isChecked = true;
      this.#options.onError(error);
    }
  }

  async #lookOnce(): Promise<void> {
    if (!this.#isChecked) await this.#check();
    try {
      const crowded = this.#options.statuses().filter((status) => this.#isCrowded(status));
      if (crowded.length > 0) await this.#end(crowded.map(({ shard }) => Number(shard)));
    } catch (error) {
      this.#options.onError(ensureError(error));
    }
    if (!this.#running) return;
    this.#cancelTimer = this.#clock.after(LOOK_MS, () => {
      this.#look = this.#lookOnce();
    });
  }

  async #end(shards: readonly number[]): Promise<void> {
    const { live, at } = await this.#options.service.endSessions(shards);
    for (const [shard, position] of at) {
      this.#told.set(shard, { ...position, live, atMs: this.#clock.now() });
    }
  }

  #isCrowded({ shard, state, senders, generation, seq }: Fields): boolean {
    if (state !== "serving") return false;
    const trainers = integerField(asMap(senders, "senders"), "trainers");
    if (trainers < CROWD) return false;
    const told = this.#told.get(Number(shard));
    if (told === undefined) return true;
    // Until it is folded, what the shard was told last cannot show.
    const isFolded =
      Number(generation) > told.generation ||
      (Number(generation) === told.generation && Number(seq) >= told.seq);
    if (!isFolded) return false;
    if (trainers >= told.live + CROWD_GROWTH) return true;
    return trainers >= TRAINERS_MAX && this.#clock.now() - told.atMs >= FULL_AGAIN_MS;
  }
}
