import { ensureError, PserverError } from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Leases, LeaseValue } from "./leases.ts";

/** Dependencies of {@link LeaseKeeper}. */
export interface LeaseKeeperDeps {
  readonly leases: Leases;
  readonly key: string;
  readonly value: LeaseValue;
  readonly leaseMs: number;
  /** Called once, when the lease is lost or may be; the keeper has then stopped. */
  readonly onLost: (reason: PserverError) => void;
  /**
   * Called whenever the lease was claimed or renewed: it is held for `remainingMs` from now. After a claim,
   * another may have held it meanwhile.
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
    if (!(await leases.claim(key, value))) return false;
    this.#running = true;
    this.#extend(sentAt, "claimed");
    return true;
  }

  /**
   * Stops renewing, waits for a renewal under way and releases the lease. It throws if the lease cannot be
   * released: it then ends by itself.
   */
  async stop(): Promise<void> {
    const wasRunning = this.#running;
    this.#end();
    await this.#renewal;
    if (wasRunning) await this.#deps.leases.release(this.#deps.key, this.#deps.value);
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
        this.#renewal = this.#renew();
      }),
    ];
  }

  async #renew(): Promise<void> {
    const { leases, key, value, leaseMs } = this.#deps;
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
