import { escapeId, unescapeName } from "../../protocol/index.ts";
import { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { Leases, LeaseValue } from "../leases/leases.ts";

/** Prefix of the keys that say which host has declined which shard. */
export const DECLINED_LEASES = "declined.";

/** Dependencies of {@link DeclinedShards}. */
export interface DeclinedShardsDeps {
  readonly host: string;
  readonly value: LeaseValue;
  readonly leases: Leases;
  readonly leaseMs: number;
}

/** A shard that this host has declined. */
interface Declined {
  readonly keeper: LeaseKeeper;
  readonly fits: () => boolean;
}

/**
 * The shards that this host has declined because they do not fit into its memory. A lease per shard tells
 * the other hosts, as long as that lasts, so that they place those shards without it.
 */
export class DeclinedShards {
  readonly #deps: DeclinedShardsDeps;
  readonly #declined: Map<number, Declined> = new Map();

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

/** The hosts that have declined each shard, by the keys of their leases. */
export function declinedBy(keys: Iterable<string>): Map<number, Set<string>> {
  const declined = new Map<number, Set<string>>();
  for (const key of keys) {
    const [, shard, host = ""] = key.split(".");
    const hosts = declined.get(Number(shard)) ?? new Set();
    declined.set(Number(shard), hosts.add(unescapeName(host)));
  }
  return declined;
}
