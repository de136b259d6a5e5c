import { ENCODINGS, infiniteFrom } from "../dtypes.js";
import { PserverError } from "../errors.js";
import { ENCODING_WASM_BASE64 } from "./wasm.js";
/** The functions of each encoding. */
const KERNELS = {
    bfloat16: { narrow: "narrowBf16", narrowSquares: "narrowSquaresBf16", widen: "widenBf16" },
    float16: { narrow: "narrowF16", narrowSquares: "narrowSquaresF16", widen: "widenF16" },
};
/** Elements converted at a time; few enough to stay in a near cache. */
export const CHUNK_ELEMENTS = 16_384;
const PAGE_BYTES = 65_536;
// The module's constants have the first page.
const FLOATS = PAGE_BYTES;
const HALVES = FLOATS + CHUNK_ELEMENTS * 4;
/** Memory of the kernels for a chunk of elements, and the operations on it. */
export class EncodingChunk {
    /** The float32 elements of the chunk, at most {@link CHUNK_ELEMENTS}. */
    floats;
    /** The encoded elements of the chunk. */
    halves;
    #kernels;
    constructor() {
        const pages = Math.ceil((HALVES + CHUNK_ELEMENTS * 2) / PAGE_BYTES);
        const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
        const module = new WebAssembly.Module(Buffer.from(ENCODING_WASM_BASE64, "base64"));
        const { exports } = new WebAssembly.Instance(module, { env: { memory } });
        this.#kernels = exports;
        this.floats = new Float32Array(memory.buffer, FLOATS, CHUNK_ELEMENTS);
        this.halves = new Uint8Array(memory.buffer, HALVES, CHUNK_ELEMENTS * 2);
    }
    /** Encodes the first `n` floats into the first `n` encoded elements. */
    narrow(encoding, n) {
        this.#kernels[KERNELS[encoding].narrow](HALVES, FLOATS, n);
    }
    /**
     * Encodes as {@link narrow} does, and returns the sum of the squares of what was encoded. Afterwards the
     * first `n` floats are either unchanged or rounded as they were encoded.
     */
    narrowSquares(encoding, n) {
        const sum = this.#kernels[KERNELS[encoding].narrowSquares](HALVES, FLOATS, n);
        if (Number.isFinite(sum))
            return sum;
        // The kernel reports only that an element is not finite, not whether it is NaN.
        this.widen(encoding, n);
        return this.sumOfSquares(n);
    }
    /** Decodes the first `n` encoded elements into the first `n` floats. */
    widen(encoding, n) {
        this.#kernels[KERNELS[encoding].widen](FLOATS, HALVES, n);
    }
    /**
     * Computes the sum of the squares of the first `n` floats, in float64; NaN or infinite exactly if one of
     * them is.
     */
    sumOfSquares(n) {
        return this.#kernels.squaresF32(FLOATS, n);
    }
    /**
     * Returns the largest of the first `n` floats' bits without their signs; those of a NaN are larger than any
     * number's.
     */
    largest(n) {
        return this.#kernels.largestF32(FLOATS, n);
    }
}
let ofThread;
/** Returns the chunk of this thread, made at its first use. Its contents are undefined between calls. */
export function encodingChunk() {
    ofThread ??= new EncodingChunk();
    return ofThread;
}
/** Up to this many elements a loop is faster than copying them for the kernel. */
const LOOP_ELEMENTS_MAX = 64;
/**
 * Encodes elements, each rounded to nearest, ties to even. Elements out of range become infinities; NaN
 * becomes the canonical quiet NaN, 0x7fc0 or 0x7e00. The two ranges must not overlap.
 * @param to little-endian, two bytes an element, at any alignment.
 * @throws BAD_LENGTH if `to` is not as long as the encoded elements are.
 */
export function encodeElements(encoding, from, to) {
    checkBytes(encoding, to, from.length);
    const { bytes } = ENCODINGS[encoding];
    const chunk = encodingChunk();
    eachChunk(from.length, (start, n) => {
        chunk.floats.set(from.subarray(start, start + n));
        chunk.narrow(encoding, n);
        to.set(chunk.halves.subarray(0, n * bytes), start * bytes);
    });
}
/**
 * Computes the L2 norm, in float64, of elements as encoded; NaN or infinite exactly if an encoded element is.
 */
export function normAsEncoded(encoding, elements) {
    const chunk = encodingChunk();
    let sum = 0;
    eachChunk(elements.length, (start, n) => {
        chunk.floats.set(elements.subarray(start, start + n));
        sum += chunk.narrowSquares(encoding, n);
    });
    return Math.sqrt(sum);
}
/**
 * Decodes elements to float32, exactly; a NaN keeps its sign and fraction. The two ranges must not overlap.
 * @param from little-endian, two bytes an element, at any alignment.
 * @throws BAD_LENGTH if `from` is not as long as the encoded elements are.
 */
export function decodeElements(encoding, from, to) {
    checkBytes(encoding, from, to.length);
    const { bytes } = ENCODINGS[encoding];
    const chunk = encodingChunk();
    eachChunk(to.length, (start, n) => {
        chunk.halves.set(from.subarray(start * bytes, (start + n) * bytes));
        chunk.widen(encoding, n);
        to.set(chunk.floats.subarray(0, n), start);
    });
}
/** Computes the L2 norm of float32 elements, in float64; NaN or infinite exactly if one of them is. */
export function float32Norm(elements) {
    const chunk = encodingChunk();
    let sum = 0;
    eachChunk(elements.length, (start, n) => {
        chunk.floats.set(elements.subarray(start, start + n));
        sum += chunk.sumOfSquares(n);
    });
    return Math.sqrt(sum);
}
/** Returns whether all elements are finite, as encoded if there is an `encoding`. */
export function staysFinite(elements, encoding) {
    const bound = infiniteFrom(encoding);
    if (elements.length <= LOOP_ELEMENTS_MAX)
        return elements.every((x) => Math.abs(x) < bound);
    const [boundBits = 0] = new Int32Array(Float32Array.of(bound).buffer);
    const chunk = encodingChunk();
    let largest = 0;
    eachChunk(elements.length, (start, n) => {
        chunk.floats.set(elements.subarray(start, start + n));
        largest = Math.max(largest, chunk.largest(n));
    });
    return largest < boundBits;
}
function eachChunk(elements, visit) {
    for (let start = 0; start < elements; start += CHUNK_ELEMENTS) {
        visit(start, Math.min(CHUNK_ELEMENTS, elements - start));
    }
}
function checkBytes(encoding, encoded, elements) {
    const expected = elements * ENCODINGS[encoding].bytes;
    if (encoded.length === expected)
        return;
    throw new PserverError("BAD_LENGTH", `${elements} ${encoding} elements take ${expected} bytes; received ${encoded.length}`, { expected, received: encoded.length });
}
//# sourceMappingURL=encoding.js.map