import { ensureError, escapeId, type PserverError, unescapeId } from "../../protocol/index.ts";
import type { LeaseClock } from "../leases/lease-clock.ts";
import { LeaseKeeper } from "../leases/lease-keeper.ts";
import { LeaseView } from "../leases/lease-view.ts";
import type { Leases, LeaseValue } from "../leases/leases.ts";
import { DECLINED_LEASES, DeclinedShards, declinedBy } from "./declined-shards.ts";
import { placeShard } from "./placement.ts";

/** What the keys of all hosts' leases begin with. */
export const HOST_LEASES = "host.";

/** What the keys of all shards' leases begin with. */
export const SHARD_LEASES = "shard.";

/** What a {@link ShardClaims} tells the host. */
export interface ClaimEvents {
  /**
   * The lease of a shard was claimed: own it. Told again when a lease that had run out is held
   * again and nobody else has held it since.
   */
  readonly onClaimed: (shard: number) => void;
  /** Another host holds the lease, or is to hold it: the shard is owned no more. */
  readonly onReleased: (shard: number) => void;
  readonly onError: (error: PserverError) => void;
}

/** What a {@link ShardClaims} works with. */
export interface ShardClaimsOptions {
  readonly job: string;
  readonly shards: number;
  readonly host: string;
  /** Value of this host's leases; `owner` is unlike that of any other life of it. */
  readonly value: LeaseValue;
  readonly leases: Leases;
  readonly leaseMs: number;
  readonly clock: LeaseClock;
  readonly events: ClaimEvents;
}

/** Key of a host's lease. */
export function hostKey(host: string): string {
  return `${HOST_LEASES}${escapeId(host)}`;
}

/** The host whose lease {@link hostKey} names; @throws BAD_NAME for a key that no host's lease has. */
export function hostOfKey(key: string): string {
  return unescapeId(key.slice(HOST_LEASES.length));
}

/**
 * Claims the leases of the shards that placement gives this host, renews them, and gives up those
 * that belong to a host that has joined.
 */
export class ShardClaims {
  readonly #options: ShardClaimsOptions;
  readonly #hosts: LeaseView;
  readonly #declinedByHosts: LeaseView;
  readonly #declined: DeclinedShards;
  readonly #keepers: Map<number, LeaseKeeper> = new Map();
  /** Owned shards. One whose lease ran out in an outage is kept until another host claims it. */
  readonly #owned: Set<number> = new Set();
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: ShardClaimsOptions) {
    this.#options = options;
    const { leases, leaseMs, events } = options;
    this.#hosts = new LeaseView({
      leases,
      prefix: HOST_LEASES,
      leaseMs,
      pollMs: leaseMs / 10,
      onError: events.onError,
    });
    this.#declinedByHosts = new LeaseView({
      ...{ leases, prefix: DECLINED_LEASES, leaseMs, onError: events.onError },
    });
    this.#declined = new DeclinedShards(options);
  }

  /** Starts to claim; settles after the first round. */
  async start(): Promise<void> {
    await Promise.all([this.#hosts.start(), this.#declinedByHosts.start()]);
    await this.#claimRound();
  }

  /** The shards whose leases are held. */
  get shards(): number[] {
    return [...this.#keepers.keys()].sort((a, b) => a - b);
  }

  /** The shards that placement gives this host, whether their leases are held yet or not. */
  get share(): number[] {
    const { job, shards, host } = this.#options;
    const hosts = this.hosts;
    const declined = declinedBy(this.#declinedByHosts.present);
    const all = Array.from({ length: shards }, (_, shard) => shard);
    return all.filter((shard) => {
      const able = hosts.filter(
        (one) => !declined.get(shard)?.has(one) && !(one === host && this.#declined.has(shard)),
      );
      // Where nobody has room somebody must say so.
      return placeShard(job, shard, able.length === 0 ? hosts : able) === host;
    });
  }

  /** Leaves a shard to hosts that have room for it, as long as this one has not. */
  decline(shard: number, fits: () => boolean): void {
    this.#declined.decline(shard, fits);
  }

  /** The hosts that are alive, this one included. */
  get hosts(): string[] {
    const hosts = [...this.#hosts.present].map(hostOfKey);
    return [...new Set([...hosts, this.#options.host])].sort();
  }

  /** Stops claiming and gives all leases up, so that others need not wait for them to end. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#round;
    await Promise.all([this.#hosts.stop(), this.#declinedByHosts.stop()]);
    await this.#declined.close();
    await settleAll([...this.#owned].map((shard) => this.#release(shard)));
  }

  async #claimRound(): Promise<void> {
    this.#round = this.#balance().catch((error: unknown) =>
      this.#options.events.onError(ensureError(error)),
    );
    await this.#round;
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#claimRound(), this.#options.leaseMs / 10);
  }

  async #balance(): Promise<void> {
    await this.#declined.review();
    const share = new Set(this.share);
    const all = Array.from({ length: this.#options.shards }, (_, shard) => shard);
    await settleAll(
      all.map(async (shard) => {
        if (!share.has(shard)) await this.#release(shard);
        else if (!this.#keepers.has(shard)) await this.#claim(shard);
      }),
    );
  }

  async #claim(shard: number): Promise<void> {
    const { leases, value, leaseMs, clock, events } = this.#options;
    const keeper = new LeaseKeeper({
      leases,
      key: `${SHARD_LEASES}${shard}`,
      value,
      leaseMs,
      onHeld: (remainingMs) => clock.extend(shard, remainingMs),
      // Nothing is answered from now on. The next round finds out whether another host holds it.
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
    this.#options.clock.end(shard);
    this.#options.events.onReleased(shard);
    await keeper?.stop();
  }
}

/** Waits for all, so that nothing of a round goes on after it; @throws the first error. */
async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(work)) {
    if (result.status === "rejected") throw result.reason;
  }
}
