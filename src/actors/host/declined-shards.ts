import { escapeId, unescapeName } from "../../protocol/index.ts";
import { LeaseKeeper } from "../leases/lease-keeper.ts";
import type { Leases, LeaseValue } from "../leases/leases.ts";

/** What the keys that say which host has declined which shard begin with. */
export const DECLINED_LEASES = "declined.";

/** A shard that this host has declined. */
interface Declined {
  readonly keeper: LeaseKeeper;
  readonly fits: () => boolean;
}

/**
 * The shards that this host has declined because they do not fit into its memory. It says so as long as
 * that lasts, in leases, so that the others place those shards without it.
 */
export class DeclinedShards {
  readonly #options: {
    readonly host: string;
    readonly value: LeaseValue;
    readonly leases: Leases;
    readonly leaseMs: number;
  };
  readonly #declined: Map<number, Declined> = new Map();

  constructor(options: {
    readonly host: string;
    readonly value: LeaseValue;
    readonly leases: Leases;
    readonly leaseMs: number;
  }) {
    this.#options = options;
  }

  /** Whether this host has declined a shard. */
  has(shard: number): boolean {
    return this.#declined.has(shard);
  }

  /** Declines a shard until `fits` says that there is room for it. */
  decline(shard: number, fits: () => boolean): void {
    if (this.#declined.has(shard)) return;
    const { host, value, leases, leaseMs } = this.#options;
    const key = `${DECLINED_LEASES}${shard}.${escapeId(host)}`;
    const keeper = new LeaseKeeper({
      ...{ leases, key, value, leaseMs },
      // The next round says it again.
      onLost: () => undefined,
    });
    this.#declined.set(shard, { keeper, fits });
  }

  /** Says what is declined, and takes back what fits again. */
  async review(): Promise<void> {
    for (const [shard, { keeper, fits }] of this.#declined) {
      if (fits()) {
        this.#declined.delete(shard);
        await keeper.stop();
      } else if (!keeper.held) await keeper.start();
    }
  }

  /** Says nothing any more. */
  async close(): Promise<void> {
    const keepers = [...this.#declined.values()].map(({ keeper }) => keeper.stop());
    this.#declined.clear();
    await Promise.all(keepers);
  }
}

/** Who has declined which shard, from the keys that say so. */
export function declinedBy(keys: Iterable<string>): Map<number, Set<string>> {
  const declined = new Map<number, Set<string>>();
  for (const key of keys) {
    const [, shard, host = ""] = key.split(".");
    const hosts = declined.get(Number(shard)) ?? new Set();
    declined.set(Number(shard), hosts.add(unescapeName(host)));
  }
  return declined;
}
