/** Bytes of the pieces that two streams are compared in: a multiple of every element's size. */
const PIECE_BYTES = 1024 * 1024;

/** A stream of bytes as pieces of one size, the last one smaller; each in a buffer of its own. */
export async function* alignedPieces(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  let piece = new Uint8Array(PIECE_BYTES);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + PIECE_BYTES - filled);
      piece.set(part, filled);
      filled += part.length;
      at += part.length;
      if (filled < PIECE_BYTES) continue;
      yield piece;
      piece = new Uint8Array(PIECE_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.slice(0, filled);
}
