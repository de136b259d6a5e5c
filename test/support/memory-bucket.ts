import type { Clock } from "../../src/actors/concurrent.ts";
import { KvLeases, type Leases } from "../../src/actors/job/leases.ts";
import {
  decodeEntry,
  encodeEntry,
  type KvBucket,
  type KvEntry,
} from "../../src/actors/journal/kv-bucket.ts";

import { PserverError } from "../../src/protocol/index.ts";

/** One call that {@link MemoryBucket} got. */
export interface BucketCall {
  readonly action: "read" | "create" | "update" | "writeAfter" | "remove" | "keys" | "changes";
  readonly key: string;
}

/** How {@link MemoryBucket} behaves; each hook may be changed at any time. */
export interface MemoryBucketOptions {
  /** Entries not written for this long are gone; needs a clock. */
  readonly ttlMs?: number;
  readonly clock?: Clock;
  /** Awaited before and after each call's effect, so that tests decide what overtakes what. */
  readonly between?: (call: BucketCall) => Promise<unknown>;
}

/** A KV bucket in memory, with what a broker does to its requests: races, lost requests and lost answers. */
export class MemoryBucket implements KvBucket {
  readonly #entries = new Map<string, { text: string; revision: number; writtenAtMs: number }>();
  readonly #options: MemoryBucketOptions;
  #revision = 0;
  /** Revisions of the writes that were named, and the name of the last write, if it has one. */
  readonly #byId = new Map<string, number>();
  #lastId: string | undefined;
  /** When it was made; a change makes it another bucket, with the entries that it has. */
  madeAt = "now";
  /** Every call, in the order of their effects. */
  readonly calls: BucketCall[] = [];
  /** True for a call that is to have its effect but to end in TIMEOUT. */
  losesAnswer: (call: BucketCall) => boolean = () => false;
  /** True for a call that is to end in TIMEOUT without effect. */
  losesRequest: (call: BucketCall) => boolean = () => false;

  constructor(options: MemoryBucketOptions = {}) {
    this.#options = options;
  }

  /** The stored text of an entry, as a broker's file holds it. */
  text(key: string): string | undefined {
    return this.#entries.get(key)?.text;
  }

  /** Puts another text in the place of an entry's, as damage does; undefined loses the entry. */
  damage(key: string, text: string | undefined): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) throw new Error(`there is no entry ${key}`);
    if (text === undefined) this.#entries.delete(key);
    else this.#entries.set(key, { ...entry, text });
  }

  created(): Promise<string> {
    return Promise.resolve(this.madeAt);
  }

  read(key: string): Promise<KvEntry | undefined> {
    return this.#call({ action: "read", key }, () => {
      const entry = this.#entries.get(key);
      return entry && { value: decodeEntry(key, entry.text, "memory"), revision: entry.revision };
    });
  }

  create(key: string, value: unknown): Promise<number | undefined> {
    return this.#call({ action: "create", key }, () =>
      this.#entries.has(key) ? undefined : this.#write(key, value),
    );
  }

  update(key: string, value: unknown, revision: number, id?: string): Promise<number | undefined> {
    return this.#call({ action: "update", key }, () =>
      this.#once(id, () =>
        this.#entries.get(key)?.revision === revision ? this.#write(key, value) : undefined,
      ),
    );
  }

  writeAfter(key: string, value: unknown, id: string, lastId: string): Promise<number | undefined> {
    return this.#call({ action: "writeAfter", key }, () =>
      this.#once(id, () => (this.#lastId === lastId ? this.#write(key, value) : undefined)),
    );
  }

  remove(key: string, revision: number): Promise<boolean> {
    return this.#call({ action: "remove", key }, () => {
      if (this.#entries.get(key)?.revision !== revision) return false;
      return this.#entries.delete(key);
    });
  }

  lastRevision(): Promise<number> {
    return Promise.resolve(this.#revision);
  }

  overwrite(key: string, value: unknown, upToRevision: number): Promise<number | undefined> {
    return this.#call({ action: "update", key }, () =>
      (this.#entries.get(key)?.revision ?? 0) <= upToRevision ? this.#write(key, value) : undefined,
    );
  }

  keys(prefix: string): Promise<string[]> {
    return this.#call({ action: "keys", key: prefix }, () =>
      [...this.#entries.keys()].filter((key) => key.startsWith(prefix)),
    );
  }

  async changes(
    prefix: string,
    afterRevision: number,
    onEntry: (key: string, entry: KvEntry) => void,
  ): Promise<number> {
    const { head, found } = await this.#call({ action: "changes", key: prefix }, () => ({
      head: this.#revision,
      found: [...this.#entries]
        .filter(([key, { revision }]) => key.startsWith(prefix) && revision > afterRevision)
        .sort(([, a], [, b]) => a.revision - b.revision),
    }));
    for (const [key, { text, revision }] of found) {
      onEntry(key, { value: decodeEntry(key, text, "memory"), revision });
    }
    return head;
  }

  /** Makes a named write once; another one with the name has its result. */
  #once(id: string | undefined, write: () => number | undefined): number | undefined {
    const before = id === undefined ? undefined : this.#byId.get(id);
    if (before !== undefined) return before;
    const revision = write();
    if (revision === undefined || id === undefined) return revision;
    this.#byId.set(id, revision);
    this.#lastId = id;
    return revision;
  }

  #write(key: string, value: unknown): number {
    this.#lastId = undefined;
    this.#revision += 1;
    const writtenAtMs = this.#options.clock?.now() ?? 0;
    const text = encodeEntry(key, value);
    this.#entries.set(key, { text, revision: this.#revision, writtenAtMs });
    return this.#revision;
  }

  async #call<Result>(call: BucketCall, effect: () => Result): Promise<Result> {
    await this.#options.between?.(call);
    if (this.losesRequest(call)) throw timeout(call);
    this.#expire();
    this.calls.push(call);
    const result = effect();
    await this.#options.between?.(call);
    if (this.losesAnswer(call)) throw timeout(call);
    return result;
  }

  #expire(): void {
    const { ttlMs, clock } = this.#options;
    if (ttlMs === undefined || clock === undefined) return;
    for (const [key, { writtenAtMs }] of this.#entries) {
      if (clock.now() - writtenAtMs >= ttlMs) this.#entries.delete(key);
    }
  }
}

/** Leases in memory that last `leaseMs` on a clock. */
export function memoryLeases(
  leaseMs: number,
  clock: Clock,
): { leases: Leases; bucket: MemoryBucket } {
  const bucket = new MemoryBucket({ ttlMs: leaseMs, clock });
  return { leases: new KvLeases(bucket), bucket };
}

function timeout({ action, key }: BucketCall): PserverError {
  return new PserverError("TIMEOUT", `${action} ${key}: the broker did not answer in time`, {
    key,
  });
}
