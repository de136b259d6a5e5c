import { laterPosition, type Position } from "../../protocol/messages/position.ts";
import { type BlockUpdate, expectedPosition, type Failure } from "./update-call.ts";

/** What the positions tell the rest of the core. */
export interface PositionsListener {
  /** The journal that `seen` is a position of has been replaced; it is the last one seen of it. */
  journalReplaced(shard: number, seen: Position): void;
}

/** A list through the updates themselves: every operation takes constant time and no memory. */
export class UpdateList {
  #first: BlockUpdate | undefined;
  #last: BlockUpdate | undefined;

  get first(): BlockUpdate | undefined {
    return this.#first;
  }

  /** Adds an update, which is in no list, at the end. */
  append(update: BlockUpdate): void {
    update.previous = this.#last;
    if (this.#last === undefined) this.#first = update;
    else this.#last.next = update;
    this.#last = update;
  }

  /** Adds an update, which is in no list, before all others. */
  prepend(update: BlockUpdate): void {
    update.next = this.#first;
    if (this.#first === undefined) this.#last = update;
    else this.#first.previous = update;
    this.#first = update;
  }

  /** Removes an update, which is in this list. */
  remove(update: BlockUpdate): void {
    const { previous, next } = update;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    update.previous = undefined;
    update.next = undefined;
  }
}

/**
 * The records without a PubAck, in the order of their last publication, and the bytes of their elements,
 * which stay within a bound. A record that was given up stays until its PubAck cannot come any more: its
 * bytes may still be in the buffers of the connection.
 */
export class InFlight {
  readonly #bytesMax: number;
  readonly #list = new UpdateList();
  readonly #slots: (BlockUpdate | undefined)[] = [];
  readonly #free: number[] = [];
  #serials = 0;
  #bytes = 0;
  #count = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Bytes of elements in flight. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#count;
  }

  /** The record whose last publication is the longest ago; the others follow by `next`. */
  get first(): BlockUpdate | undefined {
    return this.#list.first;
  }

  /** The record that a PubAck names. */
  get(slot: number, serial: number): BlockUpdate | undefined {
    const update = this.#slots[slot];
    return update?.serial === serial ? update : undefined;
  }

  /** Whether so many bytes more are within the bound; something larger than the bound goes alone. */
  fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }

  /** Adds a record, and gives it a slot and serial. */
  add(update: BlockUpdate): void {
    update.slot = this.#free.pop() ?? this.#slots.length;
    update.serial = ++this.#serials;
    this.#slots[update.slot] = update;
    this.#list.append(update);
    this.#bytes += update.dataBytes;
    this.#count += 1;
  }

  /** The record is published once more. */
  moveToEnd(update: BlockUpdate): void {
    this.#list.remove(update);
    this.#list.append(update);
  }

  /** Removes a record that is in flight. */
  remove(update: BlockUpdate): void {
    this.#list.remove(update);
    this.#slots[update.slot] = undefined;
    this.#free.push(update.slot);
    update.slot = -1;
    this.#bytes -= update.dataBytes;
    this.#count -= 1;
  }
}

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

const BEGINNING: Position = { generation: 1, seq: 0 };

/**
 * The highest position seen in each shard, from PubAcks, answers, pull replies and the `at` of the
 * job. Pulls carry it, so that reads see the trainer's own writes and never go back.
 */
export class Positions {
  /** By shard: positions that reads must have reached. */
  readonly #awaited: (Position | undefined)[] = [];
  /** By shard: positions of what this trainer has itself written or read. */
  readonly #seen: (Position | undefined)[] = [];
  readonly #listener: PositionsListener;

  constructor(listener: PositionsListener) {
    this.#listener = listener;
  }

  /** Takes a position into account that was seen; a lower one changes nothing. */
  note(shard: number, { generation, seq }: Position): void {
    // Of a reply only its position is kept: the rest holds the bytes of a block.
    const position = { generation, seq };
    const before = this.#seen[shard];
    this.#seen[shard] = laterPosition(before, position);
    this.await(shard, position);
    if (before !== undefined && generation > before.generation) {
      this.#listener.journalReplaced(shard, before);
    }
  }

  /** Takes a position into account that reads must have reached, though nothing of it was seen. */
  await(shard: number, { generation, seq }: Position): void {
    this.#awaited[shard] = laterPosition(this.#awaited[shard], { generation, seq });
  }

  /** The position in a shard; its beginning if nothing was seen. */
  get(shard: number): Position {
    return this.#awaited[shard] ?? BEGINNING;
  }

  /** Every position, as `finish` sends them, in the order of shards. */
  list(): (Position & { readonly shard: number })[] {
    return this.#awaited.flatMap((position, shard) =>
      position === undefined ? [] : [{ shard, ...position }],
    );
  }
}

/**
 * After JOURNAL_REPLACED: positions of the old generation mean nothing any more. The failure names
 * where the new journal stands.
 */
export function noteReplaced(positions: Positions, shard: number, failure: Failure): void {
  const { generation } = expectedPosition(failure);
  if (generation > 0) positions.note(shard, { generation, seq: 0 });
}
