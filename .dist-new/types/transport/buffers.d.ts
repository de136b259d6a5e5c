/**
 * A buffer that a socket is read into; it holds the received bytes that have not been consumed. Views of it
 * can be lent, and do not change until they are given back: reading continues behind them, or in another
 * memory when too little is free. Two memories alternate as long as views come back in time; further ones
 * exist only while views of them are lent.
 */
export declare class ReadBuffer {
    #private;
    /**
     * Makes an empty buffer. The capacity grows for longer data; {@link target} has at least `freeBytesMin`
     * bytes.
     */
    constructor(capacityBytes: number, freeBytesMin: number);
    /** Received bytes that have not been consumed; valid until {@link pass}. */
    get pending(): Buffer;
    /** Returns the memory to read the next bytes into. */
    target(): Buffer;
    /** Notes that this many bytes were read into {@link target}. */
    took(bytes: number): void;
    /** Lends a view of the pending bytes between two positions, which must be given back. */
    lend(from: number, to: number): Chunk;
    /** Consumes this many pending bytes, and makes space for the next ones. */
    pass(bytes: number): void;
}
/**
 * Keeps buffers of large messages for reuse: a new megabyte costs more in page faults and garbage
 * collection than the work done with it. When the pool is full, buffers of the sizes used least recently
 * are dropped, so that a trainer which goes from small parameters to large ones reuses large buffers again.
 */
export declare class BufferPool {
    #private;
    /** Makes an empty pool. Buffers beyond `keptBytesMax` bytes are left to the garbage collector. */
    constructor(keptBytesMax?: number);
    /** Returns a buffer of this many bytes, with undefined contents. */
    take(bytes: number): Buffer;
    /** Takes back a buffer from {@link take}; the caller may not use it any more. */
    giveBack(buffer: Uint8Array): void;
}
/** Owner of memory that is lent. */
export interface Lender {
    /** Takes bytes back, once; they must not be used afterwards. */
    giveBack(bytes: Uint8Array): void;
}
/** Bytes read from a broker that begin and end between messages. */
export interface Chunk {
    readonly bytes: Buffer;
    /** Owner to give the bytes back to after handling; undefined if they may be kept. */
    readonly lender: Lender | undefined;
}
//# sourceMappingURL=buffers.d.ts.map