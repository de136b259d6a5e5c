import { DTYPES, encodedBytes } from "../../protocol/dtypes.js";
import { BATCH_BYTES, draftReadChunk, ensureError, entryLabel, HEADER_BYTES_MAX, PserverError, paddedBytes, READ_BYTES_MAX, sealMessage, } from "../../protocol/index.js";
import { blockRows, checkPartIndex } from "../../protocol/messages/parts.js";
import { fitsPiece, GATHERED_BYTES_MAX, PIECES_MAX, PieceTable } from "../fold/batch/pieces.js";
import { blockLabel } from "../fold/block-actor.js";
import { ElementReader } from "./element-reader.js";
/** Copies the columns of a request, which may be views of a buffer that is reused. */
export function keptRead(request) {
    const { numbers, parts, have } = request;
    const kept = parts && {
        rows: parts.rows.slice(),
        rowList: parts.rowList.slice(),
        inner: parts.inner?.slice(),
        innerList: parts.innerList?.slice(),
    };
    return { ...request, numbers: numbers.slice(), parts: kept, have: have?.slice() };
}
/**
 * Answers one batched read, chunk by chunk. Each chunk is made of the fold's state at that moment; all entries are
 * checked before the first.
 */
export class ServedRead {
    #served;
    #responder;
    #request;
    #isChecked = false;
    #next;
    /** Where the lists of the next entry begin. */
    #lists = { row: 0, inner: 0 };
    /** The columns of the request must stay as they are until the last chunk. */
    constructor(served, responder, request) {
        this.#served = served;
        this.#responder = responder;
        this.#request = request;
        this.#next = request.from;
        for (let entry = 0; entry < request.from; entry++)
            this.#pass(this.#lists, entry);
    }
    /**
     * Makes the next chunk: as many entries as take about 1 MiB, at least one.
     * @throws STALE_EPOCH, BAD_INDEX, UNSUPPORTED naming the entry; TOO_LARGE for more than 16 MiB.
     */
    next(allocate) {
        if (!this.#isChecked)
            this.#checkAll();
        this.#isChecked = true;
        const from = this.#next;
        const { versions, blocks, valueBytes } = this.#choose(from);
        this.#next += blocks.length;
        const more = this.#next < this.#request.numbers.length;
        const head = { from, more, ...this.#served.position, versions };
        const { draft, values } = draftReadChunk(head, valueBytes, allocate);
        // A copy: a block may change before the broker has taken the message.
        this.#write(values, from, versions, blocks);
        return { bytes: sealMessage(draft), more };
    }
    /** Chooses the entries of the next chunk, and counts the bytes that they take. */
    #choose(from) {
        const { numbers, have, generation } = this.#request;
        const bytesMax = Math.min(BATCH_BYTES, this.#responder.payloadBytesMax - HEADER_BYTES_MAX);
        const blocks = [];
        const versions = new Float64Array(numbers.length - from);
        // Another generation may have given the same version to other values.
        const isPresent = generation === this.#served.position.generation;
        let valueBytes = 0;
        for (let entry = from; entry < numbers.length; entry++) {
            // The block may have been initialized again since the entries were checked.
            const block = this.#block(entry);
            const isKnown = isPresent && have !== undefined && have[entry] === block.version;
            const bytes = isKnown ? 0 : paddedBytes(this.#bytesOf(entry, block));
            if (blocks.length > 0 && valueBytes + bytes > bytesMax)
                break;
            versions[blocks.length] = isKnown ? 0 : block.version;
            blocks.push(block);
            valueBytes += bytes;
        }
        return { versions: versions.subarray(0, blocks.length), blocks, valueBytes };
    }
    /** Writes the values of a chunk: of many small blocks and short rows by one call of a kernel. */
    #write(values, from, versions, blocks) {
        const { encoding } = this.#request;
        const { memory } = this.#served.shard;
        const gathered = new GatheredValues(memory, values);
        for (let i = 0; i < blocks.length; i++) {
            const entry = from + i;
            if (versions[i] !== 0) {
                const block = blocks[i];
                if (encoding !== undefined || !this.#gather(gathered, entry, block)) {
                    const reader = new ElementReader(memory, block, { part: this.#part(entry), encoding });
                    reader.read(gathered.place(reader.bytes));
                }
            }
            this.#pass(this.#lists, entry);
        }
        gathered.flush();
    }
    /** Adds the values of an entry as pieces; returns false if they are not small. */
    #gather(gathered, entry, block) {
        const { parts } = this.#request;
        const { pointer } = block;
        const rows = parts?.rows[entry] ?? 0;
        if (parts === undefined || rows === 0) {
            if (!fitsPiece(block.dtype, block.count))
                return false;
            gathered.begin(1);
            gathered.add(pointer, block.bytes);
            gathered.end(block.bytes);
            return true;
        }
        const { rowElements } = blockRows(block);
        if ((parts.inner?.[entry] ?? 0) > 0 || !fitsPiece(block.dtype, rowElements))
            return false;
        const rowBytes = rowElements * DTYPES[block.dtype].bytes;
        if (rows >= PIECES_MAX || rows * rowBytes > GATHERED_BYTES_MAX / 2)
            return false;
        gathered.begin(rows);
        const { row } = this.#lists;
        for (let i = row; i < row + rows; i++) {
            gathered.add(pointer + parts.rowList[i] * rowBytes, rowBytes);
        }
        gathered.end(rows * rowBytes);
        return true;
    }
    /** Checks every entry. */
    #checkAll() {
        const { numbers, parts } = this.#request;
        const lists = { row: 0, inner: 0 };
        let total = 0;
        for (let entry = 0; entry < numbers.length; entry++) {
            const block = this.#block(entry);
            try {
                total += this.#bytesOf(entry, block);
                const part = parts && partOf(parts, entry, lists);
                if (part !== undefined)
                    checkPartIndex(part, blockRows(block));
            }
            catch (error) {
                throw withEntryName(entry, block, ensureError(error));
            }
            this.#pass(lists, entry);
        }
        if (numbers.length > 1 && total > READ_BYTES_MAX)
            throw tooLarge(total);
    }
    #part(entry) {
        const { parts } = this.#request;
        return parts && partOf(parts, entry, this.#lists);
    }
    /** Moves the places of lists from an entry to the next one. */
    #pass(lists, entry) {
        const { parts } = this.#request;
        lists.row += parts?.rows[entry] ?? 0;
        lists.inner += parts?.inner?.[entry] ?? 0;
    }
    #bytesOf(entry, block) {
        const { parts, encoding } = this.#request;
        const rows = parts?.rows[entry] ?? 0;
        const inner = parts?.inner?.[entry] ?? 0;
        const width = rows > 0 && inner === 0 ? blockRows(block).rowElements : inner;
        return encodedBytes(block.dtype, encoding, rows === 0 ? block.count : rows * width);
    }
    #block(entry) {
        const number = this.#request.numbers[entry];
        const block = this.#served.shard.blockOfNumber(number);
        if (block !== undefined)
            return block;
        const { number: shard } = this.#served;
        const text = `${entryLabel(entry)}, number ${number}: expected the present number of a block of shard ${shard}`;
        throw new PserverError("STALE_EPOCH", text, { entry, number, shard });
    }
}
/** Returns the elements that an entry is of; undefined for its whole block. */
function partOf({ rows, rowList, inner, innerList }, entry, at) {
    const count = rows[entry];
    const width = inner?.[entry] ?? 0;
    if (count === 0)
        return undefined;
    const list = rowList.subarray(at.row, at.row + count);
    if (width === 0 || innerList === undefined)
        return { rows: list };
    return { rows: list, inner: innerList.subarray(at.inner, at.inner + width) };
}
/** Returns the error with the name of the entry that it is about. */
function withEntryName(entry, { parameter, index }, { code, message, details }) {
    const label = `${entryLabel(entry)}, ${blockLabel(parameter, index)}`;
    return new PserverError(code, `${label}: ${message}`, {
        ...{ ...details, entry, parameter },
        block: index,
    });
}
function tooLarge(received) {
    return new PserverError("TOO_LARGE", `a batched read: expected at most ${READ_BYTES_MAX} bytes of values; received entries of ${received}`, { expected: READ_BYTES_MAX, received });
}
/** Writes the values of entries one after the other, each to a multiple of 8 bytes; small ones many at a time. */
class GatheredValues {
    #memory;
    #target;
    #table;
    #at = 0;
    #bytes = 0;
    constructor(memory, target) {
        this.#memory = memory;
        this.#target = target;
        this.#table = new PieceTable(memory);
        this.#table.clear();
    }
    /** Makes room for an entry of so many pieces. */
    begin(pieces) {
        // One more for zeros.
        if (this.#table.pieces + pieces + 1 > PIECES_MAX)
            this.flush();
    }
    add(address, bytes) {
        this.#table.add(bytes);
        this.#table.at(0, address);
    }
    /** Ends an entry of so many bytes. */
    end(bytes) {
        if (paddedBytes(bytes) > bytes)
            this.#table.addZeros();
        this.#bytes += paddedBytes(bytes);
        if (this.#bytes > GATHERED_BYTES_MAX / 2)
            this.flush();
    }
    /** Returns the place of an entry that is written by itself. */
    place(bytes) {
        this.flush();
        const start = this.#at;
        this.#at += paddedBytes(bytes);
        this.#target.fill(0, start + bytes, this.#at);
        return this.#target.subarray(start, start + bytes);
    }
    /** Writes what was added. */
    flush() {
        if (this.#table.pieces === 0)
            return;
        const address = this.#table.gatherAll();
        this.#target.set(this.#memory.bytes(address, this.#bytes), this.#at);
        this.#at += this.#bytes;
        this.#bytes = 0;
        this.#table.clear();
    }
}
//# sourceMappingURL=served-read.js.map