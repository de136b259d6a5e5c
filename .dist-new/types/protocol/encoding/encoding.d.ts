import { type Encoding } from "../dtypes.ts";
/** Elements converted at a time; few enough to stay in a near cache. */
export declare const CHUNK_ELEMENTS = 16384;
/** Memory of the kernels for a chunk of elements, and the operations on it. */
export declare class EncodingChunk {
    #private;
    /** The float32 elements of the chunk, at most {@link CHUNK_ELEMENTS}. */
    readonly floats: Float32Array;
    /** The encoded elements of the chunk. */
    readonly halves: Uint8Array;
    constructor();
    /** Encodes the first `n` floats into the first `n` encoded elements. */
    narrow(encoding: Encoding, n: number): void;
    /**
     * Encodes as {@link narrow} does, and returns the sum of the squares of what was encoded. Afterwards the
     * first `n` floats are either unchanged or rounded as they were encoded.
     */
    narrowSquares(encoding: Encoding, n: number): number;
    /** Decodes the first `n` encoded elements into the first `n` floats. */
    widen(encoding: Encoding, n: number): void;
    /**
     * Computes the sum of the squares of the first `n` floats, in float64; NaN or infinite exactly if one of
     * them is.
     */
    sumOfSquares(n: number): number;
    /**
     * Returns the largest of the first `n` floats' bits without their signs; those of a NaN are larger than any
     * number's.
     */
    largest(n: number): number;
}
/** Returns the chunk of this thread, made at its first use. Its contents are undefined between calls. */
export declare function encodingChunk(): EncodingChunk;
/**
 * Encodes elements, each rounded to nearest, ties to even. Elements out of range become infinities; NaN
 * becomes the canonical quiet NaN, 0x7fc0 or 0x7e00. The two ranges must not overlap.
 * @param to little-endian, two bytes an element, at any alignment.
 * @throws BAD_LENGTH if `to` is not as long as the encoded elements are.
 */
export declare function encodeElements(encoding: Encoding, from: Float32Array, to: Uint8Array): void;
/**
 * Computes the L2 norm, in float64, of elements as encoded; NaN or infinite exactly if an encoded element is.
 */
export declare function normAsEncoded(encoding: Encoding, elements: Float32Array): number;
/**
 * Decodes elements to float32, exactly; a NaN keeps its sign and fraction. The two ranges must not overlap.
 * @param from little-endian, two bytes an element, at any alignment.
 * @throws BAD_LENGTH if `from` is not as long as the encoded elements are.
 */
export declare function decodeElements(encoding: Encoding, from: Uint8Array, to: Float32Array): void;
/** Computes the L2 norm of float32 elements, in float64; NaN or infinite exactly if one of them is. */
export declare function float32Norm(elements: Float32Array): number;
/** Returns whether all elements are finite, as encoded if there is an `encoding`. */
export declare function staysFinite(elements: Float32Array, encoding?: Encoding): boolean;
//# sourceMappingURL=encoding.d.ts.map