import { ensureError, type PserverError } from "../../protocol/index.ts";
import { type Clock, systemClock } from "../clock.ts";
import { Rounds } from "../rounds.ts";
import type { Leases } from "./leases.ts";

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
  readonly clock?: Clock;
}

/**
 * Tells which leases are lost: those that were absent for a whole lease time in which every poll was
 * answered. After an outage every holder thus has a lease time to come back.
 */
export class LeaseView {
  readonly #deps: LeaseViewDeps;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  /** For each lease that vanished less than a lease time ago, when it was first found absent. */
  readonly #absentSince = new Map<string, number>();
  #present: ReadonlySet<string> = new Set();
  /** Start of the time in which all polls were answered; undefined if the last was not. */
  #connectedSince: number | undefined;
  #polledAt = Number.NEGATIVE_INFINITY;

  constructor(deps: LeaseViewDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
    this.#rounds = new Rounds(() => this.#poll(), this.#clock);
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

  /** Whether the lease has been absent for a whole lease time while this process polled. */
  isLost(key: string): boolean {
    if (!this.settled || this.#present.has(key)) return false;
    const absentSince = this.#absentSince.get(key);
    return absentSince === undefined || this.#polledAt - absentSince >= this.#deps.leaseMs;
  }

  /** Polls until {@link LeaseView.stop}; settles after the first poll, answered or not. */
  async start(): Promise<void> {
    await this.#rounds.start();
  }

  /** Stops polling and waits for a poll under way. */
  async stop(): Promise<void> {
    await this.#rounds.stop();
  }

  /** Discards the absences observed so far. Call it when the connection was lost. */
  disconnected(): void {
    this.#connectedSince = undefined;
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

  /** Counts an absence from the answer that first showed it until the last poll was sent. */
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
    this.#present = present;
  }
}
