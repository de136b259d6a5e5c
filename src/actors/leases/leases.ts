import { setTimeout as delay } from "node:timers/promises";
import { asMap, busy, textField } from "../../protocol/index.ts";
import { mapConcurrently } from "../concurrent.ts";
import type { Records, StoredRecord } from "../jetstream/kv-bucket.ts";

/** What a lease says. Only the holder, known by `owner`, renews or releases it. */
export interface LeaseValue {
  /** Unlike that of any other life of any holder. */
  readonly owner: string;
  readonly [entry: string]: unknown;
}

/**
 * Who is alive. A lease ends by itself when it is not renewed for the lease time, and nobody is
 * told: who waits for that polls. A lease is no lock: its holder may be paused and wake up later,
 * so whatever must exclude others is fenced by an epoch of its own.
 *
 * The methods throw as those of {@link Records} do, and may then have done their work.
 */
export interface Leases {
  /** Takes a lease that nobody holds; true too if `value.owner` holds it already. */
  claim(key: string, value: LeaseValue): Promise<boolean>;
  /** Makes one's own lease last for another lease time; false if it is not held any more. */
  renew(key: string, value: LeaseValue): Promise<boolean>;
  /** Ends one's own lease; nothing happens if somebody else holds it. */
  release(key: string, value: LeaseValue): Promise<void>;
  /** Who holds a lease; undefined if nobody does. */
  read(key: string): Promise<LeaseValue | undefined>;
  /** The held leases whose keys begin with `prefix`, which ends in a dot. */
  list(prefix: string): Promise<Map<string, LeaseValue>>;
  /** The keys that {@link Leases.list} would give, at the price of one request. */
  keys(prefix: string): Promise<ReadonlySet<string>>;
}

const TRIES_MAX = 8;

/** Leases in a bucket whose records expire: see `ttlMs` of `openRecords`. */
export class RecordLeases implements Leases {
  readonly #records: Records;
  /** What was last written here of each key: a renewal that follows it need not read first. */
  readonly #written: Map<string, { readonly owner: string; readonly revision: number }> = new Map();

  constructor(records: Records) {
    this.#records = records;
  }

  async claim(key: string, value: LeaseValue): Promise<boolean> {
    return await settleLease(key, async () => {
      if (this.#note(key, value, await this.#records.create(key, value))) return true;
      const held = await this.#records.read(key);
      // Undefined: it expired between the two, so try again.
      return held && parseLease(key, held.value).owner === value.owner;
    });
  }

  async renew(key: string, value: LeaseValue): Promise<boolean> {
    return await settleLease(key, async () => {
      const written = this.#written.get(key);
      const held = written?.owner === value.owner ? written : await this.#heldBy(key, value.owner);
      if (held === undefined) return false;
      const revision = await this.#records.update(key, value, held.revision);
      // Undefined: somebody else has written since, or it expired; the next try reads.
      return this.#note(key, value, revision) || undefined;
    });
  }

  async release(key: string, value: LeaseValue): Promise<void> {
    this.#written.delete(key);
    await settleLease(key, async () => {
      const held = await this.#heldBy(key, value.owner);
      if (held === undefined) return true;
      return (await this.#records.remove(key, held.revision)) || undefined;
    });
  }

  async read(key: string): Promise<LeaseValue | undefined> {
    const held = await this.#records.read(key);
    return held && parseLease(key, held.value);
  }

  async list(prefix: string): Promise<Map<string, LeaseValue>> {
    const keys = await this.#records.keys(prefix);
    const leases = new Map<string, LeaseValue>();
    const values = await mapConcurrently(keys, (key) => this.read(key));
    keys.forEach((key, at) => {
      const value = values[at];
      if (value !== undefined) leases.set(key, value);
    });
    return leases;
  }

  async keys(prefix: string): Promise<ReadonlySet<string>> {
    return new Set(await this.#records.keys(prefix));
  }

  /** Keeps the revision of a write; false if there was none. */
  #note(key: string, { owner }: LeaseValue, revision: number | undefined): boolean {
    if (revision === undefined) this.#written.delete(key);
    else this.#written.set(key, { owner, revision });
    return revision !== undefined;
  }

  async #heldBy(key: string, owner: string): Promise<StoredRecord | undefined> {
    const held = await this.#records.read(key);
    return held !== undefined && parseLease(key, held.value).owner === owner ? held : undefined;
  }
}

/**
 * Repeats `attempt` while it answers undefined: somebody else wrote in between.
 * @throws BUSY after a few times.
 */
export async function settleLease(
  key: string,
  attempt: () => Promise<boolean | undefined>,
): Promise<boolean> {
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const answer = await attempt();
    if (answer !== undefined) return answer;
    await delay(Math.random() * 5 * tries);
  }
  throw busy(`lease ${key}: changed by others ${TRIES_MAX} times in a row`, {
    key,
    expected: TRIES_MAX,
  });
}

/** What was stored of a lease; @throws BAD_MESSAGE if it cannot be one. */
export function parseLease(key: string, stored: unknown): LeaseValue {
  const fields = asMap(stored, `lease ${key}`);
  return { ...fields, owner: textField(fields, "owner") };
}
