import { busy } from "../../protocol/index.ts";
import { QUEUED_BYTES } from "../requests/queue-limits.ts";
import { Shares } from "../requests/shares.ts";

/** The part indices of a pending read. */
export interface WantedPart {
  readonly index: Uint8Array;
  /** Releases the memory; to be called once. */
  readonly release: () => void;
}

/** Copies of the part indices of pending reads: the buffer of a request is reused after its turn. */
export class WantedParts {
  readonly #shard: number;
  /** Bytes held. */
  readonly #shares: Shares = new Shares(QUEUED_BYTES);

  constructor(shard: number) {
    this.#shard = shard;
  }

  /**
   * Copies the indices of a trainer's read. @throws BUSY if the pending ones hold too many bytes.
   * @param entryBytes memory of what else is kept of the request.
   */
  hold(trainer: string, index: Uint8Array, entryBytes = 0): WantedPart {
    const received = index.length + entryBytes;
    if (!this.#shares.take(trainer, received)) {
      const { each: expected, all } = QUEUED_BYTES;
      throw busy(
        `shard ${this.#shard}: expected at most ${expected} bytes of blocks and indices in one trainer's pending reads and ${all} in all`,
        { shard: this.#shard, expected, received },
      );
    }
    return {
      index: Uint8Array.from(index),
      release: () => this.#shares.giveBack(trainer, received),
    };
  }
}
