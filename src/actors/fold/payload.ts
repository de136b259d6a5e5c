import { DTYPES, type Dtype } from "../../protocol/dtypes.ts";
import { ENCODINGS, type Encoding } from "../../protocol/encoding/encodings.ts";
import type { Kernels } from "../kernel/kernels.ts";
import type { ShardMemory } from "../memory/shard-memory.ts";

// The tensor bytes of a record are an unaligned view outside the shard's memory. They are copied chunk
// by chunk into its scratch, where they are aligned, in the processor's cache, and can be widened.

/** Bytes of encoded elements in one chunk: they fit into the first-level cache. */
export const ENCODED_CHUNK_BYTES = 16 * 1024;

/** Elements in a record. */
export interface Payload {
  /** Element type of the block, and of the elements in the scratch. */
  readonly dtype: Dtype;
  /** Encoding in the record; absent for that of the element type. */
  readonly encoding?: Encoding | undefined;
  readonly bytes: Uint8Array;
}

const WIDEN = { bfloat16: "widenBf16", float16: "widenF16" } as const satisfies Record<
  Encoding,
  keyof Kernels
>;

/**
 * Copies the elements of a payload chunk by chunk, in order, to the start of the scratch and calls
 * `visit` with the number of elements of each chunk; it may overwrite the scratch.
 * `chunkBytes`: size of a chunk in the scratch, a multiple of 8; by default the whole scratch.
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
  everyChunk(bytes, (chunkBytes / elementBytes) * wireBytes, (chunk) => {
    const n = chunk.length / wireBytes;
    if (encoding === undefined) {
      memory.stage(chunk);
    } else {
      // Encoded and widened elements end at the same address: so they can be widened in place.
      const encoded = memory.scratch + n * (elementBytes - wireBytes);
      memory.bytes(encoded, chunk.length).set(chunk);
      memory.kernels[WIDEN[encoding]](memory.scratch, encoded, n);
    }
    visit(n);
    return true;
  });
}

/**
 * Whether `test` is true for every chunk, given the address and number of its elements, which are still
 * encoded; it must not change them. Stops at the first false. A payload that fits into the scratch is
 * one chunk and stays there, so that {@link eachChunk} does not copy it again.
 */
export function everyEncodedChunk(
  memory: ShardMemory,
  payload: Payload,
  test: (pointer: number, n: number) => boolean,
): boolean {
  const { encoding, bytes } = payload;
  const staysWhole = encoding === undefined && bytes.length <= memory.scratchBytes;
  return everyChunk(bytes, staysWhole ? memory.scratchBytes : ENCODED_CHUNK_BYTES, (chunk) =>
    test(memory.stage(chunk), chunk.length / wireBytesOf(payload)),
  );
}

/** Bytes of one element in the payload. */
function wireBytesOf({ dtype, encoding }: Payload): number {
  return encoding === undefined ? DTYPES[dtype].bytes : ENCODINGS[encoding].bytes;
}

/** Bytes of a single chunk are passed on as the same object: {@link ShardMemory.stage} recognizes it. */
function everyChunk(
  bytes: Uint8Array,
  chunkBytes: number,
  test: (chunk: Uint8Array) => boolean,
): boolean {
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    const chunk = bytes.length <= chunkBytes ? bytes : bytes.subarray(at, at + chunkBytes);
    if (!test(chunk)) return false;
  }
  return true;
}
