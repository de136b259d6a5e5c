import { PserverError } from "../../protocol/index.ts";
import type { EtcdClient, EtcdEntry } from "../etcd/etcd-client.ts";
import { type Leases, type LeaseValue, parseLease, settleLease } from "./leases.ts";

/**
 * Leases in etcd: a key for each, which goes with a lease of etcd's own. It lasts for the lease time in
 * whole seconds, and at least as long as that etcd gives any.
 */
export class EtcdLeases implements Leases {
  readonly #client: EtcdClient;
  readonly #root: string;
  readonly #leaseMs: number;

  /** `root`: what all keys begin with; it ends in a slash. */
  constructor(client: EtcdClient, root: string, leaseMs: number) {
    this.#client = client;
    this.#root = root;
    this.#leaseMs = leaseMs;
  }

  async claim(key: string, value: LeaseValue): Promise<boolean> {
    return await settleLease(key, async () => {
      const held = await this.#find(key);
      if (held === undefined) return (await this.#create(key, value)) || undefined;
      if (held.value.owner !== value.owner) return false;
      // Whoever claims what it holds already counts on the whole time again.
      return (await this.#client.keepAlive(held.entry.lease)) || undefined;
    });
  }

  async renew(key: string, value: LeaseValue): Promise<boolean> {
    return await settleLease(key, async () => {
      const held = await this.#find(key);
      if (held?.value.owner !== value.owner) return false;
      const { lease, revision, value: written } = held.entry;
      if (!(await this.#client.keepAlive(lease))) return undefined;
      const put = { put: this.#root + key, value: JSON.stringify(value), lease };
      if (put.value === written) return true;
      return (await this.#client.swap([{ key: put.put, revision }], [put])) || undefined;
    });
  }

  async release(key: string, value: LeaseValue): Promise<void> {
    const held = await this.#find(key);
    // The lease is of this claim alone: ending it takes nothing from whoever claims the key later.
    if (held?.value.owner === value.owner) await this.#client.revoke(held.entry.lease);
  }

  async read(key: string): Promise<LeaseValue | undefined> {
    return (await this.#find(key))?.value;
  }

  async list(prefix: string): Promise<Map<string, LeaseValue>> {
    const entries = await this.#client.list(this.#root + prefix);
    return new Map(
      entries.map((entry) => {
        const key = entry.key.slice(this.#root.length);
        return [key, readLease(key, entry)];
      }),
    );
  }

  async keys(prefix: string): Promise<ReadonlySet<string>> {
    const keys = await this.#client.keys(this.#root + prefix);
    return new Set(keys.map((key) => key.slice(this.#root.length)));
  }

  async #create(key: string, value: LeaseValue): Promise<boolean> {
    const path = this.#root + key;
    const lease = await this.#client.grant(this.#leaseMs);
    const put = { put: path, value: JSON.stringify(value), lease };
    if (await this.#client.swap([{ key: path, revision: undefined }], [put])) return true;
    await this.#client.revoke(lease);
    return false;
  }

  async #find(key: string): Promise<{ entry: EtcdEntry; value: LeaseValue } | undefined> {
    const entry = await this.#client.read(this.#root + key);
    return entry && { entry, value: readLease(key, entry) };
  }
}

function readLease(key: string, { value, lease }: EtcdEntry): LeaseValue {
  if (lease === "0") {
    throw new PserverError("BAD_MESSAGE", `lease ${key}: the key in etcd goes with no lease`, {
      key,
    });
  }
  return parseLease(key, parseJson(key, value));
}

function parseJson(key: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const received = JSON.stringify(text.slice(0, 60));
    const message = `lease ${key}: expected JSON; received ${received}`;
    throw new PserverError("BAD_MESSAGE", message, { key }, { cause });
  }
}
