import { type Dtype, type Encoding } from "../../protocol/dtypes.ts";
import type { BlockRows, PartIndex } from "../../protocol/messages/parts.ts";
import type { ShardMemory } from "../kernel/shard-memory.ts";
/** Bytes of encoded elements in one chunk: they fit into the first-level cache. */
export declare const ENCODED_CHUNK_BYTES: number;
/** Elements in a record. */
export interface Payload {
    /** Element type of the block, and of the elements in the scratch. */
    readonly dtype: Dtype;
    /** Encoding in the record; absent if the elements have the block's element type there. */
    readonly encoding?: Encoding | undefined;
    readonly bytes: Uint8Array;
}
/**
 * Copies the elements of a payload chunk by chunk, in order, to the start of the scratch and calls
 * `visit` with the number of elements of each chunk; it may overwrite the scratch.
 * `chunkBytes`: size of a chunk in the scratch, a multiple of 8; by default the whole scratch.
 */
export declare function eachChunk(memory: ShardMemory, payload: Payload, visit: (n: number) => void, chunkBytes?: number): void;
/**
 * Whether `test` is true for every chunk. It gets the address and number of the chunk's elements, still encoded, and
 * must not change them. Stops at the first false. A payload that fits into the scratch is one chunk and stays there,
 * so that {@link eachChunk} does not copy it again.
 */
export declare function everyEncodedChunk(memory: ShardMemory, payload: Payload, test: (pointer: number, n: number) => boolean): boolean;
/**
 * Walks over the elements of a part of a block, in the order of its tensor bytes, as contiguous ranges: {@link next}
 * moves to the next range, given by {@link start} and {@link count}.
 */
export declare class ElementRanges {
    #private;
    /** First element of the current range, counted within the block. */
    start: number;
    /** Elements of the current range. */
    count: number;
    private constructor();
    /** Begins before the first of all elements of a block, or of those of a part of it. */
    static of({ rows, rowElements }: BlockRows, part: PartIndex | undefined): ElementRanges;
    /**
     * Moves to the next range of at most `limit` elements; false at the end. A longer range is split.
     */
    next(limit: number): boolean;
}
//# sourceMappingURL=elements.d.ts.map