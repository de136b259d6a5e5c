import { DTYPES } from "../protocol/dtypes.js";
/** Element types of files that no parameter has, and how a parameter holds every value of them exactly. */
const WIDENED = {
    float16: { bytes: 2, dtype: "float32", bits: (...from) => bitsOfHalf(unsigned16(...from)) },
    bfloat16: { bytes: 2, dtype: "float32", bits: (...from) => unsigned16(...from) << 16 },
    bool: { bytes: 1, dtype: "int32", bits: (view, at) => (view.getUint8(at) === 0 ? 0 : 1) },
    uint8: { bytes: 1, dtype: "int32", bits: (view, at) => view.getUint8(at) },
    int8: { bytes: 1, dtype: "int32", bits: (view, at) => view.getInt8(at) },
    uint16: { bytes: 2, dtype: "int32", bits: (...from) => unsigned16(...from) },
    int16: { bytes: 2, dtype: "int32", bits: (view, at, little) => view.getInt16(at, little) },
};
/** Returns the element type in which a parameter holds a stored one; each value stays the same. */
export function heldAs({ name }) {
    return isWidened(name) ? WIDENED[name].dtype : name;
}
/** Returns the bytes of a stored element. */
export function storedBytes({ name }) {
    return isWidened(name) ? WIDENED[name].bytes : DTYPES[name].bytes;
}
/** What {@link convertElements} converts, for a message; undefined if values keep their type. */
export function conversionOf(stored) {
    return isWidened(stored.name) ? `${stored.name} as ${heldAs(stored)}` : undefined;
}
/**
 * Yields the elements as a parameter holds them, little-endian, of the type {@link heldAs} returns. Chunks
 * may end inside an element; those of a type that stays are passed on.
 */
export function convertElements(chunks, stored) {
    const isKept = !isWidened(stored.name) && stored.isLittleEndian;
    return isKept ? chunks : convertChunks(chunks, stored);
}
async function* convertChunks(chunks, stored) {
    const bytes = storedBytes(stored);
    let rest = new Uint8Array();
    for await (const chunk of chunks) {
        const joined = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk]);
        const wholeBytes = joined.byteLength - (joined.byteLength % bytes);
        if (wholeBytes > 0)
            yield convertWhole(joined.subarray(0, wholeBytes), stored);
        rest = joined.subarray(wholeBytes);
    }
}
function convertWhole(elements, { name, isLittleEndian }) {
    const from = new DataView(elements.buffer, elements.byteOffset, elements.byteLength);
    if (!isWidened(name))
        return swapped(from, DTYPES[name].bytes);
    const { bytes, bits } = WIDENED[name];
    const to = new DataView(new ArrayBuffer((elements.byteLength / bytes) * 4));
    for (let at = 0, toAt = 0; at < from.byteLength; at += bytes, toAt += 4) {
        to.setInt32(toAt, bits(from, at, isLittleEndian), true);
    }
    return new Uint8Array(to.buffer);
}
/** Turns big-endian elements of 4 or 8 bytes into little-endian ones. */
function swapped(from, bytes) {
    const to = new DataView(new ArrayBuffer(from.byteLength));
    for (let at = 0; at < from.byteLength; at += 4) {
        const toAt = bytes === 8 ? at ^ 4 : at;
        to.setUint32(toAt, from.getUint32(at, false), true);
    }
    return new Uint8Array(to.buffer);
}
/**
 * Yields a tensor's elements, of 4 or 8 bytes, in C order that come in Fortran order: the first index
 * changes fastest. Memory holds the tensor twice.
 */
export async function* toRowOrder(chunks, shape, dtype) {
    // Joined at the end: what a file claims of its size allocates nothing.
    const parts = [];
    for await (const chunk of chunks)
        parts.push(chunk);
    const words = DTYPES[dtype].bytes / 4;
    const from = new Uint32Array(new Uint8Array(Buffer.concat(parts)).buffer);
    const to = new Uint32Array(from.length);
    let position = 0;
    const copy = ([size = 1, ...inner], start, stride) => {
        for (let i = 0; i < size; i++) {
            const at = start + i * stride;
            if (inner.length > 0)
                copy(inner, at, stride * size);
            else
                for (let word = 0; word < words; word++)
                    to[position++] = from[at + word] ?? 0;
        }
    };
    if (from.length > 0)
        copy(shape, 0, words);
    yield new Uint8Array(to.buffer);
}
function isWidened(name) {
    return Object.hasOwn(WIDENED, name);
}
function unsigned16(view, at, isLittleEndian) {
    return view.getUint16(at, isLittleEndian);
}
const shared = new DataView(new ArrayBuffer(4));
/** Returns the bits of a float32 with the value of a half-precision number: 1 bit sign, 5 exponent, 10 fraction. */
function bitsOfHalf(half) {
    const sign = (half & 0x8000) << 16;
    const exponent = (half >> 10) & 0x1f;
    const fraction = half & 0x3ff;
    if (exponent === 0x1f)
        return sign | 0x7f800000 | (fraction << 13);
    if (exponent > 0)
        return sign | ((exponent + 127 - 15) << 23) | (fraction << 13);
    // Zero, or a number below the smallest normal one, which float32 holds as a normal one.
    shared.setFloat32(0, fraction * 2 ** -24);
    return sign | shared.getInt32(0);
}
//# sourceMappingURL=element-types.js.map