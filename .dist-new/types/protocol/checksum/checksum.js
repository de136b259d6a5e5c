import { crc32 } from "node:zlib";
import { CHECKSUM_WASM_BASE64 } from "./wasm.js";
/** Length from which it is faster to let the kernel shorten the bytes first. */
export const LONG_BYTES = 16 * 1024;
/** Bytes shortened at a time; few enough to stay in a near cache. */
const CHUNK_BYTES = 32 * 1024;
const VECTOR_BYTES = 16;
const PAGE_BYTES = 65_536;
/** Memory of the kernel, through which long byte strings are passed a chunk at a time. */
class LongChecksum {
    #kernels;
    #bytes;
    #largest;
    #reach;
    /** Offset of a chunk in the memory; the end of the preceding chunk lies before it. */
    #chunk;
    constructor() {
        const pages = 2;
        const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
        const module = new WebAssembly.Module(Buffer.from(CHECKSUM_WASM_BASE64, "base64"));
        const { exports } = new WebAssembly.Instance(module, { env: { memory } });
        this.#kernels = exports;
        this.#bytes = Buffer.from(memory.buffer);
        this.#largest = new Uint16Array(memory.buffer, this.#kernels.LARGEST.value, VECTOR_BYTES / 2);
        this.#reach = this.#kernels.REACH.value;
        // The module's constants have the first page.
        this.#chunk = PAGE_BYTES + this.#reach;
    }
    /**
     * Computes the CRC-32 of at least {@link LONG_BYTES} bytes; `previous` continues an earlier one. Also
     * surveys the bytes in vectors of 16 that end where the bytes end: all but the first few, which are less
     * than a vector.
     */
    of(bytes, previous) {
        const memory = this.#bytes;
        const [start, reach] = [this.#chunk, this.#reach];
        const firstBytes = surveyedFrom(bytes);
        const first = firstBytes === 0 ? previous : crc32(bytes.subarray(0, firstBytes), previous);
        memory.fill(0, start - reach, start);
        let at = firstBytes;
        let n = this.#next(bytes.length - at);
        memory.set(bytes.subarray(at, at + n), start);
        // zlib's register holds the complement of the checksum.
        this.#kernels.begin(start, ~first);
        let done = VECTOR_BYTES;
        while (at + n < bytes.length) {
            this.#kernels.replace(start + done, (n - done) / VECTOR_BYTES);
            done = 0;
            memory.copyWithin(start - reach, start + n - reach, start + n);
            at += n;
            n = this.#next(bytes.length - at);
            memory.set(bytes.subarray(at, at + n), start);
        }
        const end = start + n;
        this.#kernels.survey(end - reach, reach / VECTOR_BYTES);
        this.#kernels.replace(start + done, (n - reach - done) / VECTOR_BYTES);
        this.#kernels.settle(end - reach);
        return crc32(memory.subarray(end - reach, end), 0xffffffff);
    }
    /**
     * For each 16-bit lane of a vector, the largest value without its highest bit that the last call of {@link
     * of} found.
     */
    get largest() {
        return this.#largest;
    }
    /**
     * Returns the length of the next chunk. What it leaves is nothing, or at least as long as a last chunk must
     * be.
     */
    #next(left) {
        return left <= CHUNK_BYTES ? left : Math.min(CHUNK_BYTES, left - this.#reach);
    }
}
let ofThread;
let surveyed;
/**
 * Computes the CRC-32 (IEEE) of at least {@link LONG_BYTES} bytes; `previous` continues an earlier one. Takes
 * a half to a third of the time of zlib in Node.js, which does not multiply without carries.
 */
export function longChecksum(bytes, previous) {
    ofThread ??= new LongChecksum();
    const crc = ofThread.of(bytes, previous);
    const { buffer, byteOffset, length } = bytes;
    const start = byteOffset + surveyedFrom(bytes);
    surveyed = { buffer, start, end: byteOffset + length, largest: ofThread.largest };
    return crc;
}
/**
 * Returns what the pass over the bytes of this thread's last checksum found; undefined if `range` was not
 * wholly part of them. The bytes must not have changed since.
 *
 * @returns the largest of each 16 bits of a vector of 16 bytes, without the highest bit, over all bytes of
 * the checksum, which may be more than the range; and how many bytes before the end of a vector the
 * range ends.
 */
export function lastSurvey(range) {
    if (surveyed === undefined || surveyed.buffer !== range.buffer)
        return undefined;
    const { start, end, largest } = surveyed;
    const rangeEnd = range.byteOffset + range.length;
    if (range.byteOffset < start || rangeEnd > end)
        return undefined;
    return { largest, afterBytes: end - rangeEnd };
}
/** Forgets what {@link lastSurvey} knows, and with it the bytes. */
export function forgetSurvey() {
    surveyed = undefined;
}
/** Returns how many bytes at the beginning are not surveyed. */
function surveyedFrom(bytes) {
    return bytes.length % VECTOR_BYTES;
}
// A CRC is the remainder of the message, read as a polynomial over GF(2), by the polynomial below.
// Bits are reflected as in zlib: the highest power of x has the lowest bit.
const POLYNOMIAL = 0xedb88320;
/** The polynomial 1. */
const ONE = 0x80000000;
/** The polynomial x. */
const X = 0x40000000;
/** Computes the CRC-32 (IEEE) of bytes; `previous` continues an earlier checksum. */
export function checksum(bytes, previous = 0) {
    if (bytes.length < LONG_BYTES) {
        forgetSurvey();
        return crc32(bytes, previous);
    }
    return longChecksum(bytes, previous);
}
/**
 * Computes the checksum of two concatenated byte strings from their checksums and the length of the second.
 * Takes about a microsecond, whatever the length.
 */
export function joinChecksums(first, second, secondBytes) {
    // Appending a byte multiplies what was before by x^8.
    return (product(powerOfX(8 * secondBytes), first) ^ second) >>> 0;
}
/** Returns x to a power, as a remainder. */
function powerOfX(power) {
    let result = ONE;
    let square = X;
    for (let rest = power; rest > 0; rest = Math.floor(rest / 2)) {
        if (rest % 2 === 1)
            result = product(square, result);
        square = product(square, square);
    }
    return result;
}
/** Returns the remainder of a product: the sum of `b` times each power of x in `a`. */
function product(a, b) {
    let sum = 0;
    let shifted = b;
    for (let bit = ONE; bit !== 0; bit >>>= 1) {
        if ((a & bit) !== 0)
            sum ^= shifted;
        // Multiplies by x: the highest power is shifted out and replaced by its remainder.
        shifted = (shifted & 1) === 0 ? shifted >>> 1 : (shifted >>> 1) ^ POLYNOMIAL;
    }
    return sum >>> 0;
}
/**
 * For each form of floats: the bytes of one, and the upper 16 bits of infinity. Without the sign, those of a
 * finite float are smaller.
 */
const FORMS = {
    float32: { bytes: 4, infinity: 0x7f80 },
    float64: { bytes: 8, infinity: 0x7ff0 },
    bfloat16: { bytes: 2, infinity: 0x7f80 },
    float16: { bytes: 2, infinity: 0x7c00 },
};
const LANE_BYTES = 2;
/**
 * Returns whether the pass over the bytes of the last checksum has found these elements, which are part of
 * them, to be all finite. False means that it is not known: the elements were not part of the bytes, or bytes
 * before them look like a float that is not finite. The bytes must not have changed since.
 */
export function isKnownFinite(elements, form) {
    const survey = lastSurvey(elements);
    const { bytes, infinity } = FORMS[form];
    if (survey === undefined || survey.afterBytes % bytes !== 0)
        return false;
    const step = bytes / LANE_BYTES;
    for (let lane = step - 1; lane < survey.largest.length; lane += step) {
        if (survey.largest[lane] >= infinity)
            return false;
    }
    return true;
}
//# sourceMappingURL=checksum.js.map