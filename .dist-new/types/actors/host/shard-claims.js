import { ensureError, escapeId, hashName, unescapeId, unescapeName, } from "../../protocol/index.js";
import { mapConcurrently, Repeater } from "../concurrent.js";
import { LeaseKeeper, LeaseView, } from "../job/leases.js";
/** Prefix of the keys that say which host has declined which shard. */
const DECLINED_LEASES = "declined.";
/**
 * The shards that this host has declined because they do not fit into its memory. A lease for each shard tells the
 * other hosts, so that they place the shard elsewhere while the lease lasts.
 */
export class DeclinedShards {
    #deps;
    #declined = new Map();
    constructor(deps) {
        this.#deps = deps;
    }
    /** Whether this host has declined a shard. */
    has(shard) {
        return this.#declined.has(shard);
    }
    /** Declines a shard until `fits` returns true. */
    decline(shard, fits) {
        if (this.#declined.has(shard))
            return;
        const { host, value, leases, leaseMs } = this.#deps;
        const key = `${DECLINED_LEASES}${shard}.${escapeId(host)}`;
        const keeper = new LeaseKeeper({
            ...{ leases, key, value, leaseMs },
            // The next review claims it again.
            onLost: () => undefined,
        });
        this.#declined.set(shard, { keeper, fits });
    }
    /** Claims the leases of declined shards, and releases those of shards that fit again. */
    async review() {
        for (const [shard, { keeper, fits }] of this.#declined) {
            if (fits()) {
                this.#declined.delete(shard);
                await keeper.stop();
            }
            else if (!keeper.held)
                await keeper.start();
        }
    }
    /** Releases all leases. */
    async close() {
        const keepers = [...this.#declined.values()].map(({ keeper }) => keeper.stop());
        this.#declined.clear();
        await Promise.all(keepers);
    }
}
/** Returns the hosts that have declined each shard, by the keys of their leases. */
export function declinedBy(keys) {
    const declined = new Map();
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
export function placeShard(job, shard, hosts) {
    const scored = Array.from(hosts, (host) => {
        return { host, score: mix(hashName(`${job}/${shard}/${host}`)) };
    });
    const [best] = scored.sort((a, b) => b.score - a.score || (a.host < b.host ? -1 : 1));
    return best?.host;
}
/** Spreads a hash: FNV-1a mixes the last characters of a text into low bits only. */
function mix(hash) {
    let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return (mixed ^ (mixed >>> 16)) >>> 0;
}
/** Prefix of the keys of all hosts' leases. */
export const HOST_LEASES = "host.";
/** Prefix of the keys of all shards' leases. */
export const SHARD_LEASES = "shard.";
/** Returns the key of a host's lease. */
export function hostKey(host) {
    return `${HOST_LEASES}${escapeId(host)}`;
}
/** Returns the host of a key that {@link hostKey} made. @throws BAD_NAME for any other key. */
export function hostOfKey(key) {
    return unescapeId(key.slice(HOST_LEASES.length));
}
/**
 * Claims the leases of the shards that placement gives this host, renews them, and releases those of shards that
 * belong to a host that has joined.
 */
export class ShardClaims {
    #deps;
    /** Watches the hosts' leases. */
    #hosts;
    /** Watches the leases by which hosts decline shards. */
    #declinedByHosts;
    /** Shards that this host declines. */
    #declined;
    #keepers = new Map();
    /**
     * Owned shards. A shard whose lease ran out in an outage stays owned until another host is known to hold it;
     * nothing is answered until then.
     */
    #owned = new Set();
    #repeater = new Repeater(() => this.#claimRound());
    /** Nothing is claimed before {@link start}. */
    constructor(deps) {
        const { leases, leaseMs, events } = deps;
        const view = { leases, leaseMs, onError: events.onError };
        this.#deps = deps;
        this.#hosts = new LeaseView({
            ...{ ...view, prefix: HOST_LEASES, pollMs: leaseMs / 10 },
            onChange: () => void this.#repeater.soon(),
        });
        this.#declinedByHosts = new LeaseView({ ...view, prefix: DECLINED_LEASES });
        this.#declined = new DeclinedShards(deps);
    }
    /** Begins to claim; settles after the first round. */
    async start() {
        await Promise.all([this.#hosts.start(), this.#declinedByHosts.start()]);
        await this.#repeater.start();
    }
    /** Returns the shards that placement gives this host, whether their leases are held yet or not. */
    get share() {
        const { job, shards, host } = this.#deps;
        const hosts = new Set([...this.#hosts.presumed].map(hostOfKey)).add(host);
        const declinedByHosts = declinedBy(this.#declinedByHosts.present);
        const all = Array.from({ length: shards }, (_, shard) => shard);
        return all.filter((shard) => {
            const able = [...hosts].filter((one) => !declinedByHosts.get(shard)?.has(one) && !(one === host && this.#declined.has(shard)));
            // If it fits nowhere, one host must own it to answer NO_MEMORY.
            return placeShard(job, shard, able.length === 0 ? hosts : able) === host;
        });
    }
    /** Leaves a shard to hosts that it fits into, until `fits` returns true for this one. */
    decline(shard, fits) {
        this.#declined.decline(shard, fits);
    }
    /**
     * Stops claiming and releases all leases, so that other hosts need not wait for them to end. The lease of a shard
     * is held until `finish` is done with the shard, so that no other host takes it over before.
     */
    async close(finish) {
        await this.#repeater.stop();
        await Promise.all([this.#hosts.stop(), this.#declinedByHosts.stop()]);
        await this.#declined.close();
        const owned = [...this.#owned];
        const release = async (shard) => {
            await finish?.(shard);
            await this.#release(shard);
        };
        await mapConcurrently(owned, release, owned.length);
    }
    async #claimRound() {
        const { events, leaseMs } = this.#deps;
        await this.#balance().catch((error) => events.onError(ensureError(error)));
        return leaseMs / 10;
    }
    async #balance() {
        await this.#declined.review();
        const share = new Set(this.share);
        const all = Array.from({ length: this.#deps.shards }, (_, shard) => shard);
        const settle = async (shard) => {
            if (!share.has(shard))
                await this.#release(shard);
            else if (!this.#keepers.has(shard))
                await this.#claim(shard);
        };
        // All at once: a failure of one shard must not keep the others waiting.
        await mapConcurrently(all, settle, all.length);
    }
    async #claim(shard) {
        const { leases, value, leaseMs, clock, events } = this.#deps;
        const keeper = new LeaseKeeper({
            leases,
            key: `${SHARD_LEASES}${shard}`,
            value,
            leaseMs,
            onHeld: (remainingMs, how) => {
                if (how === "claimed")
                    clock.claimed(shard);
                clock.extend(shard, remainingMs);
                if (how === "claimed" && this.#keepers.get(shard) === keeper)
                    events.onClaimed(shard);
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
        }
        else {
            await this.#release(shard);
        }
    }
    async #release(shard) {
        if (!this.#owned.delete(shard))
            return;
        const keeper = this.#keepers.get(shard);
        this.#keepers.delete(shard);
        this.#deps.clock.end(shard);
        this.#deps.events.onReleased(shard);
        await keeper?.stop();
    }
}
//# sourceMappingURL=shard-claims.js.map