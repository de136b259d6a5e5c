import { type Kernels } from "./kernels.ts";
/**
 * Keeps the free ranges of an address space, in order of address, neighbours always merged.
 *
 * It handles numbers only and neither owns nor touches memory. Allocation is best fit, the lower address on a tie:
 * blocks come in few sizes, so a free range of exactly one block is best kept for a block.
 */
export declare class FreeRanges {
    #private;
    /** Number of free ranges; at most 1 if the free bytes are contiguous. */
    get count(): number;
    /** Takes `bytes` from the smallest sufficient range; returns their start, or undefined without one. */
    take(bytes: number): number | undefined;
    /**
     * Adds the range of `bytes` from `start` on and merges it with adjacent ranges.
     * @throws INTERNAL if a byte of it is free already; nothing has changed then.
     */
    give(start: number, bytes: number): void;
    /**
     * Returns the bytes of the free range that ends at `end`; 0 without one. Growing the space there extends this
     * range.
     */
    bytesBefore(end: number): number;
}
/** Options of {@link ShardMemory}. */
export interface ShardMemoryOptions {
    /**
     * The most bytes the WebAssembly memory may have, from 320 KiB, which it needs itself, to 4 GiB;
     * rounded down to pages of 64 KiB. Default 4 GiB.
     */
    readonly bytesMax?: number;
}
/** The reserved memory of a {@link ShardMemory}, and the kernels bound to it. */
export interface MemoryParts {
    readonly memory: WebAssembly.Memory;
    readonly kernels: Kernels;
    readonly bytesMax: number;
}
/**
 * Reserves the addresses of a memory and instantiates the kernels in it.
 * @throws BAD_VALUE if `bytesMax` is out of its range.
 * @throws TOO_LARGE if the process has no addresses left for another memory.
 */
export declare function reserveMemory(options?: ShardMemoryOptions): MemoryParts;
/**
 * The one WebAssembly memory of a shard: it holds the values and slots of all blocks, and the
 * kernels work in it.
 *
 * A pointer is a byte address from 0 to 4 GiB. Above 2 GiB an `i32` of WebAssembly is negative; every
 * method takes that form too. The memory never shrinks; freed bytes are allocated again.
 */
export declare class ShardMemory {
    #private;
    /** The kernels that work in this memory. */
    readonly kernels: Kernels;
    /** Size of the scratch: 256 KiB. */
    readonly scratchBytes: number;
    constructor({ memory, kernels, bytesMax }: MemoryParts);
    /** Creates an empty memory with its kernels; throws like {@link reserveMemory}. */
    static create(options?: ShardMemoryOptions): ShardMemory;
    /** Pointer to {@link scratchBytes} of scratch, valid until its next use; never freed. */
    get scratch(): number;
    /** Bytes allocated and not freed, each allocation rounded up to 16. */
    get allocatedBytes(): number;
    /** Bytes of the WebAssembly memory; those never written to use no physical memory. */
    get memoryBytes(): number;
    /**
     * Allocates `bytes` bytes, aligned to 16, and returns the pointer to them. They belong to the caller until freed;
     * their contents are undefined. 0 bytes give pointer 0, which no other allocation has. Earlier views become
     * invalid.
     * @throws BAD_VALUE if `bytes` is negative or not an integer.
     * @throws TOO_LARGE if the memory cannot grow that far; nothing changes then.
     */
    allocate(bytes: number): number;
    /**
     * Frees what {@link allocate} returned for the same `bytes`.
     * @throws INTERNAL if `pointer` is not allocated (freed before, say) or `bytes` is another size.
     */
    free(pointer: number, bytes: number): void;
    /**
     * Returns a live view of `length` bytes from `pointer` on, not a copy. It is **invalid after the next {@link
     * allocate}**: growing detaches it, and it then reads as empty. Use it at once.
     * @throws INTERNAL if the range leaves the memory.
     */
    bytes(pointer: number, length: number): Uint8Array<ArrayBuffer>;
    /**
     * Copies `bytes`, at most {@link scratchBytes} of them, to the start of the scratch and returns the pointer.
     * Consecutive calls with the same array copy it once, so it must not change in between.
     */
    stage(bytes: Uint8Array): number;
    /** Drops the reference to the array that was staged last, which keeps it alive. */
    unstage(): void;
}
//# sourceMappingURL=shard-memory.d.ts.map