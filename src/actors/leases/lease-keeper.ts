import { ensureError, PserverError } from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Leases, LeaseValue } from "./leases.ts";

/** What a {@link LeaseKeeper} keeps, and for how long it may go unrenewed. */
export interface LeaseKeeperOptions {
  readonly leases: Leases;
  readonly key: string;
  readonly value: LeaseValue;
  readonly leaseMs: number;
  /** Called once, when the lease can no longer be counted on; the keeper has then ended. */
  readonly onLost: (reason: PserverError) => void;
  /** Called whenever the lease was claimed or renewed: it is held for `remainingMs` from now. */
  readonly onHeld?: (remainingMs: number) => void;
  readonly clock?: Clock;
}

/**
 * Holds one lease and renews it three times in a lease time. Its time is measured from before
 * each renewal was sent, on a monotonic clock, so it ends here before it ends at the broker.
 */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  readonly #clock: Clock;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #running = false;
  #renewal: Promise<void> = Promise.resolve();
  #cancelTimers: (() => void)[] = [];
  #lastError: PserverError | undefined;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Whether the lease is held at this moment. Ask before every answer that only the holder may
   * give: a timer may be late, this is not.
   */
  get held(): boolean {
    return this.#running && this.#clock.now() < this.#heldUntil;
  }

  /** Claims the lease and, if it was free, keeps it from then on; false if another holds it. */
  async start(): Promise<boolean> {
    const sentAt = this.#clock.now();
    const { leases, key, value } = this.#options;
    if (!(await leases.claim(key, value))) return false;
    this.#running = true;
    this.#extend(sentAt);
    return true;
  }

  /**
   * Stops renewing, waits for a renewal under way and gives the lease up. It throws if the broker
   * does not answer: the lease then ends in its own time.
   */
  async stop(): Promise<void> {
    const wasRunning = this.#running;
    this.#end();
    await this.#renewal;
    if (wasRunning) await this.#options.leases.release(this.#options.key, this.#options.value);
  }

  #extend(sentAt: number): void {
    const { leaseMs, onHeld } = this.#options;
    this.#heldUntil = sentAt + leaseMs;
    onHeld?.(this.#heldUntil - this.#clock.now());
    this.#schedule(sentAt + leaseMs / 3);
  }

  #schedule(renewAt: number): void {
    this.#clearTimers();
    const now = this.#clock.now();
    this.#cancelTimers = [
      this.#clock.after(Math.max(0, this.#heldUntil - now), () => this.#expire()),
      this.#clock.after(Math.max(0, renewAt - now), () => {
        this.#renewal = this.#renew();
      }),
    ];
  }

  async #renew(): Promise<void> {
    const { leases, key, value, leaseMs } = this.#options;
    const sentAt = this.#clock.now();
    try {
      // One that vanished before its time went with a broker's memory: take it again.
      const held = (await leases.renew(key, value)) || (await leases.claim(key, value));
      if (!this.#running) return;
      if (held) this.#extend(sentAt);
      else this.#lose(`lease ${key} is held by another`);
    } catch (error) {
      this.#lastError = ensureError(error);
      if (this.#running) this.#schedule(this.#clock.now() + leaseMs / 10);
    }
  }

  #expire(): void {
    const { key, leaseMs } = this.#options;
    this.#lose(`lease ${key} has not been renewed for ${leaseMs} ms`);
  }

  #lose(message: string): void {
    if (!this.#running) return;
    this.#end();
    const { key, onLost } = this.#options;
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
