import { ensureError, type PserverError } from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Leases } from "./leases.ts";

/** Which leases a {@link LeaseView} watches. */
export interface LeaseViewOptions {
  readonly leases: Leases;
  /** Ends in a dot. */
  readonly prefix: string;
  readonly leaseMs: number;
  /** How often to look; three times in a lease time by default. */
  readonly pollMs?: number;
  /** Told of each poll that failed; the view goes on. */
  readonly onError?: (error: PserverError) => void;
  readonly clock?: Clock;
}

/**
 * Which leases are lost, as far as this process can know: it polls three times in a lease time
 * and calls a lease lost when it was absent for a whole lease time in which every poll was
 * answered. After an outage of the broker every holder thus gets a lease time to come back.
 */
export class LeaseView {
  readonly #options: LeaseViewOptions;
  readonly #clock: Clock;
  /** When each lease that vanished less than a lease time ago was first found absent. */
  readonly #absentSince = new Map<string, number>();
  #present: ReadonlySet<string> = new Set();
  /** Since when all polls were answered; undefined if the last was not. */
  #connectedSince: number | undefined;
  #polledAt = Number.NEGATIVE_INFINITY;
  #running = false;
  #poll: Promise<void> = Promise.resolve();
  #cancelTimer: () => void = () => undefined;

  constructor(options: LeaseViewOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Whether every poll of the past lease time was answered. */
  get settled(): boolean {
    return (
      this.#connectedSince !== undefined &&
      this.#polledAt - this.#connectedSince >= this.#options.leaseMs
    );
  }

  /** The keys that the last answered poll found. */
  get present(): ReadonlySet<string> {
    return this.#present;
  }

  /** Whether the lease has been absent for a whole lease time with this process looking. */
  isLost(key: string): boolean {
    if (!this.settled || this.#present.has(key)) return false;
    const absentSince = this.#absentSince.get(key);
    return absentSince === undefined || this.#polledAt - absentSince >= this.#options.leaseMs;
  }

  /** Polls until {@link LeaseView.stop}; settles after the first poll, answered or not. */
  async start(): Promise<void> {
    if (!this.#running) {
      this.#running = true;
      this.#poll = this.#pollOnce();
    }
    await this.#poll;
  }

  /** Ends polling and waits for a poll under way. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelTimer();
    await this.#poll;
  }

  /** Forgets what absence has been observed; call it when the connection was lost. */
  disconnected(): void {
    this.#connectedSince = undefined;
  }

  async #pollOnce(): Promise<void> {
    const { leases, prefix, leaseMs, onError, pollMs = leaseMs / 3 } = this.#options;
    const sentAt = this.#clock.now();
    try {
      const present = await leases.keys(prefix);
      this.#note(present, sentAt, this.#clock.now());
    } catch (error) {
      this.disconnected();
      onError?.(ensureError(error));
    }
    if (!this.#running) return;
    const delayMs = Math.max(leaseMs / 10, sentAt + pollMs - this.#clock.now());
    this.#cancelTimer = this.#clock.after(delayMs, () => {
      this.#poll = this.#pollOnce();
    });
  }

  /** Absence is counted from when it was known until the last question about it was sent. */
  #note(present: ReadonlySet<string>, sentAt: number, answeredAt: number): void {
    const { leaseMs } = this.#options;
    // A pause of this process is no observation either.
    if (sentAt - this.#polledAt > leaseMs) this.disconnected();
    this.#connectedSince ??= answeredAt;
    for (const key of this.#present) if (!present.has(key)) this.#absentSince.set(key, answeredAt);
    for (const [key, since] of this.#absentSince) {
      // Of one that vanished a lease time ago `connectedSince` says enough.
      if (present.has(key) || sentAt - since >= leaseMs) this.#absentSince.delete(key);
    }
    this.#polledAt = sentAt;
    this.#present = present;
  }
}
