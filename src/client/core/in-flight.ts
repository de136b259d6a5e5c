import type { BlockUpdate } from "./block-update.ts";
import { UpdateList } from "./update-list.ts";

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
