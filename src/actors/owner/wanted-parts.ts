import { busy } from "../../protocol/index.ts";
import { QUEUED_BYTES } from "../requests/queue-limits.ts";
import { Shares } from "../requests/shares.ts";

/** The index of a pull that waits, until it is released. */
export interface WantedPart {
  readonly index: Uint8Array;
  /** Gives the memory back; to be called once. */
  readonly release: () => void;
}

/** The indices of the parts that pulls wait for: copies, because a request is gone after its turn. */
export class WantedParts {
  readonly #shard: number;
  /** Bytes of indices. */
  readonly #shares: Shares = new Shares(QUEUED_BYTES);

  constructor(shard: number) {
    this.#shard = shard;
  }

  /** Keeps a copy of an index for a trainer. @throws BUSY if those that wait hold too much. */
  hold(trainer: string, index: Uint8Array): WantedPart {
    const { length } = index;
    if (!this.#shares.take(trainer, length)) {
      const expected = QUEUED_BYTES.each;
      throw busy(
        `shard ${this.#shard}: expected at most ${expected} bytes of indices of a trainer's waiting pulls, and room for all`,
        { shard: this.#shard, expected, received: length },
      );
    }
    return {
      index: Uint8Array.from(index),
      release: () => this.#shares.giveBack(trainer, length),
    };
  }
}
