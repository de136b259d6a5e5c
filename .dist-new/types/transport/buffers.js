/**
 * A buffer that a socket is read into; it holds the received bytes that have not been consumed. Views of it
 * can be lent, and do not change until they are given back: reading continues behind them, or in another
 * memory when too little is free. Two memories alternate as long as views come back in time; further ones
 * exist only while views of them are lent.
 */
export class ReadBuffer {
    #capacityBytes;
    #freeBytesMin;
    #memory;
    /** Memory without lent views, to be used next. */
    #spare;
    #start = 0;
    #end = 0;
    /**
     * Makes an empty buffer. The capacity grows for longer data; {@link target} has at least `freeBytesMin`
     * bytes.
     */
    constructor(capacityBytes, freeBytesMin) {
        this.#capacityBytes = capacityBytes;
        this.#freeBytesMin = freeBytesMin;
        this.#memory = this.#newMemory(capacityBytes);
    }
    /** Received bytes that have not been consumed; valid until {@link pass}. */
    get pending() {
        return this.#memory.bytes.subarray(this.#start, this.#end);
    }
    /** Returns the memory to read the next bytes into. */
    target() {
        return this.#memory.bytes.subarray(this.#end);
    }
    /** Notes that this many bytes were read into {@link target}. */
    took(bytes) {
        this.#end += bytes;
    }
    /** Lends a view of the pending bytes between two positions, which must be given back. */
    lend(from, to) {
        return this.#memory.lend(this.#start + from, this.#start + to);
    }
    /** Consumes this many pending bytes, and makes space for the next ones. */
    pass(bytes) {
        this.#start += bytes;
        const freeBytes = this.#memory.bytes.length - this.#end;
        if (this.#memory.isLent && freeBytes >= this.#freeBytesMin)
            return;
        const { pending } = this;
        const memory = this.#memoryFor(pending.length + this.#freeBytesMin);
        if (memory !== this.#memory || this.#start > 0)
            pending.copy(memory.bytes);
        this.#memory = memory;
        this.#start = 0;
        this.#end = pending.length;
    }
    /** Returns memory of at least this many bytes without lent views. */
    #memoryFor(bytes) {
        const current = this.#memory;
        if (!current.isLent && current.bytes.length >= bytes)
            return current;
        // A line longer than the buffer must fit, too, such as the greeting of a huge cluster.
        if (bytes > this.#capacityBytes)
            return this.#newMemory(2 * bytes);
        const spare = this.#spare ?? this.#newMemory(this.#capacityBytes);
        this.#spare = undefined;
        return spare;
    }
    #newMemory(bytes) {
        return new Memory(bytes, (memory) => {
            if (memory !== this.#memory && bytes === this.#capacityBytes)
                this.#spare = memory;
        });
    }
}
/** A memory, and the number of its views that are lent. */
class Memory {
    bytes;
    #views = new Set();
    #onAllBack;
    constructor(bytes, onAllBack) {
        this.bytes = Buffer.allocUnsafeSlow(bytes);
        this.#onAllBack = onAllBack;
    }
    get isLent() {
        return this.#views.size > 0;
    }
    lend(start, end) {
        const view = this.bytes.subarray(start, end);
        this.#views.add(view);
        return { bytes: view, lender: this };
    }
    giveBack(view) {
        this.#views.delete(view);
        if (!this.isLent)
            this.#onAllBack(this);
    }
}
/** Smaller buffers are cheaper to allocate than to keep. */
const POOLED_BYTES_MIN = 16 * 1024;
/** Capacities between two powers of two: few, so that messages of nearly the same size share buffers. */
const STEPS = 16;
/** Bytes kept by default. */
const KEPT_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Keeps buffers of large messages for reuse: a new megabyte costs more in page faults and garbage
 * collection than the work done with it. When the pool is full, buffers of the sizes used least recently
 * are dropped, so that a trainer which goes from small parameters to large ones reuses large buffers again.
 */
export class BufferPool {
    /** By capacity, in the order of last use. */
    #free = new Map();
    #keptBytesMax;
    #keptBytes = 0;
    /** Makes an empty pool. Buffers beyond `keptBytesMax` bytes are left to the garbage collector. */
    constructor(keptBytesMax = KEPT_BYTES_MAX) {
        this.#keptBytesMax = keptBytesMax;
    }
    /** Returns a buffer of this many bytes, with undefined contents. */
    take(bytes) {
        if (bytes < POOLED_BYTES_MIN)
            return Buffer.allocUnsafeSlow(bytes);
        const capacity = capacityFor(bytes);
        const freeBuffer = this.#buffersOf(capacity).pop();
        if (freeBuffer === undefined)
            return Buffer.allocUnsafeSlow(capacity).subarray(0, bytes);
        this.#keptBytes -= capacity;
        return Buffer.from(freeBuffer, 0, bytes);
    }
    /** Takes back a buffer from {@link take}; the caller may not use it any more. */
    giveBack(buffer) {
        const memory = buffer.buffer;
        const capacity = memory.byteLength;
        if (!(memory instanceof ArrayBuffer) || capacity < POOLED_BYTES_MIN)
            return;
        if (capacity !== capacityFor(capacity))
            return;
        const free = this.#buffersOf(capacity);
        this.#evictOthers(capacity);
        if (this.#keptBytes + capacity > this.#keptBytesMax)
            return;
        this.#keptBytes += capacity;
        free.push(memory);
    }
    /** Returns the free buffers of a capacity, which becomes the one used last. */
    #buffersOf(capacity) {
        const free = this.#free.get(capacity) ?? [];
        this.#free.delete(capacity);
        this.#free.set(capacity, free);
        return free;
    }
    /** Drops buffers of other capacities, those used least recently first. */
    #evictOthers(capacity) {
        for (const [other, free] of this.#free) {
            if (other === capacity)
                return;
            while (free.length > 0 && this.#keptBytes + capacity > this.#keptBytesMax) {
                free.pop();
                this.#keptBytes -= other;
            }
            if (free.length > 0)
                return;
            this.#free.delete(other);
        }
    }
}
/** Returns the least capacity that holds this many bytes. It is less than a sixteenth larger. */
function capacityFor(bytes) {
    const step = 2 ** Math.floor(Math.log2(bytes)) / STEPS;
    return Math.ceil(bytes / step) * step;
}
//# sourceMappingURL=buffers.js.map