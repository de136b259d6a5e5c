import { setTimeout as delay } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { asMap, busy, ensureError, PserverError, textField } from "../../protocol/index.ts";
import { fromBrokerError } from "../../transport/broker-error.ts";
import { type Clock, mapConcurrently, Repeater, systemClock } from "../concurrent.ts";
import type { KvBucket, KvEntry } from "../journal/kv-bucket.ts";

/** Value of a lease. Only the holder, known by `owner`, renews or releases it. */
export interface LeaseValue {
  /** Unique to one run of one holder: a process that starts again takes another. */
  readonly owner: string;
  readonly [entry: string]: unknown;
}

/** A lease as it was read. */
export interface StoredLease {
  readonly value: LeaseValue;
  /** Changes with every write of the lease. */
  readonly revision: string;
}

/**
 * Leases, which show who is alive. A lease ends by itself when it is not renewed for the lease time.
 * Nobody is notified of that; a process that waits for it must poll. A lease is no lock: its holder may
 * be paused and wake up later, so what must exclude others is fenced by an epoch of its own.
 *
 * The methods throw as those of `KvBucket` do, and may then have done their work.
 */
export interface Leases {
  /**
   * Takes a lease that nobody holds. One that `value.owner` holds already is written anew, so that it lasts for the whole
   * lease time.
   */
  claim(key: string, value: LeaseValue): Promise<boolean>;
  /**
   * Extends one's own lease by another lease time; false if it is no longer held. Another value than the stored one is
   * written.
   */
  renew(key: string, value: LeaseValue): Promise<boolean>;
  /** Ends one's own lease; nothing happens if somebody else holds it. */
  release(key: string, value: LeaseValue): Promise<void>;
  /** Ends a lease, whoever holds it, unless it was written after it was read; returns whether it has ended it. */
  end(key: string, lease: StoredLease): Promise<boolean>;
  /** The value of a lease; undefined if nobody holds it. */
  read(key: string): Promise<LeaseValue | undefined>;
  /** The held leases whose keys begin with `prefix`, which ends in a dot. */
  list(prefix: string): Promise<Map<string, StoredLease>>;
  /** The keys of {@link Leases.list}, for the cost of one request. */
  keys(prefix: string): Promise<ReadonlySet<string>>;
}

const TRIES_MAX = 8;

/**
 * Repeats `attempt` while it returns undefined: somebody else wrote in between.
 * @throws BUSY after 8 attempts.
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

/** Reads the value of a stored lease. @throws BAD_MESSAGE if it is none. */
export function parseLease(key: string, stored: unknown): LeaseValue {
  const fields = asMap(stored, `lease ${key}`);
  return { ...fields, owner: textField(fields, "owner") };
}

const NANOSECONDS_PER_MS = 1_000_000;

/**
 * The time until which each shard's lease is held, and the number of its tenure: how often it was claimed after a
 * time in which another host may have held it. Both are shared between the main thread, which renews, and the
 * workers, which must stop answering by themselves when renewals stop. Times are of the process's monotonic clock,
 * which all threads share.
 */
export class LeaseClock {
  readonly buffer: SharedArrayBuffer;
  readonly #leaseNs: bigint;
  readonly #heldUntil: BigInt64Array;
  readonly #tenures: BigInt64Array;

  /** `buffer`: that of the clock on another thread; without it a new one for `shards` shards is made. */
  constructor(shards: number, leaseMs: number, buffer?: SharedArrayBuffer) {
    this.#leaseNs = toNanoseconds(leaseMs);
    const bytes = shards * BigInt64Array.BYTES_PER_ELEMENT;
    this.buffer = buffer ?? new SharedArrayBuffer(2 * bytes);
    this.#heldUntil = new BigInt64Array(this.buffer, 0, shards);
    this.#tenures = new BigInt64Array(this.buffer, bytes, shards);
  }

  /** Notes that the lease of a shard was claimed; {@link extend} follows. */
  claimed(shard: number): void {
    Atomics.store(this.#heldUntil, shard, 0n);
    Atomics.add(this.#tenures, shard, 1n);
  }

  /** Notes that the lease of a shard is held for `remainingMs` from now. */
  extend(shard: number, remainingMs: number): void {
    const until = process.hrtime.bigint() + toNanoseconds(remainingMs);
    Atomics.store(this.#heldUntil, shard, until);
  }

  /** Notes that the lease of a shard is not held. */
  end(shard: number): void {
    Atomics.store(this.#heldUntil, shard, 0n);
  }

  /** Number of the present tenure of a shard; undefined while its lease is not held. */
  tenure(shard: number): bigint | undefined {
    // In this order: a lease that was claimed in between has a new number, which nobody has proven yet.
    const isHeld = process.hrtime.bigint() < Atomics.load(this.#heldUntil, shard);
    return isHeld ? Atomics.load(this.#tenures, shard) : undefined;
  }

  /** Whether the last claim or renewal of a shard's lease was sent at this time of `process.hrtime` or later. */
  isRenewedSince(shard: number, timeNs: bigint): boolean {
    return Atomics.load(this.#heldUntil, shard) - this.#leaseNs >= timeNs;
  }
}

function toNanoseconds(milliseconds: number): bigint {
  return BigInt(Math.round(milliseconds * NANOSECONDS_PER_MS));
}

/** Leases in a bucket whose entries expire: see `ttlMs` of `openBucket`. */
export class KvLeases implements Leases {
  readonly #bucket: KvBucket;
  /** The last write of this process by key: the renewal after it need not read first. */
  readonly #written: Map<string, { readonly owner: string; readonly revision: number }> = new Map();

  constructor(bucket: KvBucket) {
    this.#bucket = bucket;
  }

  async claim(key: string, value: LeaseValue): Promise<boolean> {
    return await settleLease(key, async () => {
      if (this.#note(key, value, await this.#bucket.create(key, value))) return true;
      const held = await this.#bucket.read(key);
      // Undefined: it expired between the two requests, so try again.
      if (held === undefined) return undefined;
      if (parseLease(key, held.value).owner !== value.owner) return false;
      const revision = await this.#bucket.update(key, value, held.revision);
      return this.#note(key, value, revision) || undefined;
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

  async end(key: string, { revision }: StoredLease): Promise<boolean> {
    return await this.#bucket.remove(key, Number(revision));
  }

  async list(prefix: string): Promise<Map<string, StoredLease>> {
    const leases = await mapConcurrently(await this.#bucket.keys(prefix), async (key) => {
      const held = await this.#bucket.read(key);
      if (held === undefined) return [];
      const value = parseLease(key, held.value);
      return [[key, { value, revision: String(held.revision) }] as const];
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

/** Dependencies of {@link LeaseKeeper}. */
export interface LeaseKeeperDeps {
  readonly leases: Leases;
  readonly key: string;
  /** Returns what a claim or renewal is to write; the owner is always the same. */
  readonly value: () => LeaseValue;
  readonly leaseMs: number;
  /** Called once, when the lease is lost or may be; the keeper has then stopped. */
  readonly onLost: (reason: PserverError) => void;
  /**
   * Called whenever the lease was claimed or renewed: it is held for `remainingMs` from now. Before a claim, another
   * process may have held it.
   */
  readonly onHeld?: (remainingMs: number, how: "claimed" | "renewed") => void;
  readonly clock?: Clock;
}

/**
 * Holds one lease and renews it three times in a lease time. The time is measured from before each
 * renewal is sent, on a monotonic clock, so the lease ends here before it ends where it is stored.
 */
export class LeaseKeeper {
  readonly #deps: LeaseKeeperDeps;
  readonly #clock: Clock;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #running = false;
  #renewal: Promise<void> = Promise.resolve();
  #cancelTimers: (() => void)[] = [];
  #lastError: PserverError | undefined;

  constructor(deps: LeaseKeeperDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
  }

  /**
   * Whether the lease is held at this moment. Check before every answer that only the holder may
   * give: `onLost` depends on a timer, which may be late.
   */
  get held(): boolean {
    return this.#running && this.#clock.now() < this.#heldUntil;
  }

  /** Claims the lease and, if it was free, keeps it from then on; false if another holds it. */
  async start(): Promise<boolean> {
    const sentAt = this.#clock.now();
    const { leases, key, value } = this.#deps;
    if (!(await leases.claim(key, value()))) return false;
    this.#running = true;
    this.#extend(sentAt, "claimed");
    return true;
  }

  /** Renews the lease now, and after a renewal under way, if it is held: its value is another one. */
  renewNow(): void {
    this.#renewal = this.#renewal.then(() => this.#renew());
  }

  /**
   * Stops renewing, waits for a renewal under way and releases the lease. It throws if the lease cannot be
   * released: it then ends by itself.
   */
  async stop(): Promise<void> {
    const wasRunning = this.#running;
    this.#end();
    await this.#renewal;
    if (wasRunning) await this.#deps.leases.release(this.#deps.key, this.#deps.value());
  }

  #extend(sentAt: number, how: "claimed" | "renewed"): void {
    const { leaseMs, onHeld } = this.#deps;
    this.#heldUntil = sentAt + leaseMs;
    onHeld?.(this.#heldUntil - this.#clock.now(), how);
    this.#schedule(sentAt + leaseMs / 3);
  }

  #schedule(renewAt: number): void {
    this.#clearTimers();
    const now = this.#clock.now();
    this.#cancelTimers = [
      this.#clock.after(Math.max(0, this.#heldUntil - now), () => this.#expire()),
      this.#clock.after(Math.max(0, renewAt - now), () => {
        this.renewNow();
      }),
    ];
  }

  async #renew(): Promise<void> {
    if (!this.#running) return;
    const { leases, key, leaseMs } = this.#deps;
    const value = this.#deps.value();
    const sentAt = this.#clock.now();
    try {
      const isRenewed = await leases.renew(key, value);
      // A lease can vanish early with a broker's memory: claim it again.
      const isHeld = isRenewed || (await leases.claim(key, value));
      if (!this.#running) return;
      if (isHeld) this.#extend(sentAt, isRenewed ? "renewed" : "claimed");
      else this.#lose(`lease ${key} is held by another`);
    } catch (error) {
      this.#lastError = ensureError(error);
      if (this.#running) this.#schedule(this.#clock.now() + leaseMs / 10);
    }
  }

  #expire(): void {
    const { key, leaseMs } = this.#deps;
    this.#lose(`lease ${key} has not been renewed for ${leaseMs} ms`);
  }

  #lose(message: string): void {
    if (!this.#running) return;
    this.#end();
    const { key, onLost } = this.#deps;
    onLost(new PserverError("NOT_OWNER", message, { key }, { cause: this.#lastError }));
  }

  #end(): void {
    this.#running = false;
    this.#clearTimers();
  }

  #clearTimers(): void {
    for (const cancel of this.#cancelTimers) cancel();
    this.#cancelTimers = [];
  }
}

/** Dependencies of {@link LeaseView}. */
export interface LeaseViewDeps {
  readonly leases: Leases;
  /** Prefix of the watched leases' keys; ends in a dot. */
  readonly prefix: string;
  readonly leaseMs: number;
  /** Time between polls; a third of the lease time by default. */
  readonly pollMs?: number;
  /** Told of each poll that failed; the view continues. */
  readonly onError?: (error: PserverError) => void;
  /** Called when a poll has found other leases than the one before. */
  readonly onChange?: () => void;
  readonly clock?: Clock;
}

/**
 * Tells which leases are lost: those that were absent for a whole lease time in which every poll was answered. So
 * every holder has a lease time to come back after an outage.
 */
export class LeaseView {
  readonly #deps: LeaseViewDeps;
  readonly #clock: Clock;
  readonly #repeater: Repeater;
  /** When a lease was first found absent, by key; only for those that vanished less than a lease time ago. */
  readonly #absentSince = new Map<string, number>();
  #present: ReadonlySet<string> = new Set();
  /** Leases that were held before an outage and have not been seen since. */
  #heldBefore: Set<string> = new Set();
  /** Start of the time in which all polls were answered; undefined if the last one was not. */
  #connectedSince: number | undefined;
  #polledAt = Number.NEGATIVE_INFINITY;

  constructor(deps: LeaseViewDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
    this.#repeater = new Repeater(() => this.#poll(), this.#clock);
  }

  /** Whether every poll of the past lease time was answered. */
  get settled(): boolean {
    return (
      this.#connectedSince !== undefined &&
      this.#polledAt - this.#connectedSince >= this.#deps.leaseMs
    );
  }

  /** The keys that the last answered poll found. */
  get present(): ReadonlySet<string> {
    return this.#present;
  }

  /**
   * The leases that are held, and those that were held before an outage, until their holders have had a lease time to
   * come back: all leases end when none can be renewed.
   */
  get presumed(): ReadonlySet<string> {
    return this.settled ? this.#present : new Set([...this.#present, ...this.#heldBefore]);
  }

  /** Whether the lease has been absent for a whole lease time while this process polled. */
  isLost(key: string): boolean {
    if (!this.settled || this.#present.has(key)) return false;
    const absentSince = this.#absentSince.get(key);
    return absentSince === undefined || this.#polledAt - absentSince >= this.#deps.leaseMs;
  }

  /** Polls until {@link LeaseView.stop}; settles after the first poll, answered or not. */
  async start(): Promise<void> {
    await this.#repeater.start();
  }

  /** Polls at once; settles after that. */
  async look(): Promise<void> {
    await this.#repeater.soon();
  }

  /** Stops polling and waits for a poll under way. */
  async stop(): Promise<void> {
    await this.#repeater.stop();
  }

  /** Notes that the holder of a lease is gone for good, and need not be given time to come back. */
  gone(key: string): void {
    this.#heldBefore.delete(key);
    this.#present = new Set([...this.#present].filter((each) => each !== key));
  }

  /** Discards the absences observed so far. Call it when the connection was lost. */
  disconnected(): void {
    this.#connectedSince = undefined;
    for (const key of this.#present) this.#heldBefore.add(key);
  }

  async #poll(): Promise<number> {
    const { leases, prefix, leaseMs, onError, pollMs = leaseMs / 3 } = this.#deps;
    const sentAt = this.#clock.now();
    try {
      const present = await leases.keys(prefix);
      this.#note(present, sentAt, this.#clock.now());
    } catch (error) {
      this.disconnected();
      onError?.(ensureError(error));
    }
    return Math.max(leaseMs / 10, sentAt + pollMs - this.#clock.now());
  }

  /**
   * Notes which leases are absent. An absence counts from the answer that first showed it until the last poll was
   * sent.
   */
  #note(present: ReadonlySet<string>, sentAt: number, answeredAt: number): void {
    const { leaseMs } = this.#deps;
    // A time in which this process was paused does not count as observed.
    if (sentAt - this.#polledAt > leaseMs) this.disconnected();
    this.#connectedSince ??= answeredAt;
    for (const key of this.#present) if (!present.has(key)) this.#absentSince.set(key, answeredAt);
    for (const [key, since] of this.#absentSince) {
      // For a lease that vanished longer ago, `connectedSince` decides.
      if (present.has(key) || sentAt - since >= leaseMs) this.#absentSince.delete(key);
    }
    this.#polledAt = sentAt;
    const isChanged =
      present.size !== this.#present.size || [...present].some((key) => !this.#present.has(key));
    this.#present = present;
    if (this.settled) this.#heldBefore.clear();
    for (const key of present) this.#heldBefore.delete(key);
    if (isChanged) this.#deps.onChange?.();
  }
}

/** Checks that a broker answers. */
export class BrokerProbe {
  readonly #connection: Pick<NatsConnection, "flush">;
  readonly #timeoutMs: number;
  #underWay: Promise<void> | undefined;

  constructor(connection: Pick<NatsConnection, "flush">, timeoutMs: number) {
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
  }

  /** Settles when the broker answers; calls at the same time share one request. @throws NO_BROKER */
  reach(): Promise<void> {
    this.#underWay ??= this.#ask().finally(() => {
      this.#underWay = undefined;
    });
    return this.#underWay;
  }

  async #ask(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const text = `the broker has not answered for ${this.#timeoutMs} ms`;
        reject(new PserverError("NO_BROKER", text));
      }, this.#timeoutMs);
    });
    try {
      await Promise.race([this.#connection.flush(), timeout]);
    } catch (error) {
      throw fromBrokerError(error, "checking that the broker answers");
    } finally {
      clearTimeout(timer);
    }
  }
}
