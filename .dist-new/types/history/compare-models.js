import { mergeSparse } from "../model-files/index.js";
import { DTYPES } from "../protocol/dtypes.js";
import { sameShape } from "../protocol/tensor.js";
const ARRAYS = {
    int32: Int32Array,
    uint32: Uint32Array,
    int64: BigInt64Array,
    uint64: BigUint64Array,
    float32: Float32Array,
    float64: Float64Array,
};
/**
 * Returns a view, not a copy, of elements in little-endian bytes, which must begin where an element of the type may
 * begin.
 */
export function viewElements(dtype, bytes) {
    const { buffer, byteOffset, length } = bytes;
    return new ARRAYS[dtype](buffer, byteOffset, length / DTYPES[dtype].bytes);
}
/** Bytes of the chunks in which two streams are compared: a multiple of every element's size. */
const CHUNK_BYTES = 1024 * 1024;
/** Yields a stream of bytes as chunks of one size, the last one smaller; each in a buffer of its own. */
async function* alignedChunks(chunks) {
    let aligned = new Uint8Array(CHUNK_BYTES);
    let filled = 0;
    for await (const chunk of chunks) {
        for (let at = 0; at < chunk.length;) {
            const part = chunk.subarray(at, at + CHUNK_BYTES - filled);
            aligned.set(part, filled);
            filled += part.length;
            at += part.length;
            if (filled < CHUNK_BYTES)
                continue;
            yield aligned;
            aligned = new Uint8Array(CHUNK_BYTES);
            filled = 0;
        }
    }
    if (filled > 0)
        yield aligned.slice(0, filled);
}
/** Compares the elements of two tensors of one type and size, chunk by chunk, in order. */
class DifferenceTally {
    #show;
    #elements = 0;
    #differing = 0;
    #largest = 0;
    #sum = 0;
    #squaresA = 0;
    #squaresB = 0;
    #first;
    /** `show`: prints an element. */
    constructor(show) {
        this.#show = show;
    }
    /** Compares the next elements of both, equally many. */
    take(a, b) {
        for (let i = 0; i < a.length; i++)
            this.#element(a, b, i);
        this.#elements += a.length;
    }
    /** The difference of all elements compared so far. */
    get result() {
        return {
            differing: this.#differing,
            elements: this.#elements,
            largest: this.#largest,
            mean: this.#elements === 0 ? 0 : this.#sum / this.#elements,
            normA: Math.sqrt(this.#squaresA),
            normB: Math.sqrt(this.#squaresB),
            first: this.#first,
        };
    }
    #element(a, b, i) {
        const [left, right] = [a[i] ?? 0, b[i] ?? 0];
        const [x, y] = [Number(left), Number(right)];
        this.#squaresA += x * x;
        this.#squaresB += y * y;
        if (Object.is(left, right))
            return;
        this.#differing += 1;
        // Integers of 64 bits are subtracted as such: as floats, large ones would lose their difference.
        const change = Math.abs(typeof left === "bigint" && typeof right === "bigint" ? Number(right - left) : y - x);
        this.#largest = Number.isNaN(change) ? change : Math.max(this.#largest, change);
        this.#sum += change;
        this.#first ??= {
            element: this.#elements + i,
            a: this.#show(a, i),
            b: this.#show(b, i),
        };
    }
}
/** Returns the indices of an element of a tensor, by its place in C order. */
export function indicesOf(element, shape) {
    const indices = [];
    let rest = element;
    for (const size of [...shape].reverse()) {
        indices.unshift(rest % size);
        rest = Math.floor(rest / size);
    }
    return indices;
}
/**
 * Compares two models parameter by parameter, by name; holds a few MiB of them at a time.
 * @throws errors of reading them; the reason of the signal.
 */
export async function* compareModels(a, b, options) {
    const [byNameA, byNameB] = [byName(a), byName(b)];
    let doneBytes = 0;
    const onProgress = (bytes) => options.onProgress?.(doneBytes + bytes);
    for (const name of [...new Set([...byNameA.keys(), ...byNameB.keys()])].sort()) {
        const [left, right] = [byNameA.get(name), byNameB.get(name)];
        if (left === undefined || right === undefined) {
            const header = (left ?? right)?.header;
            const kind = left === undefined ? "only-b" : "only-a";
            if (header !== undefined)
                yield { kind, name, header };
        }
        else if (!isSameForm(left.header, right.header)) {
            yield { kind: "other-form", name, a: left.header, b: right.header };
        }
        else {
            const difference = await compareTensors(left, right, { ...options, onProgress });
            doneBytes += difference.elements * DTYPES[left.header.dtype].bytes;
            yield { kind: "compared", name, header: left.header, difference };
        }
    }
}
/** Whether two models agree in this parameter. */
export function isEqual(found) {
    return found.kind === "compared" && found.difference.differing === 0;
}
/** Joins tensors as a save does: those of sparse shards become one. */
export function joinSparse(tensors) {
    const byHeader = new Map(tensors.map((tensor) => [tensor.header, tensor]));
    return mergeSparse(tensors.map(({ header }) => header)).map(({ header, parts }) => ({
        header,
        chunks: async function* () {
            for (const part of parts)
                yield* byHeader.get(part)?.chunks() ?? [];
        },
    }));
}
async function compareTensors(a, b, { show, signal, onProgress }) {
    const { dtype } = a.header;
    const tally = new DifferenceTally(show);
    const others = alignedChunks(b.chunks());
    let doneBytes = 0;
    for await (const chunk of alignedChunks(a.chunks())) {
        signal.throwIfAborted();
        const { value: other = new Uint8Array(0) } = await others.next();
        tally.take(viewElements(dtype, chunk), viewElements(dtype, other));
        doneBytes += chunk.length;
        onProgress?.(doneBytes);
    }
    return tally.result;
}
function byName(tensors) {
    return new Map(tensors.map((tensor) => [tensor.header.name, tensor]));
}
function isSameForm(a, b) {
    return a.dtype === b.dtype && sameShape(a.shape, b.shape);
}
//# sourceMappingURL=compare-models.js.map