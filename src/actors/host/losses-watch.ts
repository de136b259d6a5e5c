import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { Clock } from "../clock.ts";
import type { TakenBack } from "../lifecycle/lost-parameters.ts";
import type { LifecycleService } from "../lifecycle/service.ts";
import { Rounds } from "../rounds.ts";

/** Dependencies of {@link LossesWatch}. */
export interface LossesWatchDeps {
  readonly service: Pick<LifecycleService, "takeBackLost">;
  /** Pause before a check that failed is repeated: a third of it. */
  readonly leaseMs: number;
  /** Told what a shard has lost, if anything. */
  readonly onTakenBack: (shard: number, taken: TakenBack) => void;
  /** Told of each check that failed. */
  readonly onError: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Compares, each time that a shard with its journal in memory begins to be served, the job's records with the
 * blocks that the shard has, and makes what is lost initializable again.
 */
export class LossesWatch {
  readonly #deps: LossesWatchDeps;
  readonly #rounds: Rounds;
  /** Shards that have begun to be served since they were checked. */
  readonly #fresh: Set<number> = new Set();
  #isStopped = false;

  constructor(deps: LossesWatchDeps) {
    this.#deps = deps;
    this.#rounds = new Rounds(() => this.#check(), deps.clock);
  }

  /** Checks at once, and then whenever there is something to check until {@link LossesWatch.stop}. */
  start(): void {
    void this.#rounds.start();
  }

  /** Stops checking. A check under way, which may ask for a shard that has no owner any more, ends unheard. */
  stop(): void {
    this.#isStopped = true;
    void this.#rounds.stop();
  }

  /** A shard is served from now on. */
  serving(shard: number): void {
    this.#fresh.add(shard);
    void this.#rounds.soon();
  }

  async #check(): Promise<number> {
    for (const shard of [...this.#fresh]) {
      this.#fresh.delete(shard);
      try {
        const taken = await this.#deps.service.takeBackLost(shard);
        if (taken.parameters.length > 0 || taken.isJob) this.#deps.onTakenBack(shard, taken);
      } catch (error) {
        if (this.#isStopped) break;
        this.#fresh.add(shard);
        this.#deps.onError(ensureError(error));
      }
    }
    return this.#deps.leaseMs / 3;
  }
}
