import { ensureError, escapeId, type PserverError, unescapeId } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { LeaseClock } from "../leases/lease-clock.ts";
import { LeaseKeeper } from "../leases/lease-keeper.ts";
import { LeaseView } from "../leases/lease-view.ts";
import type { Leases, LeaseValue } from "../leases/leases.ts";
import { Rounds } from "../rounds.ts";
import { DECLINED_LEASES, DeclinedShards, declinedBy } from "./declined-shards.ts";
import { placeShard } from "./placement.ts";

/** Prefix of the keys of all hosts' leases. */
export const HOST_LEASES = "host.";

/** Prefix of the keys of all shards' leases. */
export const SHARD_LEASES = "shard.";

/** Callbacks of {@link ShardClaims}. */
export interface ClaimEvents {
  /**
   * The lease of a shard was claimed: own it. Called again when a lease that had run out is held again;
   * another host may have owned the shard meanwhile.
   */
  readonly onClaimed: (shard: number) => void;
  /** Another host holds the lease, or is to hold it: stop owning the shard. */
  readonly onReleased: (shard: number) => void;
  readonly onError: (error: PserverError) => void;
}

/** Dependencies of {@link ShardClaims}. */
export interface ShardClaimsDeps {
  readonly job: string;
  readonly shards: number;
  readonly host: string;
  /** Value of this host's leases; `owner` is unique to this life of the host. */
  readonly value: LeaseValue;
  readonly leases: Leases;
  readonly leaseMs: number;
  readonly clock: LeaseClock;
  readonly events: ClaimEvents;
  /** Of the hosts' leases. */
  readonly hosts: LeaseView;
  /** Of the leases by which hosts decline shards. */
  readonly declinedByHosts: LeaseView;
  /** Shards that this host declines. */
  readonly declined: DeclinedShards;
}

/** Key of a host's lease. */
export function hostKey(host: string): string {
  return `${HOST_LEASES}${escapeId(host)}`;
}

/** The host that {@link hostKey} made the key of; @throws BAD_NAME for any other key. */
export function hostOfKey(key: string): string {
  return unescapeId(key.slice(HOST_LEASES.length));
}

/** Composes the claims of one host. Nothing is claimed before {@link ShardClaims.start}. */
export function createShardClaims(
  options: Omit<ShardClaimsDeps, "hosts" | "declinedByHosts" | "declined">,
): ShardClaims {
  const { leases, leaseMs, events } = options;
  const view = { leases, leaseMs, onError: events.onError };
  return new ShardClaims({
    ...options,
    hosts: new LeaseView({ ...view, prefix: HOST_LEASES, pollMs: leaseMs / 10 }),
    declinedByHosts: new LeaseView({ ...view, prefix: DECLINED_LEASES }),
    declined: new DeclinedShards(options),
  });
}

/**
 * Claims the leases of the shards that placement gives this host, renews them, and releases those
 * that belong to a host that has joined.
 */
export class ShardClaims {
  readonly #deps: ShardClaimsDeps;
  readonly #keepers: Map<number, LeaseKeeper> = new Map();
  /**
   * Owned shards. A shard whose lease ran out in an outage stays owned until another host is known to hold it;
   * nothing is answered meanwhile.
   */
  readonly #owned: Set<number> = new Set();
  readonly #rounds = new Rounds(() => this.#claimRound());

  constructor(deps: ShardClaimsDeps) {
    this.#deps = deps;
  }

  /** Begins to claim; settles after the first round. */
  async start(): Promise<void> {
    await Promise.all([this.#deps.hosts.start(), this.#deps.declinedByHosts.start()]);
    await this.#rounds.start();
  }

  /** The shards that placement gives this host, whether their leases are held yet or not. */
  get share(): number[] {
    const { job, shards, host, declined } = this.#deps;
    const hosts = new Set([...this.#deps.hosts.present].map(hostOfKey)).add(host);
    const declinedByHosts = declinedBy(this.#deps.declinedByHosts.present);
    const all = Array.from({ length: shards }, (_, shard) => shard);
    return all.filter((shard) => {
      const able = [...hosts].filter(
        (one) => !declinedByHosts.get(shard)?.has(one) && !(one === host && declined.has(shard)),
      );
      // If it fits nowhere, one host must own it to answer NO_MEMORY.
      return placeShard(job, shard, able.length === 0 ? hosts : able) === host;
    });
  }

  /** Leaves a shard to hosts that it fits into, until `fits` returns true for this one. */
  decline(shard: number, fits: () => boolean): void {
    this.#deps.declined.decline(shard, fits);
  }

  /**
   * Stops claiming and releases all leases, so that other hosts need not wait for them to end; that of each shard
   * once `finish` is done with it. Meanwhile it stays held, so that no other host takes the shard over.
   */
  async close(finish?: (shard: number) => Promise<void>): Promise<void> {
    await this.#rounds.stop();
    await Promise.all([this.#deps.hosts.stop(), this.#deps.declinedByHosts.stop()]);
    await this.#deps.declined.close();
    const owned = [...this.#owned];
    const release = async (shard: number): Promise<void> => {
      await finish?.(shard);
      await this.#release(shard);
    };
    await mapConcurrently(owned, release, owned.length);
  }

  async #claimRound(): Promise<number> {
    const { events, leaseMs } = this.#deps;
    await this.#balance().catch((error: unknown) => events.onError(ensureError(error)));
    return leaseMs / 10;
  }

  async #balance(): Promise<void> {
    await this.#deps.declined.review();
    const share = new Set(this.share);
    const all = Array.from({ length: this.#deps.shards }, (_, shard) => shard);
    const settle = async (shard: number): Promise<void> => {
      if (!share.has(shard)) await this.#release(shard);
      else if (!this.#keepers.has(shard)) await this.#claim(shard);
    };
    // All at once: a failure of one shard must not keep the others waiting.
    await mapConcurrently(all, settle, all.length);
  }

  async #claim(shard: number): Promise<void> {
    const { leases, value, leaseMs, clock, events } = this.#deps;
    const keeper = new LeaseKeeper({
      leases,
      key: `${SHARD_LEASES}${shard}`,
      value,
      leaseMs,
      onHeld: (remainingMs, how) => {
        if (how === "claimed") clock.claimed(shard);
        clock.extend(shard, remainingMs);
        if (how === "claimed" && this.#keepers.get(shard) === keeper) events.onClaimed(shard);
      },
      // From now on nothing is answered. The next round finds out whether another host holds the lease.
      onLost: () => {
        clock.end(shard);
        this.#keepers.delete(shard);
      },
    });
    if (await keeper.start()) {
      this.#keepers.set(shard, keeper);
      this.#owned.add(shard);
      events.onClaimed(shard);
    } else {
      await this.#release(shard);
    }
  }

  async #release(shard: number): Promise<void> {
    if (!this.#owned.delete(shard)) return;
    const keeper = this.#keepers.get(shard);
    this.#keepers.delete(shard);
    this.#deps.clock.end(shard);
    this.#deps.events.onReleased(shard);
    await keeper?.stop();
  }
}
