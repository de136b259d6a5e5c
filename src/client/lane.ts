import { WINDOW_RECORDS } from "../protocol/limits.ts";
import type { Batch, Piece } from "./batch.ts";
import type { OpenRecord } from "./open-record.ts";

/** A piece that waits to be sent. */
export interface Waiting {
  readonly piece: Piece;
  readonly batch: Batch;
}

/**
 * What a session sends to one shard: the pieces that wait, the numbers without an outcome, and
 * `done`, the number up to which every record is settled or given up and will not be sent again.
 */
export class Lane {
  readonly shard: number;
  readonly open = new Map<number, OpenRecord>();
  /** The last sending of the lane that has a PubAck: earlier ones without one are lost. */
  ackedSendNumber = 0;
  /** When outcomes were last asked for. */
  askedAtMs: number = Number.NEGATIVE_INFINITY;
  #waiting: Waiting[] = [];
  #head = 0;
  #last = 0;
  #done = 0;

  constructor(shard: number) {
    this.shard = shard;
  }

  get done(): number {
    return this.#done;
  }

  /** The number the next record takes. */
  get next(): number {
    return this.#last + 1;
  }

  /** Whether the shard would take one more number. */
  get probeStorage(): boolean {
    return this.next <= this.#done + WINDOW_RECORDS;
  }

  /** The piece whose turn it is. */
  get first(): Waiting | undefined {
    return this.#waiting[this.#head];
  }

  add(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /** Puts pieces back before all others: they had their turn already. */
  putBack(pieces: readonly Waiting[]): void {
    this.#waiting = [...pieces, ...this.#waiting.slice(this.#head)];
    this.#head = 0;
  }

  /** Takes away the piece whose turn it is. */
  shift(): void {
    this.#head += 1;
    if (this.#head === this.#waiting.length || this.#head >= 1024) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Takes away every waiting piece of a batch; returns how many. */
  removeWaiting(batch: Batch): number {
    const all = this.#waiting.slice(this.#head);
    this.#waiting = all.filter((waiting) => waiting.batch !== batch);
    this.#head = 0;
    return all.length - this.#waiting.length;
  }

  /** The record with the number {@link next} was sent. */
  opened(record: OpenRecord): void {
    this.#last = record.n;
    this.open.set(record.n, record);
  }

  /** The number is settled or given up. */
  close(n: number): void {
    this.open.delete(n);
    while (this.#done < this.#last && !this.open.has(this.#done + 1)) this.#done += 1;
  }

  /** Numbers start over, in a new session. */
  restart(): void {
    this.open.clear();
    this.ackedSendNumber = 0;
    this.#last = 0;
    this.#done = 0;
  }
}
