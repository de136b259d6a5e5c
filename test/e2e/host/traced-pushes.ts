import { expect } from "vitest";
import type { Client } from "../../../src/client/index.ts";
import type { PserverError } from "../../../src/protocol/index.ts";
import { HANG_MS } from "../../support/limits.ts";

/** Elements of 4 MiB: as large as a record gets, so that each begins a file of the broker's. */
const ELEMENTS = 512 * 1024;

/** Attempts to bring about what a full disk mostly does at once, each with up to two pushes. */
const ATTEMPTS_MAX = 20;

/**
 * How long the first push to a full disk is tried, and the longest that one is: each is tried twice as long
 * as the one before.
 */
const [FIRST_MS, LONGEST_MS] = [1_500, 48_000];

/**
 * Pushes to the parameter `w` whose traces in the values can be told apart: the k-th adds 2^k to every
 * element, up to the 53rd.
 */
export class TracedPushes {
  readonly acknowledged: number[] = [];
  /** The codes of those of which it is known that they were not applied. */
  readonly refusals: string[] = [];
  readonly #refused: number[] = [];
  readonly #client: Client;
  #next = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  /** What each element is if none was applied but the acknowledged. */
  get sum(): number {
    return this.acknowledged.reduce((sum, bit) => sum + bit, 0);
  }

  /** Makes the parameter. */
  async begin(): Promise<void> {
    await this.#client.createIfNotAlreadyCreated("w", new Float64Array(ELEMENTS), {
      learningRate: 1,
    });
  }

  async push(timeoutMs = HANG_MS): Promise<void> {
    const bit = 2 ** this.#next++;
    try {
      const w = new Float64Array(ELEMENTS).fill(-bit);
      await this.#client.sendGrads({ w }, { timeoutMs });
      this.acknowledged.push(bit);
    } catch (error) {
      const { code } = error as PserverError;
      // NO_BROKER: the connection to a broker that was started again is not there yet.
      const expected = ["JOURNAL_FULL", "JOURNAL_FAULT", "OUTCOME_UNKNOWN", "NO_BROKER"];
      expect(expected).toContain(code);
      if (code === "OUTCOME_UNKNOWN") return;
      this.refusals.push(code);
      this.#refused.push(bit);
    }
  }

  /** Pushes `count` times, all of which must be acknowledged. */
  async pushAll(count: number): Promise<void> {
    const before = this.acknowledged.length;
    for (let i = 0; i < count; i++) await this.push();
    expect(this.acknowledged).toHaveLength(before + count);
  }

  /** Pushes to a full disk until a condition holds; `refill` takes what the broker gave back. */
  async pushUntil(
    holds: () => boolean | Promise<boolean>,
    refill: () => Promise<void>,
  ): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      await this.push(Math.min(FIRST_MS * 2 ** attempt, LONGEST_MS));
      if (await holds()) return;
      await refill();
    }
    throw new Error(`${ATTEMPTS_MAX} pushes did not bring it about; refused: ${this.refusals}`);
  }

  /** Holds the values against what the pushes were told; gives what each element is. */
  async check(): Promise<number> {
    const { data } = await this.#client.pullFull("w");
    const values = new Set([...data].map(Number));
    expect(values.size).toBe(1);
    const [sum = 0] = values;
    for (const bit of this.acknowledged) expect(hasTrace(sum, bit)).toBe(true);
    for (const bit of this.#refused) expect(hasTrace(sum, bit)).toBe(false);
    return sum;
  }
}

function hasTrace(sum: number, bit: number): boolean {
  return Math.floor(sum / bit) % 2 === 1;
}
