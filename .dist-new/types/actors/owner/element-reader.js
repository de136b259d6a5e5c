import { bytesOf, DTYPES, encodedBytes, isGrouped, } from "../../protocol/dtypes.js";
import { encodeElements } from "../../protocol/encoding/encoding.js";
import { blockRows, partCounts, partElements, } from "../../protocol/messages/parts.js";
import { ElementRanges, ENCODED_CHUNK_BYTES } from "../fold/elements.js";
import { RowRanges } from "../fold/row-ranges.js";
const NARROW = { bfloat16: "narrowBf16", float16: "narrowF16" };
/** Fewer words than this are copied one by one; for more, `copyWithin` is faster. */
const COPY_WITHIN_WORDS_MIN = 16;
const WORD_BYTES = 4;
/** Reads elements of a block. Their length is known before they are read. */
export class ElementReader {
    /** Bytes of the encoded elements. */
    bytes;
    #elements;
    #memory;
    #block;
    #choice;
    #rows;
    /**
     * `memory`: that of the block's shard.
     * @throws UNSUPPORTED for an encoding that the block's type does not have.
     */
    constructor(memory, block, choice) {
        this.#memory = memory;
        this.#block = block;
        this.#choice = choice;
        this.#rows = blockRows(block);
        const { part, encoding } = choice;
        const elements = part === undefined ? block.count : partElements(partCounts(part), this.#rows);
        this.#elements = elements;
        this.bytes = encodedBytes(block.dtype, encoding, elements);
    }
    /** Writes the current elements, in order, to {@link bytes} bytes. */
    read(target) {
        const { part, encoding } = this.#choice;
        if (isGrouped(encoding)) {
            encodeElements(encoding, this.#readFloats(), target);
        }
        else if (part === undefined) {
            if (encoding === undefined)
                target.set(this.#block.values());
            else
                this.#readEncoded(target, encoding);
        }
        else {
            this.#readPart(target, part, encoding);
        }
    }
    /** Returns the elements as they are in the block: a view if they are all of it, valid until the memory grows. */
    #readFloats() {
        const { part } = this.#choice;
        if (part === undefined) {
            const { buffer, byteOffset } = this.#block.values();
            return new Float32Array(buffer, byteOffset, this.#elements);
        }
        const floats = new Float32Array(this.#elements);
        this.#readPart(bytesOf(floats), part, undefined);
        return floats;
    }
    #readPart(target, part, encoding) {
        if (this.#isShortRows(part))
            this.#readRows(target, part.rows, encoding);
        else
            this.#readGathered(target, encoding);
    }
    #isShortRows({ inner }) {
        const { rowElements } = this.#rows;
        return inner === undefined && RowRanges.isShort(rowElements * DTYPES[this.#block.dtype].bytes);
    }
    /** Encodes all elements, which are contiguous, without gathering them first. */
    #readEncoded(target, encoding) {
        const { scratch, kernels } = this.#memory;
        const { dtype } = this.#block;
        const bytes = encodedBytes(dtype, encoding, 1);
        const { byteOffset } = this.#block.values();
        const elementBytes = DTYPES[dtype].bytes;
        for (let at = 0; at < target.length; at += ENCODED_CHUNK_BYTES) {
            const n = Math.min(ENCODED_CHUNK_BYTES, target.length - at) / bytes;
            kernels[NARROW[encoding]](scratch, pointer + (at / bytes) * elementBytes, n);
            target.set(this.#memory.bytes(scratch, n * bytes), at);
        }
    }
    /** Gathers short rows, a range of the list at a time. */
    #readRows(target, rows, encoding) {
        const { rowElements } = this.#rows;
        const { dtype } = this.#block;
        const elementBytes = DTYPES[dtype].bytes;
        const wireBytes = encodedBytes(dtype, encoding, 1);
        const { scratch, kernels } = this.#memory;
        const ranges = new RowRanges(this.#memory, rowElements, elementBytes);
        const { pointer } = this.#block;
        let at = 0;
        for (let first = 0; first < rows.length; first += ranges.rowsMax) {
            const n = Math.min(ranges.rowsMax, rows.length - first);
            ranges.take(rows, first, n);
            ranges.gather(scratch, pointer, n);
            const elements = n * rowElements;
            const encoded = encoding === undefined ? scratch : scratch + elements * elementBytes;
            if (encoding !== undefined)
                kernels[NARROW[encoding]](encoded, scratch, elements);
            target.set(this.#memory.bytes(encoded, elements * wireBytes), at);
            at += elements * wireBytes;
        }
    }
    #readGathered(target, encoding) {
        const { dtype } = this.#block;
        const elementBytes = DTYPES[dtype].bytes;
        const wireBytes = encodedBytes(dtype, encoding, 1);
        const { scratch, scratchBytes, kernels } = this.#memory;
        // The scratch holds a chunk, followed by its encoded form if there is one.
        const chunkElements = Math.floor(scratchBytes / (elementBytes + wireBytes));
        const ranges = ElementRanges.of(this.#rows, this.#choice.part);
        for (let at = 0; at < target.length;) {
            const n = this.#gather(ranges, Math.min(chunkElements, (target.length - at) / wireBytes));
            const encoded = encoding === undefined ? scratch : scratch + n * elementBytes;
            if (encoding !== undefined)
                kernels[NARROW[encoding]](encoded, scratch, n);
            target.set(this.#memory.bytes(encoded, n * wireBytes), at);
            at += n * wireBytes;
        }
    }
    /** Copies the next `n` elements to the start of the scratch; returns their number. */
    #gather(ranges, n) {
        const { buffer, byteOffset } = this.#block.values();
        const words = new Uint32Array(buffer);
        const elementWords = wordsOf(this.#block.dtype);
        let to = this.#memory.scratch / WORD_BYTES;
        for (let left = n; left > 0 && ranges.next(left); left -= ranges.count) {
            const from = byteOffset / WORD_BYTES + ranges.start * elementWords;
            const length = ranges.count * elementWords;
            if (length < COPY_WITHIN_WORDS_MIN) {
                for (let i = 0; i < length; i++)
                    words[to + i] = words[from + i];
            }
            else {
                words.copyWithin(to, from, from + length);
            }
            to += length;
        }
        return n;
    }
}
function wordsOf(dtype) {
    return DTYPES[dtype].bytes / WORD_BYTES;
}
//# sourceMappingURL=element-reader.js.map