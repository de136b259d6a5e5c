import type { BlockUpdate } from "./block-update.ts";

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
