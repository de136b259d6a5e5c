import { paddedBytes } from "../../protocol/batch-records.ts";
import { PserverError } from "../../protocol/errors.ts";
import type { ReadPiece } from "../../protocol/read-pieces.ts";
import type { PendingBlock } from "./block-read.ts";

/** What a piece means for its request: all blocks have come, more pieces follow, or some are missing. */
export type Progress = "complete" | "more" | "missing";

/** Takes the pieces of the replies to one batched read, whichever of its repeats they answer. */
export class BatchReply {
  readonly #shard: number;
  readonly #blocks: readonly PendingBlock[];
  #next = 0;

  /** `blocks`: the entries of the request, in their order. */
  constructor(shard: number, blocks: readonly PendingBlock[]) {
    this.#shard = shard;
    this.#blocks = blocks;
  }

  /** Number of the first entry that has not come. */
  get next(): number {
    return this.#next;
  }

  /**
   * Gives the values of a piece to their blocks, except those that have come already.
   * @throws BAD_MESSAGE, before any is given, if the piece does not fit the request.
   */
  take({ from, more, generation, versions, data }: ReadPiece): Progress {
    this.#check(from, versions, data);
    let taken = 0;
    let at = 0;
    versions.forEach((version, i) => {
      const block = this.#blocks[from + i] as PendingBlock;
      const { read, bytes } = block;
      const values = version === 0 ? undefined : data.subarray(at, at + bytes);
      at += version === 0 ? 0 : paddedBytes(bytes);
      if (block.isDone) return;
      block.isDone = true;
      taken++;
      read.take(values, stateOf(block, version, generation));
    });
    while (this.#blocks[this.#next]?.isDone === true) this.#next++;
    if (this.#next === this.#blocks.length) return "complete";
    // Without progress the request is repeated after its pause, not at once.
    return more || taken === 0 ? "more" : "missing";
  }

  #check(from: number, versions: readonly number[], data: Uint8Array): void {
    let expected = 0;
    versions.forEach((version, i) => {
      const block = this.#blocks[from + i];
      const isAllowed = block !== undefined && (version > 0 || block.read.known !== undefined);
      if (!isAllowed) throw this.#unexpected(from + i);
      if (version > 0) expected += paddedBytes(block.bytes);
    });
    if (data.length === expected) return;
    throw new PserverError(
      "BAD_MESSAGE",
      `shard ${this.#shard}: piece from entry ${from} on: expected ${expected} bytes of values; received ${data.length}`,
      { shard: this.#shard, expected, received: data.length },
    );
  }

  #unexpected(entry: number): PserverError {
    return new PserverError(
      "BAD_MESSAGE",
      `shard ${this.#shard}: received entry ${entry} without values, or of a request of ${this.#blocks.length} entries`,
      { shard: this.#shard, entry },
    );
  }
}

/** The state of a block whose entry in a piece has this version, 0 for that of the known state. */
function stateOf(
  { read: { known } }: PendingBlock,
  version: number,
  generation: number,
): { version: number; generation: number } {
  return { version: version === 0 ? (known?.version ?? 0) : version, generation };
}
