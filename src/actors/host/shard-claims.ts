import {
  ensureError,
  escapeId,
  hashName,
  type PserverError,
  unescapeId,
  unescapeName,
} from "../../protocol/index.ts";
import { mapConcurrently, Repeater } from "../concurrent.ts";
import {
  type LeaseClock,
  LeaseKeeper,
  type Leases,
  type LeaseValue,
  LeaseView,
} from "../job/leases.ts";
import { GoneHosts, type PresenceAsker } from "./gone-hosts.ts";

/** Prefix of the keys that say which host has declined which shard. */
const DECLINED_LEASES = "declined.";

/** Dependencies of {@link DeclinedShards}. */
interface DeclinedShardsDeps {
  readonly host: string;
  readonly value: () => LeaseValue;
  readonly leases: Leases;
  readonly leaseMs: number;
}

/** A shard that this host has declined. */
interface DeclinedShard {
  readonly keeper: LeaseKeeper;
  readonly fits: () => boolean;
}

/**
 * The shards that this host has declined because they do not fit into its memory. A lease for each shard tells the
 * other hosts, so that they place the shard elsewhere while the lease lasts.
 */
export class DeclinedShards {
  readonly #deps: DeclinedShardsDeps;
  readonly #declined: Map<number, DeclinedShard> = new Map();

  constructor(deps: DeclinedShardsDeps) {
    this.#deps = deps;
  }

  /** Whether this host has declined a shard. */
  has(shard: number): boolean {
    return this.#declined.has(shard);
  }

  /** Declines a shard until `fits` returns true. */
  decline(shard: number, fits: () => boolean): void {
    if (this.#declined.has(shard)) return;
    const { host, value, leases, leaseMs } = this.#deps;
    const key = `${DECLINED_LEASES}${shard}.${escapeId(host)}`;
    const keeper = new LeaseKeeper({
      ...{ leases, key, value, leaseMs },
      // The next review claims it again.
      onLost: () => undefined,
    });
    this.#declined.set(shard, { keeper, fits });
  }

  /** Renews all leases now: their value is another one. */
  renewNow(): void {
    for (const { keeper } of this.#declined.values()) keeper.renewNow();
  }

  /** Claims the leases of declined shards, and releases those of shards that fit again. */
  async review(): Promise<void> {
    for (const [shard, { keeper, fits }] of this.#declined) {
      if (fits()) {
        this.#declined.delete(shard);
        await keeper.stop();
      } else if (!keeper.held) await keeper.start();
    }
  }

  /** Releases all leases. */
  async close(): Promise<void> {
    const keepers = [...this.#declined.values()].map(({ keeper }) => keeper.stop());
    this.#declined.clear();
    await Promise.all(keepers);
  }
}

/** Returns the hosts that have declined each shard, by the keys of their leases. */
export function declinedBy(keys: Iterable<string>): Map<number, Set<string>> {
  const declined = new Map<number, Set<string>>();
  for (const key of keys) {
    const [, shard, host = ""] = key.split(".");
    const hosts = declined.get(Number(shard)) ?? new Set();
    declined.set(Number(shard), hosts.add(unescapeName(host)));
  }
  return declined;
}

/**
 * Returns the host that should own a shard: the one with the highest hash together with it (rendezvous hashing), so
 * that a host that joins or leaves moves the fewest shards. Undefined without hosts.
 */
export function placeShard(
  job: string,
  shard: number,
  hosts: Iterable<string>,
): string | undefined {
  const scored = Array.from(hosts, (host) => {
    return { host, score: mix(hashName(`${job}/${shard}/${host}`)) };
  });
  const [best] = scored.sort((a, b) => b.score - a.score || (a.host < b.host ? -1 : 1));
  return best?.host;
}

/** Spreads a hash: FNV-1a mixes the last characters of a text into low bits only. */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Prefix of the keys of all hosts' leases. */
export const HOST_LEASES = "host.";

/** Prefix of the keys of all shards' leases. */
export const SHARD_LEASES = "shard.";

/** Callbacks of {@link ShardClaims}. */
interface ClaimEvents {
  /**
   * The lease of a shard was claimed: own it. Called again when a lease that had run out is held again; another host
   * may have owned the shard in between.
   */
  readonly onClaimed: (shard: number) => void;
  /** Another host holds the lease, or is to hold it: stop owning the shard. */
  readonly onReleased: (shard: number) => void;
  /** The lease of a shard was lost, even if it was claimed again at once. */
  readonly onLost: (shard: number) => void;
  readonly onError: (error: PserverError) => void;
}

/** Dependencies of {@link ShardClaims}. */
interface ShardClaimsDeps {
  readonly job: string;
  readonly shards: number;
  readonly host: string;
  /** Returns the value of this host's leases; `owner` is unique to this run of the host. */
  readonly value: () => LeaseValue;
  readonly leases: Leases;
  readonly leaseMs: number;
  readonly clock: LeaseClock;
  /** Asks for the hosts that hold the other leases. */
  readonly asker: PresenceAsker;
  readonly events: ClaimEvents;
}

/** Returns the key of a host's lease. */
export function hostKey(host: string): string {
  return `${HOST_LEASES}${escapeId(host)}`;
}

/** Returns the host of a key that {@link hostKey} made. @throws BAD_NAME for any other key. */
export function hostOfKey(key: string): string {
  return unescapeId(key.slice(HOST_LEASES.length));
}

/**
 * Claims the leases of the shards that placement gives this host, renews them, and releases those of shards that
 * belong to a host that has joined.
 */
export class ShardClaims {
  readonly #deps: ShardClaimsDeps;
  /** Watches the hosts' leases. */
  readonly #hosts: LeaseView;
  /** Watches the leases by which hosts decline shards. */
  readonly #declinedByHosts: LeaseView;
  /** Shards that this host declines. */
  readonly #declined: DeclinedShards;
  /** Ends the leases of hosts that are gone. */
  readonly #gone: GoneHosts;
  readonly #keepers: Map<number, LeaseKeeper> = new Map();
  /**
   * Owned shards. A shard whose lease ran out in an outage stays owned until another host is known to hold it;
   * nothing is answered until then.
   */
  readonly #owned: Set<number> = new Set();
  readonly #repeater = new Repeater(() => this.#claimRound());

  /** Nothing is claimed before {@link start}. */
  constructor(deps: ShardClaimsDeps) {
    const { leases, leaseMs, value, asker, events } = deps;
    const view = { leases, leaseMs, onError: events.onError };
    this.#deps = deps;
    this.#hosts = new LeaseView({
      ...{ ...view, prefix: HOST_LEASES, pollMs: leaseMs / 10 },
      onChange: () => {
        this.#gone.changed();
        void this.#repeater.soon();
      },
    });
    this.#gone = new GoneHosts({
      ...{ leases, asker, run: value().owner, onError: events.onError },
      prefixes: [HOST_LEASES, SHARD_LEASES, DECLINED_LEASES],
      onEnded: (key) => this.#claimNow(key),
    });
    this.#declinedByHosts = new LeaseView({ ...view, prefix: DECLINED_LEASES });
    this.#declined = new DeclinedShards(deps);
  }

  /** Begins to claim; settles after the first round. */
  async start(): Promise<void> {
    await Promise.all([this.#hosts.start(), this.#declinedByHosts.start()]);
    this.#gone.start();
    await this.#repeater.start();
  }

  /** Ends the leases of an earlier run of this host that is gone; returns false if it is there. It takes a second. */
  async endEarlierRun(): Promise<boolean> {
    return await this.#gone.endHolder(hostKey(this.#deps.host));
  }

  /** Notes that the connection to the broker was lost. */
  disconnected(): void {
    this.#gone.disconnected();
  }

  /** Renews all leases now: their value is another one. */
  renewNow(): void {
    for (const keeper of this.#keepers.values()) keeper.renewNow();
    this.#declined.renewNow();
  }

  /** Returns the shards that placement gives this host, whether their leases are held yet or not. */
  get share(): number[] {
    const { job, shards, host } = this.#deps;
    const hosts = new Set([...this.#hosts.presumed].map(hostOfKey)).add(host);
    const declinedByHosts = declinedBy(this.#declinedByHosts.present);
    const all = Array.from({ length: shards }, (_, shard) => shard);
    return all.filter((shard) => {
      const able = [...hosts].filter(
        (one) =>
          !declinedByHosts.get(shard)?.has(one) && !(one === host && this.#declined.has(shard)),
      );
      // If it fits nowhere, one host must own it to answer NO_MEMORY.
      return placeShard(job, shard, able.length === 0 ? hosts : able) === host;
    });
  }

  /** Leaves a shard to hosts that it fits into, until `fits` returns true for this one. */
  decline(shard: number, fits: () => boolean): void {
    this.#declined.decline(shard, fits);
  }

  /**
   * Ends the leases of another host whose process is known to have ended, so that nobody waits for their time, and claims
   * this host's share of its shards. A host that is merely out of reach must keep them: it may be answering others.
   */
  async releaseDead(host: string): Promise<void> {
    const { leases } = this.#deps;
    for (const prefix of [SHARD_LEASES, DECLINED_LEASES, HOST_LEASES]) {
      for (const [key, lease] of await leases.list(prefix)) {
        if (lease.value["host"] === host) await leases.end(key, lease);
      }
    }
    await this.#claimNow(hostKey(host));
  }

  /**
   * Stops claiming and releases all leases, so that other hosts need not wait for them to end. The lease of a shard
   * is held until `finish` is done with the shard, so that no other host takes it over before.
   */
  async close(finish?: (shard: number) => Promise<void>): Promise<void> {
    // A question under way delays no release.
    const asked = this.#gone.stop();
    await this.#repeater.stop();
    await Promise.all([this.#hosts.stop(), this.#declinedByHosts.stop()]);
    await this.#declined.close();
    const owned = [...this.#owned];
    const release = async (shard: number): Promise<void> => {
      await finish?.(shard);
      await this.#release(shard);
    };
    await mapConcurrently(owned, release, owned.length);
    await asked;
  }

  /** Claims this host's share of the shards of another one, whose leases have been ended; `key` is that of its own. */
  async #claimNow(key: string): Promise<void> {
    this.#hosts.gone(key);
    await this.#hosts.look();
    await this.#repeater.soon();
  }

  async #claimRound(): Promise<number> {
    const { events, leaseMs } = this.#deps;
    await this.#balance().catch((error: unknown) => events.onError(ensureError(error)));
    return leaseMs / 10;
  }

  async #balance(): Promise<void> {
    await this.#declined.review();
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
        if (how !== "claimed" || this.#keepers.get(shard) !== keeper) return;
        events.onLost(shard);
        events.onClaimed(shard);
      },
      // From now on nothing is answered. The next round finds out whether another host holds the lease.
      onLost: () => {
        clock.end(shard);
        this.#keepers.delete(shard);
        events.onLost(shard);
      },
    });
    const { connections } = value();
    if (await keeper.start()) {
      this.#keepers.set(shard, keeper);
      this.#owned.add(shard);
      events.onClaimed(shard);
      // A worker's connection was made anew while the claim was under way.
      if (value()["connections"] !== connections) keeper.renewNow();
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
