import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { HeadMark } from "./head-mark.ts";
import type { MarkKeeper } from "./mark-keeper.ts";

/** Notes again and again how far a shard is folded, one write at a time. */
export class Marking {
  readonly #marks: Pick<MarkKeeper, "raise">;
  readonly #onFailed: (error: PserverError) => void;
  #writing: Promise<void> | undefined;
  #isTold = false;

  /** `onFailed` is told once of writes that fail, and again after one that did not. */
  constructor(marks: Pick<MarkKeeper, "raise">, onFailed: (error: PserverError) => void) {
    this.#marks = marks;
    this.#onFailed = onFailed;
  }

  /** Notes a head, unless a write is under way: the next call notes a later one. */
  note(head: HeadMark | undefined): Promise<void> {
    if (head === undefined) return Promise.resolve();
    this.#writing ??= this.#write(head).finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /** Notes the last head of this owner, after a write that is under way. */
  async finish(head: HeadMark | undefined): Promise<void> {
    await this.#writing;
    await this.note(head);
  }

  async #write(head: HeadMark): Promise<void> {
    try {
      await this.#marks.raise(head);
      this.#isTold = false;
    } catch (error) {
      if (!this.#isTold) this.#onFailed(ensureError(error));
      this.#isTold = true;
    }
  }
}
