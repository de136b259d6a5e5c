/** Returns the text of a file; undefined if it cannot be read. */
type ReadText = (path: string) => string | undefined;
/**
 * Returns the bytes that this process may still use before the system kills it: the least of what the machine has
 * available and what each control group of the process leaves of its limit. File caches in a control group that were
 * not used lately count as free, because the kernel reclaims them first.
 */
export declare function freeMemoryBytes(read?: ReadText): number;
/** Options of {@link HostMemory}. */
interface HostMemoryOptions {
    readonly shards: number;
    /** The most that the host may use for values; limited only by the system by default. */
    readonly limitBytes?: number | undefined;
    /** The buffer of the `HostMemory` on another thread of the host. */
    readonly buffer?: SharedArrayBuffer;
    /** Returns the bytes that the system has free. */
    readonly freeBytes?: () => number;
}
/** Returns the memory that a shard needs for so many bytes of values. */
export declare function neededBytes(valueBytes: number): number;
/**
 * Counts the memory of a host's shards for all its threads, so that no shard is taken over that does not fit: the
 * system would kill the host, and then the next host that takes the shard over.
 */
export declare class HostMemory {
    #private;
    readonly buffer: SharedArrayBuffer;
    private constructor();
    /** Counts in the buffer of the options, or in a new one. */
    static open(options: HostMemoryOptions): HostMemory;
    /** Bytes available to further shards or blocks. */
    get freeBytes(): number;
    /**
     * Reserves memory for a shard with so many bytes of values, of which it has `heldBytes` already, until
     * {@link release}.
     * @throws NO_MEMORY if the host has less; nothing is reserved then.
     */
    reserve(shard: number, valueBytes: number, heldBytes?: number): void;
    /** Notes how much memory a shard has now: the system has provided what was reserved. */
    holds(shard: number, memoryBytes: number): void;
    /** Notes that a shard has no memory any more. */
    release(shard: number): void;
}
export {};
//# sourceMappingURL=host-memory.d.ts.map