import { PserverError } from "../../protocol/errors.js";
import { instantiateKernels } from "./kernels.js";
/**
 * Keeps the free ranges of an address space, in order of address, neighbours always merged.
 *
 * It handles numbers only and neither owns nor touches memory. Allocation is best fit, the lower address on a tie:
 * blocks come in few sizes, so a free range of exactly one block is best kept for a block.
 */
export class FreeRanges {
    #starts = [];
    #ends = [];
    /** Number of free ranges; at most 1 if the free bytes are contiguous. */
    get count() {
        return this.#starts.length;
    }
    /** Takes `bytes` from the smallest sufficient range; returns their start, or undefined without one. */
    take(bytes) {
        let best = -1;
        let bestBytes = Number.POSITIVE_INFINITY;
        for (let at = 0; at < this.#starts.length; at++) {
            const has = this.#end(at) - this.#start(at);
            if (has < bytes || has >= bestBytes)
                continue;
            best = at;
            bestBytes = has;
            if (has === bytes)
                break;
        }
        if (best < 0)
            return undefined;
        const start = this.#start(best);
        if (bestBytes === bytes)
            this.#remove(best);
        else
            this.#starts[best] = start + bytes;
        return start;
    }
    /**
     * Adds the range of `bytes` from `start` on and merges it with adjacent ranges.
     * @throws INTERNAL if a byte of it is free already; nothing has changed then.
     */
    give(start, bytes) {
        const end = start + bytes;
        const next = this.#firstFrom(start);
        const previousEnd = next > 0 ? this.#end(next - 1) : 0;
        const nextStart = next < this.#starts.length ? this.#start(next) : Number.POSITIVE_INFINITY;
        if (previousEnd > start || nextStart < end) {
            throw new PserverError("INTERNAL", `bytes ${start} to ${end} are free already, in part or all`, {
                start,
                end,
            });
        }
        const joinsPrevious = next > 0 && previousEnd === start;
        const joinsNext = nextStart === end;
        if (joinsPrevious && joinsNext) {
            this.#ends[next - 1] = this.#end(next);
            this.#remove(next);
        }
        else if (joinsPrevious) {
            this.#ends[next - 1] = end;
        }
        else if (joinsNext) {
            this.#starts[next] = start;
        }
        else {
            this.#starts.splice(next, 0, start);
            this.#ends.splice(next, 0, end);
        }
    }
    /**
     * Returns the bytes of the free range that ends at `end`; 0 without one. Growing the space there extends this
     * range.
     */
    bytesBefore(end) {
        const last = this.#starts.length - 1;
        return last >= 0 && this.#end(last) === end ? end - this.#start(last) : 0;
    }
    /** Returns the index of the first range that starts at or above `address`. */
    #firstFrom(address) {
        let low = 0;
        let high = this.#starts.length;
        while (low < high) {
            const middle = (low + high) >>> 1;
            if (this.#start(middle) < address)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }
    #start(at) {
        return this.#starts[at] ?? Number.NaN;
    }
    #end(at) {
        return this.#ends[at] ?? Number.NaN;
    }
    #remove(at) {
        this.#starts.splice(at, 1);
        this.#ends.splice(at, 1);
    }
}
const PAGE_BYTES = 64 * 1024;
const ADDRESS_BYTES = 4 * 1024 ** 3;
const ALIGN_BYTES = 16;
/** Bytes of the first page, which belongs to the constants of the kernels' module. */
const MODULE_BYTES = PAGE_BYTES;
const SCRATCH_BYTES = 256 * 1024;
/**
 * The memory grows by an eighth, at least by this much: less than doubling, so that it stays close to the
 * bytes in use, and more than required, because every growth detaches the old `ArrayBuffer` and makes V8
 * run a full garbage collection (3,500 growths of 1 MiB took 4 s). The addresses are reserved beforehand,
 * so growing moves nothing.
 */
const GROW_BYTES_MIN = 1024 * 1024;
const GROW_DIVISOR = 8;
/**
 * Reserves the addresses of a memory and instantiates the kernels in it.
 * @throws BAD_VALUE if `bytesMax` is out of its range.
 * @throws TOO_LARGE if the process has no addresses left for another memory.
 */
export function reserveMemory(options = {}) {
    const { bytesMax: given = ADDRESS_BYTES } = options;
    const initialBytes = MODULE_BYTES + SCRATCH_BYTES;
    if (!(given >= initialBytes && given <= ADDRESS_BYTES)) {
        throw new PserverError("BAD_VALUE", `expected bytesMax from ${initialBytes} to ${ADDRESS_BYTES}; received ${given}`, { expected: [initialBytes, ADDRESS_BYTES], received: given });
    }
    const bytesMax = roundDown(given, PAGE_BYTES);
    let memory;
    try {
        memory = new WebAssembly.Memory({
            initial: initialBytes / PAGE_BYTES,
            maximum: bytesMax / PAGE_BYTES,
        });
    }
    catch (cause) {
        throw new PserverError("TOO_LARGE", "no addresses left for another WebAssembly memory", {}, { cause });
    }
    return { memory, kernels: instantiateKernels(memory), bytesMax };
}
/**
 * The one WebAssembly memory of a shard: it holds the values and slots of all blocks, and the
 * kernels work in it.
 *
 * A pointer is a byte address from 0 to 4 GiB. Above 2 GiB an `i32` of WebAssembly is negative; every
 * method takes that form too. The memory never shrinks; freed bytes are allocated again.
 */
export class ShardMemory {
    /** The kernels that work in this memory. */
    kernels;
    /** Size of the scratch: 256 KiB. */
    scratchBytes = SCRATCH_BYTES;
    #memory;
    #bytesMax;
    #free = new FreeRanges();
    #allocated = new Map();
    #allocatedBytes = 0;
    /** The array that {@link stage} copied last; undefined if the scratch was used since. */
    #staged;
    constructor({ memory, kernels, bytesMax }) {
        this.#memory = memory;
        this.kernels = kernels;
        this.#bytesMax = bytesMax;
    }
    /** Creates an empty memory with its kernels; throws like {@link reserveMemory}. */
    static create(options = {}) {
        return new ShardMemory(reserveMemory(options));
    }
    /** Pointer to {@link scratchBytes} of scratch, valid until its next use; never freed. */
    get scratch() {
        this.#staged = undefined;
        return MODULE_BYTES;
    }
    /** Bytes allocated and not freed, each allocation rounded up to 16. */
    get allocatedBytes() {
        return this.#allocatedBytes;
    }
    /** Bytes of the WebAssembly memory; those never written to use no physical memory. */
    get memoryBytes() {
        return this.#memory.buffer.byteLength;
    }
    /**
     * Allocates `bytes` bytes, aligned to 16, and returns the pointer to them. They belong to the caller until freed;
     * their contents are undefined. 0 bytes give pointer 0, which no other allocation has. Earlier views become
     * invalid.
     * @throws BAD_VALUE if `bytes` is negative or not an integer.
     * @throws TOO_LARGE if the memory cannot grow that far; nothing changes then.
     */
    allocate(bytes) {
        if (!Number.isSafeInteger(bytes) || bytes < 0) {
            throw new PserverError("BAD_VALUE", `expected a number of bytes; received ${bytes}`, {
                received: bytes,
            });
        }
        if (bytes === 0)
            return 0;
        const rounded = roundUp(bytes, ALIGN_BYTES);
        const pointer = this.#free.take(rounded) ?? this.#takeGrown(rounded);
        this.#allocated.set(pointer, rounded);
        this.#allocatedBytes += rounded;
        return pointer;
    }
    /**
     * Frees what {@link allocate} returned for the same `bytes`.
     * @throws INTERNAL if `pointer` is not allocated (freed before, say) or `bytes` is another size.
     */
    free(pointer, bytes) {
        const start = pointer >>> 0;
        if (start === 0 && bytes === 0)
            return;
        const rounded = roundUp(bytes, ALIGN_BYTES);
        const allocated = this.#allocated.get(start);
        if (allocated !== rounded) {
            throw new PserverError("INTERNAL", allocated === undefined
                ? `expected an allocated pointer to free; received ${start}`
                : `expected ${allocated} bytes to free at ${start}; received ${bytes}`, { pointer: start, expected: allocated, received: bytes });
        }
        this.#free.give(start, allocated);
        this.#allocated.delete(start);
        this.#allocatedBytes -= allocated;
    }
    /**
     * Returns a live view of `length` bytes from `pointer` on, not a copy. It is **invalid after the next {@link
     * allocate}**: growing detaches it, and it then reads as empty. Use it at once.
     * @throws INTERNAL if the range leaves the memory.
     */
    bytes(pointer, length) {
        const start = pointer >>> 0;
        if (!Number.isSafeInteger(length) || length < 0 || start + length > this.memoryBytes) {
            throw new PserverError("INTERNAL", `expected a range within ${this.memoryBytes} bytes; received ${length} from ${start} on`, { expected: this.memoryBytes, pointer: start, received: length });
        }
        return new Uint8Array(this.#memory.buffer, start, length);
    }
    /**
     * Copies `bytes`, at most {@link scratchBytes} of them, to the start of the scratch and returns the pointer.
     * Consecutive calls with the same array copy it once, so it must not change in between.
     */
    stage(bytes) {
        if (this.#staged !== bytes) {
            this.bytes(MODULE_BYTES, bytes.length).set(bytes);
            this.#staged = bytes;
        }
        return MODULE_BYTES;
    }
    /** Drops the reference to the array that was staged last, which keeps it alive. */
    unstage() {
        this.#staged = undefined;
    }
    /** Grows the memory until `bytes` are free at its end, and allocates them. */
    #takeGrown(bytes) {
        const end = this.memoryBytes;
        const lacking = bytes - this.#free.bytesBefore(end);
        const growableBytes = this.#bytesMax - end;
        if (lacking > growableBytes)
            throw this.#exhausted(bytes);
        const wanted = Math.max(lacking, GROW_BYTES_MIN, end / GROW_DIVISOR);
        const growBytes = Math.min(roundUp(wanted, PAGE_BYTES), growableBytes);
        try {
            this.#memory.grow(growBytes / PAGE_BYTES);
        }
        catch (cause) {
            throw this.#exhausted(bytes, cause);
        }
        this.#free.give(end, growBytes);
        const pointer = this.#free.take(bytes);
        if (pointer === undefined) {
            throw new PserverError("INTERNAL", `memory grew by ${growBytes} bytes, but ${bytes} bytes are not free`);
        }
        return pointer;
    }
    #exhausted(bytes, cause) {
        return new PserverError("TOO_LARGE", `the shard's memory may have ${this.#bytesMax} bytes, of which ${this.#allocatedBytes} are ` +
            `allocated; ${bytes} more do not fit`, { expected: this.#bytesMax, allocated: this.#allocatedBytes, received: bytes }, { cause });
    }
}
function roundUp(bytes, step) {
    return Math.ceil(bytes / step) * step;
}
function roundDown(bytes, step) {
    return Math.floor(bytes / step) * step;
}
//# sourceMappingURL=shard-memory.js.map