import { mapConcurrently } from "../concurrent.ts";
import type { KvBucket, KvEntry } from "../jetstream/kv-bucket.ts";
import { type Leases, type LeaseValue, parseLease, settleLease } from "./leases.ts";

/** Leases in a bucket whose records expire: see `ttlMs` of `openBucket`. */
export class KvLeases implements Leases {
  readonly #bucket: KvBucket;
  /** The last write of this process by key: a renewal that follows it need not read first. */
  readonly #written: Map<string, { readonly owner: string; readonly revision: number }> = new Map();

  constructor(bucket: KvBucket) {
    this.#bucket = bucket;
  }

  async claim(key: string, value: LeaseValue): Promise<boolean> {
    return await settleLease(key, async () => {
      if (this.#note(key, value, await this.#bucket.create(key, value))) return true;
      const held = await this.#bucket.read(key);
      // Undefined: it expired between the two requests, so try again.
      return held && parseLease(key, held.value).owner === value.owner;
    });
  }

  async renew(key: string, value: LeaseValue): Promise<boolean> {
    return await settleLease(key, async () => {
      const written = this.#written.get(key);
      const held = written?.owner === value.owner ? written : await this.#heldBy(key, value.owner);
      if (held === undefined) return false;
      const revision = await this.#bucket.update(key, value, held.revision);
      // Undefined: somebody else has written since, or it expired; the next attempt reads.
      return this.#note(key, value, revision) || undefined;
    });
  }

  async release(key: string, value: LeaseValue): Promise<void> {
    this.#written.delete(key);
    await settleLease(key, async () => {
      const held = await this.#heldBy(key, value.owner);
      if (held === undefined) return true;
      return (await this.#bucket.remove(key, held.revision)) || undefined;
    });
  }

  async read(key: string): Promise<LeaseValue | undefined> {
    const held = await this.#bucket.read(key);
    return held && parseLease(key, held.value);
  }

  async list(prefix: string): Promise<Map<string, LeaseValue>> {
    const leases = await mapConcurrently(await this.#bucket.keys(prefix), async (key) => {
      const value = await this.read(key);
      return value === undefined ? [] : [[key, value] as const];
    });
    return new Map(leases.flat());
  }

  async keys(prefix: string): Promise<ReadonlySet<string>> {
    return new Set(await this.#bucket.keys(prefix));
  }

  /** Notes the revision of a write; false if it was refused. */
  #note(key: string, { owner }: LeaseValue, revision: number | undefined): boolean {
    if (revision === undefined) this.#written.delete(key);
    else this.#written.set(key, { owner, revision });
    return revision !== undefined;
  }

  async #heldBy(key: string, owner: string): Promise<KvEntry | undefined> {
    const held = await this.#bucket.read(key);
    return held !== undefined && parseLease(key, held.value).owner === owner ? held : undefined;
  }
}
