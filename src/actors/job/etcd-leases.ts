import { PserverError } from "../../protocol/index.ts";
import type { EtcdClient, EtcdEntry, EtcdWrite } from "./etcd-client.ts";
import {
  type BrokerProbe,
  type Leases,
  type LeaseValue,
  parseLease,
  type StoredLease,
  settleLease,
} from "./leases.ts";

/**
 * Leases in etcd: a key for each, attached to a lease of etcd's own. It lasts for the lease time rounded
 * up to seconds, and at least for etcd's minimum.
 *
 * They are claimed, renewed and their keys listed only while the broker answers. A host that has lost the
 * broker can serve nothing, so its leases must end; and while the broker is down trainers cannot renew
 * theirs, so a missing lease means nothing. Leases in the broker have both properties by nature.
 */
export class EtcdLeases implements Leases {
  readonly #client: EtcdClient;
  readonly #root: string;
  readonly #leaseMs: number;
  readonly #probe: Pick<BrokerProbe, "reach">;

  /** `root`: prefix of all keys; it ends in a slash. */
  constructor(
    client: EtcdClient,
    root: string,
    leaseMs: number,
    probe: Pick<BrokerProbe, "reach">,
  ) {
    this.#client = client;
    this.#root = root;
    this.#leaseMs = leaseMs;
    this.#probe = probe;
  }

  async claim(key: string, value: LeaseValue): Promise<boolean> {
    await this.#probe.reach();
    return await settleLease(key, async () => {
      const held = await this.#find(key);
      if (held === undefined) return (await this.#create(key, value)) || undefined;
      return await this.#extend(key, value, held);
    });
  }

  async renew(key: string, value: LeaseValue): Promise<boolean> {
    await this.#probe.reach();
    return await settleLease(key, async () => {
      const held = await this.#find(key);
      return held === undefined ? false : await this.#extend(key, value, held);
    });
  }

  async release(key: string, value: LeaseValue): Promise<void> {
    const held = await this.#find(key);
    // The lease belongs to this claim alone: ending it does not affect later claims of the key.
    if (held?.value.owner === value.owner) await this.#client.revoke(held.entry.lease);
  }

  async end(key: string, { revision }: StoredLease): Promise<boolean> {
    const path = this.#root + key;
    // What the key was attached to ends by itself.
    return await this.#client.swap([{ key: path, revision }], [{ kind: "remove", key: path }]);
  }

  async read(key: string): Promise<LeaseValue | undefined> {
    return (await this.#find(key))?.value;
  }

  async list(prefix: string): Promise<Map<string, StoredLease>> {
    const entries = await this.#client.list(this.#root + prefix);
    return new Map(
      entries.map((entry) => {
        const key = entry.key.slice(this.#root.length);
        return [key, { value: readLease(key, entry), revision: entry.revision }];
      }),
    );
  }

  async keys(prefix: string): Promise<ReadonlySet<string>> {
    await this.#probe.reach();
    const keys = await this.#client.keys(this.#root + prefix);
    return new Set(keys.map((key) => key.slice(this.#root.length)));
  }

  /** Extends a lease, and writes its value if that has changed; false if another holds it. */
  async #extend(key: string, value: LeaseValue, held: HeldLease): Promise<boolean | undefined> {
    if (held.value.owner !== value.owner) return false;
    const { lease, revision, value: written } = held.entry;
    if (!(await this.#client.keepAlive(lease))) return undefined;
    const put = this.#put(key, value, lease);
    if (put.value === written) return true;
    return (await this.#client.swap([{ key: put.key, revision }], [put])) || undefined;
  }

  async #create(key: string, value: LeaseValue): Promise<boolean> {
    const lease = await this.#client.grant(this.#leaseMs);
    const put = this.#put(key, value, lease);
    if (await this.#client.swap([{ key: put.key, revision: undefined }], [put])) return true;
    await this.#client.revoke(lease);
    return false;
  }

  #put(key: string, value: LeaseValue, lease: string): EtcdWrite & { kind: "put" } {
    return { kind: "put", key: this.#root + key, value: JSON.stringify(value), lease };
  }

  async #find(key: string): Promise<HeldLease | undefined> {
    const entry = await this.#client.read(this.#root + key);
    return entry && { entry, value: readLease(key, entry) };
  }
}

/** A lease as it was found. */
interface HeldLease {
  readonly entry: EtcdEntry;
  readonly value: LeaseValue;
}

function readLease(key: string, { value, lease }: EtcdEntry): LeaseValue {
  if (lease === "0") {
    throw new PserverError("BAD_MESSAGE", `lease ${key}: the key in etcd has no lease`, {
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
