import { DTYPES } from "../../protocol/dtypes.js";
import { ENCODED_CHUNK_BYTES, eachChunk } from "./elements.js";
const MEASURE = {
    float32: "measureF32",
    float64: "measureF64",
    int32: "measureI32",
    uint32: "measureU32",
    int64: "measureI64",
    uint64: "measureU64",
};
/** Numbers of a measurement: the sum of squares, and the five that the kernel `measured` returns. */
export const MEASURED = 6;
/** Measures the elements of a payload in one pass, in the scratch of the memory. */
export function measure(memory, payload) {
    const results = new Float64Array(MEASURED);
    const count = measureInto(memory, payload, results, 0);
    return statisticsAt(results, 0, count);
}
/**
 * Measures the elements of a payload as {@link measure} does, and writes the {@link MEASURED} results from a place of an
 * array on; returns the number of elements.
 */
export function measureInto(memory, payload, results, at) {
    const { kernels } = memory;
    const kernel = kernels[MEASURE[payload.dtype]];
    const { measured } = kernels;
    if (payload.encoding === undefined && payload.bytes.length <= memory.scratchBytes) {
        const n = payload.bytes.length / DTYPES[payload.dtype].bytes;
        results[at] = kernel(memory.stage(payload.bytes), n);
        for (let i = 0; i < 5; i++)
            results[at + 1 + i] = measured(i);
        return n;
    }
    let count = 0;
    let squares = 0;
    let sum = 0;
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    let zeros = 0;
    let nonFinite = 0;
    const visit = (n) => {
        count += n;
        squares += kernel(memory.scratch, n);
        sum += measured(0);
        min = Math.min(min, measured(1));
        max = Math.max(max, measured(2));
        zeros += measured(3);
        nonFinite += measured(4);
    };
    eachChunk(memory, payload, visit, ENCODED_CHUNK_BYTES);
    results.set([squares, sum, min, max, zeros, nonFinite], at);
    return count;
}
/**
 * Measures like {@link measure}, but returns undefined where that throws: the fold must do the same with and without
 * an observer. Whoever describes the record measures it again and reports the error.
 */
export function measureIfPossible(memory, payload) {
    try {
        return measure(memory, payload);
    }
    catch {
        return undefined;
    }
}
/** Returns the statistics of `count` elements from their {@link MEASURED} results, which begin at a place of an array. */
export function statisticsAt(results, at, count) {
    const [squares = 0, sum = 0, min = 0, max = 0, zeros = 0, nonFinite = 0] = results.subarray(at, at + MEASURED);
    const norm = Math.sqrt(squares);
    const finite = count - nonFinite;
    if (finite === 0) {
        return { norm, min: undefined, max: undefined, mean: undefined, zeros, nonFinite };
    }
    // Adding 0 turns −0 into 0, so that the result does not depend on which of the two came first.
    return { norm, min: min + 0, max: max + 0, mean: sum / finite + 0, zeros, nonFinite };
}
//# sourceMappingURL=statistics.js.map