import {
  asMap,
  ensureError,
  type Fields,
  integerField,
  type PserverError,
} from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { LifecycleService } from "../lifecycle/service.ts";

/** What a {@link MembersWatch} works with. */
export interface MembersWatchOptions {
  readonly service: Pick<LifecycleService, "expelLost" | "tellMembers">;
  /** What the host's shards last said of themselves. */
  readonly statuses: () => readonly Fields[];
  /** It looks three times in a lease time. */
  readonly leaseMs: number;
  /** Told of each look that failed; the next one comes in its time. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Keeps a host's part of the job's steps whole: members whose lease is lost are removed, so that nobody
 * waits for them, and shards of this host whose journal does not know the newest members are told.
 */
export class MembersWatch {
  readonly #options: MembersWatchOptions;
  readonly #clock: Clock;
  /** Shards that have begun to be served since the last look. */
  readonly #fresh: Set<number> = new Set();
  /** The newest revision at the look before: what came later may still be on its way. */
  #known = 0;
  #running = false;
  #queued = false;
  #look: Promise<void> = Promise.resolve();
  #cancelTimer: () => void = () => undefined;

  constructor(options: MembersWatchOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Looks for the first time, and then until {@link MembersWatch.stop}. */
  start(): void {
    this.#running = true;
    this.#lookSoon();
  }

  /** Ends looking and waits for a look under way. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelTimer();
    await this.#look;
  }

  /** A shard is served from now on: what its journal lacks is told it at once. */
  serving(shard: number): void {
    this.#fresh.add(shard);
    if (this.#running) this.#lookSoon();
  }

  #lookSoon(): void {
    if (this.#queued) return;
    this.#queued = true;
    this.#cancelTimer();
    // After the one under way, so that there is one at a time.
    this.#look = this.#look.then(() => this.#lookOnce());
  }

  async #lookOnce(): Promise<void> {
    this.#queued = false;
    if (!this.#running) return;
    const fresh = new Set(this.#fresh);
    this.#fresh.clear();
    try {
      const { revision } = await this.#options.service.expelLost();
      const behind = this.#options.statuses().flatMap(({ shard, state, steps }) => {
        if (state !== "serving" || steps === undefined) return [];
        const number = Number(shard);
        const wanted = fresh.has(number) ? revision : this.#known;
        return integerField(asMap(steps, "steps"), "revision") < wanted ? [number] : [];
      });
      this.#known = revision;
      if (behind.length > 0) await this.#options.service.tellMembers(behind);
    } catch (error) {
      for (const shard of fresh) this.#fresh.add(shard);
      this.#options.onError(ensureError(error));
    }
    if (!this.#running) return;
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.after(this.#options.leaseMs / 3, () => this.#lookSoon());
  }
}
