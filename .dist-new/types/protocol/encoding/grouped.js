import { codeBytes, GROUP_ELEMENTS, groupCount, SCALE_BYTES, } from "../dtypes.js";
import { PserverError } from "../errors.js";
import { BAD_SCALE, CHUNK_ELEMENTS, encodingChunk } from "./chunk.js";
/** Returns scales and codes of a single entry, which follow each other: views. */
export function splitGroups(elements, bytes) {
    const scaleBytes = groupCount(elements) * SCALE_BYTES;
    return { scales: bytes.subarray(0, scaleBytes), codes: bytes.subarray(scaleBytes) };
}
/**
 * Encodes entries of these lengths, whose elements follow each other; rounds as assembly/int8.ts and assembly/e3m0.ts
 * say. A group with an element that is not finite gets the scale NaN, or infinity if none is NaN, and zeros.
 */
export function encodeGroups(encoding, counts, from, to) {
    eachPiece(encoding, counts, (chunk, piece) => {
        chunk.floats.set(from.subarray(piece.element, piece.element + piece.elements));
        chunk.narrowGroups(encoding, piece.entries);
        putPiece(chunk, piece, to);
    });
}
/**
 * Encodes entries as {@link encodeGroups} does, after it has added to each element what rounding has left out of it
 * before; and puts in the place of that what is left out now. The `errors` of a group that is not finite stay.
 */
export function encodeWithErrors(encoding, counts, from, errors, to) {
    eachPiece(encoding, counts, (chunk, piece) => {
        const { element, elements, entries } = piece;
        const own = errors.subarray(element, element + elements);
        chunk.floats.set(from.subarray(element, element + elements));
        chunk.errors.set(own);
        chunk.correct(elements);
        chunk.narrowGroups(encoding, entries);
        chunk.keepErrors(encoding, entries);
        own.set(chunk.errors.subarray(0, elements));
        putPiece(chunk, piece, to);
    });
}
/**
 * Decodes entries of these lengths to float32, exactly. Of a group whose scale is not finite all elements are that
 * infinity or NaN.
 * @throws BAD_VALUE for a scale with a sign, and for a code that is never written.
 */
export function decodeGroups(encoding, counts, from, to) {
    eachPiece(encoding, counts, (chunk, piece) => {
        const { element, elements, entries, scale, scales, code, codes } = piece;
        chunk.scales.set(from.scales.subarray(scale, scale + scales));
        chunk.codes.set(from.codes.subarray(code, code + codes));
        const wrong = chunk.widenGroups(encoding, entries);
        if (wrong !== 0)
            throw badGroup(encoding, wrong);
        to.set(chunk.floats.subarray(0, elements), element);
    });
}
/**
 * Computes the sum of the squares, in float64, of entries of these lengths as encoded, after adding `errors` if there
 * are some; NaN or infinite exactly if an encoded element is.
 */
export function squaresAsGroups(encoding, counts, from, errors) {
    let sum = 0;
    eachPiece(encoding, counts, (chunk, { element, elements, entries }) => {
        chunk.floats.set(from.subarray(element, element + elements));
        if (errors !== undefined) {
            chunk.errors.set(errors.subarray(element, element + elements));
            chunk.correct(elements);
        }
        chunk.narrowGroups(encoding, entries);
        chunk.widenGroups(encoding, entries);
        sum += chunk.sumOfSquares(elements);
    });
    return sum;
}
/** Calls `visit` for pieces of the entries that fit into a chunk, whose `counts` have the lengths of their parts. */
function eachPiece(encoding, counts, visit) {
    const chunk = encodingChunk();
    const piece = { entries: 0, element: 0, elements: 0, scale: 0, scales: 0, code: 0, codes: 0 };
    const finish = () => {
        if (piece.entries > 0)
            visit(chunk, piece);
        piece.element += piece.elements;
        piece.scale += piece.scales;
        piece.code += piece.codes;
        piece.entries = 0;
        piece.elements = 0;
        piece.scales = 0;
        piece.codes = 0;
    };
    for (let entry = 0; entry < counts.length; entry++) {
        for (let left = counts[entry]; left > 0;) {
            if (piece.elements > 0 && piece.elements + left > CHUNK_ELEMENTS)
                finish();
            // What an entry leaves for the next chunk begins with a group, because a chunk has whole groups.
            const n = Math.min(left, CHUNK_ELEMENTS);
            chunk.counts[piece.entries] = n;
            piece.entries += 1;
            piece.elements += n;
            piece.scales += groupCount(n) * SCALE_BYTES;
            piece.codes += codeBytes(encoding, n);
            left -= n;
        }
    }
    finish();
}
function putPiece(chunk, piece, to) {
    to.scales.set(chunk.scales.subarray(0, piece.scales), piece.scale);
    to.codes.set(chunk.codes.subarray(0, piece.codes), piece.code);
}
function badGroup(encoding, wrong) {
    if ((wrong & BAD_SCALE) !== 0) {
        const text = `${encoding}: expected scales without a sign, one for each ${GROUP_ELEMENTS} elements; received one with a sign`;
        return new PserverError("BAD_VALUE", text);
    }
    const text = {
        int8: "int8: expected codes from -127 to 127; received -128",
        e3m0: "e3m0: expected codes that are not 8, and 0 behind the last one; received another",
    }[encoding];
    return new PserverError("BAD_VALUE", text);
}
//# sourceMappingURL=grouped.js.map