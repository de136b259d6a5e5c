import {
  asMap,
  ensureError,
  type Fields,
  integerField,
  type PserverError,
} from "../../protocol/index.ts";
import type { Clock } from "../clock.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import { Rounds } from "../rounds.ts";

/** Dependencies of {@link MembersWatch}. */
export interface MembersWatchDeps {
  readonly service: Pick<LifecycleService, "expelLost" | "tellMembers">;
  /** The last statuses of the host's shards. */
  readonly statuses: () => readonly Fields[];
  /** The watch checks three times in a lease time. */
  readonly leaseMs: number;
  /** Told of each check that failed; the next one comes in its time. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Removes members whose lease is lost, so that nobody waits for them in the job's steps, and writes the
 * newest members into the journals of this host's shards that lack them.
 */
export class MembersWatch {
  readonly #deps: MembersWatchDeps;
  readonly #rounds: Rounds;
  /** Shards that have begun to be served since the last check. */
  readonly #fresh: Set<number> = new Set();
  /** The newest revision at the last check: later ones may still be under way to the journals. */
  #known = 0;

  constructor(deps: MembersWatchDeps) {
    this.#deps = deps;
    this.#rounds = new Rounds(() => this.#check(), deps.clock);
  }

  /** Checks at once, and then until {@link MembersWatch.stop}. */
  start(): void {
    void this.#rounds.start();
  }

  /** Stops checking and waits for a check under way. */
  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  /** A shard is served from now on: the newest members are written at once if its journal lacks them. */
  serving(shard: number): void {
    this.#fresh.add(shard);
    void this.#rounds.soon();
  }

  async #check(): Promise<number> {
    const fresh = new Set(this.#fresh);
    this.#fresh.clear();
    try {
      const { revision } = await this.#deps.service.expelLost();
      const behind = this.#deps.statuses().flatMap(({ shard, state, steps }) => {
        if (state !== "serving" || steps === undefined) return [];
        const number = Number(shard);
        const wanted = fresh.has(number) ? revision : this.#known;
        return integerField(asMap(steps, "steps"), "revision") < wanted ? [number] : [];
      });
      this.#known = revision;
      if (behind.length > 0) await this.#deps.service.tellMembers(behind);
    } catch (error) {
      for (const shard of fresh) this.#fresh.add(shard);
      this.#deps.onError(ensureError(error));
    }
    return this.#deps.leaseMs / 3;
  }
}
