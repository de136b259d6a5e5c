import { addToDigest, HEAD_BYTES, PREAMBLE_BYTES } from "./container-format.ts";
import type { Frame, Totals } from "./frames.ts";

/** Adds up the frames of a file as they are written or read. */
export class RunningTotals {
  #totals: Totals = { frames: 0, records: 0, pieces: 0, bytes: PREAMBLE_BYTES, digest: 0 };

  /** The sums so far. */
  get totals(): Totals {
    return this.#totals;
  }

  /** Adds a frame with its head and its message. */
  add({ kind }: Frame, head: Uint8Array, message: Uint8Array): void {
    const { frames, records, pieces, bytes, digest } = this.#totals;
    this.#totals = {
      frames: frames + 1,
      records: records + (kind === "record" ? 1 : 0),
      pieces: pieces + (kind === "piece" ? 1 : 0),
      bytes: bytes + HEAD_BYTES + message.length,
      digest: addToDigest(digest, head, message),
    };
  }
}
