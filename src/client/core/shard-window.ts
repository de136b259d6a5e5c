import type { BlockUpdate } from "./block-update.ts";
import { UpdateList } from "./update-list.ts";

/**
 * What a session sends to one shard: the updates that wait, the numbers that are open, and `done`, the
 * number up to which every record is settled or given up and will not be sent again. All open numbers
 * lie in `done + 1 … last`, at most `records` of them.
 */
export class ShardWindow {
  readonly shard: number;
  /** Updates that wait to be sent, in the order of their turns. */
  readonly waiting: UpdateList = new UpdateList();
  /** Open records that are stored, in the order in which their outcomes are to be asked for. */
  readonly stored: UpdateList = new UpdateList();
  /** The last publication that has a PubAck: earlier ones of the shard without one are lost. */
  ackedSendNumber = 0;
  /** When outcomes were last asked for. */
  askedAtMs: number = Number.NEGATIVE_INFINITY;
  readonly #records: number;
  /** The open records, each at its number modulo `records`. */
  readonly #open: (BlockUpdate | undefined)[] = [];
  #last = 0;
  #done = 0;

  constructor(shard: number, records: number) {
    this.shard = shard;
    this.#records = records;
  }

  get done(): number {
    return this.#done;
  }

  /** The number that was opened last. */
  get last(): number {
    return this.#last;
  }

  /** Whether the shard takes one more number. */
  get hasRoom(): boolean {
    return this.#last < this.#done + this.#records;
  }

  /** The record with a number, if that is open. */
  get(n: number): BlockUpdate | undefined {
    if (n <= this.#done || n > this.#last) return undefined;
    return this.#open[n % this.#records];
  }

  /** Gives an update the next number. */
  open(update: BlockUpdate): void {
    this.#last += 1;
    update.n = this.#last;
    update.isOpen = true;
    this.#open[update.n % this.#records] = update;
  }

  /** Frees the number that was given last: its record was never published. */
  takeBack(update: BlockUpdate): void {
    this.#remove(update);
    this.#last -= 1;
    update.n = 0;
  }

  /** The number of an open record is settled or given up. */
  close(update: BlockUpdate): void {
    this.#remove(update);
    while (this.#done < this.#last && this.get(this.#done + 1) === undefined) this.#done += 1;
  }

  /** Numbers start over in a new session; no number may be open. */
  restart(): void {
    this.#last = 0;
    this.#done = 0;
  }

  #remove(update: BlockUpdate): void {
    this.#open[update.n % this.#records] = undefined;
    update.isOpen = false;
  }
}
