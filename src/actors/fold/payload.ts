import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { ENCODINGS, type Encoding } from "../../protocol/encoding/encodings.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";

// The tensor bytes of a record are an unaligned view outside the shard's memory. They pass through
// its scratch in chunks that stay in the processor's cache, and are widened there.

/** Elements as they are written that are worked on at a time: they stay in the nearest cache. */
export const ENCODED_CHUNK_BYTES = 16 * 1024;

/** Elements as a record carries them. */
export interface Payload {
  /** The element type of the block, and of the elements once they are in the scratch. */
  readonly dtype: Dtype;
  /** How they are written, if not as the type says. */
  readonly encoding?: Encoding | undefined;
  readonly bytes: Uint8Array;
}

const WIDEN = { bfloat16: "widenBf16", float16: "widenF16" } as const satisfies Record<
  Encoding,
  keyof Kernels
>;

/**
 * Puts the elements of a payload chunk by chunk, in order, where the scratch begins, and calls `visit`
 * with the number of each chunk's elements. It may change what is in the scratch.
 * `chunkBytes`: of the elements in the scratch, a multiple of 8, the whole scratch by default.
 */
export function eachChunk(
  memory: ShardMemory,
  payload: Payload,
  visit: (n: number) => void,
  chunkBytes: number = memory.scratchBytes,
): void {
  const { dtype, encoding, bytes } = payload;
  const elementBytes = DTYPES[dtype].bytes;
  const wireBytes = wireBytesOf(payload);
  everyPiece(bytes, (chunkBytes / elementBytes) * wireBytes, (chunk) => {
    const n = chunk.length / wireBytes;
    if (encoding === undefined) {
      memory.stage(chunk);
    } else {
      // Where encoded elements end, the widened ones end too: so they may be widened in place.
      const encoded = memory.scratch + n * (elementBytes - wireBytes);
      memory.bytes(encoded, chunk.length).set(chunk);
      memory.kernels[WIDEN[encoding]](memory.scratch, encoded, n);
    }
    visit(n);
    return true;
  });
}

/**
 * Whether `test` is true for every chunk, of which it gets the pointer and the number of elements, as
 * they are written; it must not change them. The first false ends it. What fits into the scratch is one
 * chunk and stays there, where {@link eachChunk} finds it if it comes next.
 */
export function everyEncodedChunk(
  memory: ShardMemory,
  payload: Payload,
  test: (pointer: number, n: number) => boolean,
): boolean {
  const { encoding, bytes } = payload;
  const staysWhole = encoding === undefined && bytes.length <= memory.scratchBytes;
  return everyPiece(bytes, staysWhole ? memory.scratchBytes : ENCODED_CHUNK_BYTES, (chunk) =>
    test(memory.stage(chunk), chunk.length / wireBytesOf(payload)),
  );
}

/** Bytes of an element as the payload has it. */
function wireBytesOf({ dtype, encoding }: Payload): number {
  return encoding === undefined ? DTYPES[dtype].bytes : ENCODINGS[encoding].bytes;
}

/** What is no longer than a piece is given as it is: {@link ShardMemory.stage} knows it again. */
function everyPiece(
  bytes: Uint8Array,
  pieceBytes: number,
  test: (piece: Uint8Array) => boolean,
): boolean {
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const piece = bytes.length <= pieceBytes ? bytes : bytes.subarray(at, at + pieceBytes);
    if (!test(piece)) return false;
  }
  return true;
}
