import { PserverError } from "../../protocol/index.ts";

/** Bytes of indices that the waiting pulls of one shard may hold; then askers are told BUSY. */
const INDEX_BYTES_MAX = 64 * 1024 * 1024;

/** The index of a pull that waits, until it is released. */
export interface WantedPart {
  readonly index: Uint8Array;
  /** Gives the memory back; to be called once. */
  readonly release: () => void;
}

/** The indices of the parts that pulls wait for: copies, because a request is gone after its turn. */
export class WantedParts {
  readonly #shard: number;
  #heldBytes = 0;

  constructor(shard: number) {
    this.#shard = shard;
  }

  /** Keeps a copy of an index. @throws BUSY if those that wait hold too much. */
  hold(index: Uint8Array): WantedPart {
    const heldBytes = this.#heldBytes + index.length;
    if (heldBytes > INDEX_BYTES_MAX) {
      throw new PserverError(
        "BUSY",
        `shard ${this.#shard}: the indices of waiting pulls take more than ${INDEX_BYTES_MAX} bytes`,
        { shard: this.#shard, expected: INDEX_BYTES_MAX, received: heldBytes },
      );
    }
    this.#heldBytes = heldBytes;
    const release = (): void => {
      this.#heldBytes -= index.length;
    };
    return { index: Uint8Array.from(index), release };
  }
}
