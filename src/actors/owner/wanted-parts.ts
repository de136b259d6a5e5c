import { busy } from "../../protocol/index.ts";
import { QUEUED_BYTES } from "../requests/queue-limits.ts";
import { Shares } from "../requests/shares.ts";

/** The part index of a pending pull. */
export interface WantedPart {
  readonly index: Uint8Array;
  /** Releases the memory; to be called once. */
  readonly release: () => void;
}

/** Copies of the part indices of pending pulls: the buffer of a request is reused after its turn. */
export class WantedParts {
  readonly #shard: number;
  /** Bytes of indices. */
  readonly #shares: Shares = new Shares(QUEUED_BYTES);

  constructor(shard: number) {
    this.#shard = shard;
  }

  /** Copies the index of a trainer's pull. @throws BUSY if the pending ones hold too many bytes. */
  hold(trainer: string, index: Uint8Array): WantedPart {
    const { length } = index;
    if (!this.#shares.take(trainer, length)) {
      const { each: expected, all } = QUEUED_BYTES;
      throw busy(
        `shard ${this.#shard}: expected at most ${expected} bytes of indices in one trainer's pending pulls and ${all} in all`,
        { shard: this.#shard, expected, received: length },
      );
    }
    return {
      index: Uint8Array.from(index),
      release: () => this.#shares.giveBack(trainer, length),
    };
  }
}
