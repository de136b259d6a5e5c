import { ensureError, type PserverError } from "../../protocol/index.ts";
import type { Head } from "./head-mark.ts";
import type { MarkKeeper } from "./mark-keeper.ts";

/** Writes the marks of one owner, one at a time, and reports failures. */
export class MarkWriter {
  readonly #marks: Pick<MarkKeeper, "raise">;
  readonly #onFailed: (error: PserverError) => void;
  #writing: Promise<void> | undefined;
  #hasToldFailure = false;

  /** `onFailed` is called for the first failure after a success. */
  constructor(marks: Pick<MarkKeeper, "raise">, onFailed: (error: PserverError) => void) {
    this.#marks = marks;
    this.#onFailed = onFailed;
  }

  /** Writes a mark, unless a write is under way: the next call will write a later mark. */
  write(head: Head | undefined): Promise<void> {
    if (head === undefined) return Promise.resolve();
    this.#writing ??= this.#raise(head).finally(() => {
      this.#writing = undefined;
    });
    return this.#writing;
  }

  /** Writes the last mark of this owner, after a write under way. */
  async finish(head: Head | undefined): Promise<void> {
    await this.#writing;
    await this.write(head);
  }

  async #raise(head: Head): Promise<void> {
    try {
      await this.#marks.raise(head);
      this.#hasToldFailure = false;
    } catch (error) {
      if (!this.#hasToldFailure) this.#onFailed(ensureError(error));
      this.#hasToldFailure = true;
    }
  }
}
