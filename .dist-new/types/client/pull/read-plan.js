import { encodedBytes } from "../../protocol/dtypes.js";
import { blockPlace } from "../../protocol/layout.js";
import { BATCH_BYTES, BATCH_ENTRIES_MAX, BATCH_ENTRY_BYTES_MAX } from "../../protocol/limits.js";
import { joinNumbers } from "../../protocol/messages/columns.js";
/** The reads of a call. */
export class PendingReads {
    reads;
    encoding;
    /** New descriptions of parameters that were initialized again meanwhile: what was read of the old ones is of no use. */
    replacedBy;
    constructor(reads, encoding) {
        this.reads = reads;
        this.encoding = encoding;
        this.replacedBy = new Array(reads.length).fill(undefined);
    }
    /** Returns the bytes of an entry's values in a reply. */
    bytesOf(place, entry) {
        const read = this.reads[place];
        return encodedBytes(read.info.dtype, this.encoding, read.elementsOf(entry));
    }
}
/** A request for many entries of one shard, in columns. */
export class BatchRequest {
    kind = "batch";
    shard;
    /** Places of the reads in the call, and which entries of them. */
    places = [];
    entries = [];
    /** Numbers of the blocks. */
    numbers = [];
    /** Bytes of the values of each entry. */
    sizes = [];
    #done = [];
    /** Bytes of the reply, if every block has changed. */
    bytes = 0;
    /** Expected bytes of the reply. */
    expectedBytes = 0;
    /** Numbers in the lists of parts. */
    listed = 0;
    constructor(shard) {
        this.shard = shard;
    }
    /** Number of entries. */
    get length() {
        return this.numbers.length;
    }
    add(pending, place, entry, bytes) {
        const read = pending.reads[place];
        const part = read.partOf(entry);
        this.places.push(place);
        this.entries.push(entry);
        this.numbers.push(read.info.firstNumber + read.blockOf(entry));
        this.sizes.push(bytes);
        this.#done.push(false);
        this.bytes += bytes;
        this.expectedBytes += read.knownOf(entry) === undefined ? bytes : bytes * KNOWN_SHARE;
        this.listed += listedOf(part);
    }
    isDone(i) {
        return this.#done[i] === true;
    }
    done(i) {
        this.#done[i] = true;
    }
    /** Returns a request for what is still wanted; undefined if nothing is. */
    rest(pending) {
        const rest = new BatchRequest(this.shard);
        for (let i = 0; i < this.length; i++) {
            const place = this.places[i];
            if (this.isDone(i) || pending.replacedBy[place] !== undefined)
                continue;
            rest.add(pending, place, this.entries[i], this.sizes[i]);
        }
        return rest.length === 0 ? undefined : rest;
    }
    /** Returns the columns of the request, whose position is of this generation. */
    wanted({ reads }, generation) {
        const numbers = Uint32Array.from(this.numbers);
        let have;
        for (let i = 0; i < this.length; i++) {
            const read = reads[this.places[i]];
            const known = read.knownOf(this.entries[i]);
            if (known?.generation !== generation)
                continue;
            have ??= new Float64Array(this.length);
            have[i] = known.version;
        }
        return { numbers, parts: this.listed === 0 ? undefined : this.#parts(reads), have };
    }
    #parts(reads) {
        const rows = new Uint32Array(this.length);
        const inner = new Uint32Array(this.length);
        const rowLists = [];
        const innerLists = [];
        for (let i = 0; i < this.length; i++) {
            const part = reads[this.places[i]].partOf(this.entries[i]);
            if (part === undefined)
                continue;
            rows[i] = part.rows.length;
            rowLists.push(part.rows);
            if (part.inner === undefined)
                continue;
            inner[i] = part.inner.length;
            innerLists.push(part.inner);
        }
        const rowList = joinNumbers(rowLists);
        if (innerLists.length === 0)
            return { rows, rowList, inner: undefined, innerList: undefined };
        return { rows, rowList, inner, innerList: joinNumbers(innerLists) };
    }
}
function listedOf(part) {
    return part === undefined ? 0 : part.rows.length + (part.inner?.length ?? 0);
}
/**
 * Share of its bytes that a block counts if the reader has a version of it, because most such blocks have not
 * changed.
 */
const KNOWN_SHARE = 0.25;
/** Most bytes of an entry in the columns of a request, besides its lists: four numbers and a version. */
const COLUMN_BYTES = 24;
const NUMBER_BYTES = 4;
/** Bytes of a request besides its columns. */
const HEAD_BYTES = 1024;
/**
 * Divides entries among requests, in their order. One request asks for as many small blocks of a shard as one chunk of
 * a reply takes. A large block has a request of its own, so that large and small ones do not wait for each other.
 * @param payloadBytesMax the largest message that the broker takes.
 */
export function planRequests(pending, payloadBytesMax) {
    const requests = [];
    const open = [];
    const { reads } = pending;
    for (let place = 0; place < reads.length; place++) {
        const read = reads[place];
        const { firstShard, shards } = read.info.layout;
        for (let entry = 0; entry < read.entries; entry++) {
            const bytes = pending.bytesOf(place, entry);
            const known = read.knownOf(entry);
            if (bytes >= BATCH_ENTRY_BYTES_MAX && known === undefined) {
                requests.push({ kind: "single", place, entry, bytes, isDone: false });
                continue;
            }
            const shard = (firstShard + read.blockOf(entry)) % shards;
            const listed = listedOf(read.partOf(entry));
            const expected = known === undefined ? bytes : bytes * KNOWN_SHARE;
            let batch = open[shard];
            if (batch === undefined || !admits(batch, expected, listed, payloadBytesMax)) {
                batch = new BatchRequest(shard);
                open[shard] = batch;
                requests.push(batch);
            }
            batch.add(pending, place, entry, bytes);
        }
    }
    return requests.map((request) => {
        if (request.kind === "single" || request.length > 1)
            return request;
        const [place, entry] = [request.places[0], request.entries[0]];
        const isKnown = reads[place]?.knownOf(entry) !== undefined;
        const { bytes } = request;
        return isKnown ? request : { kind: "single", place, entry, bytes, isDone: false };
    });
}
/** Whether a request that has entries takes another one. */
function admits(batch, expectedBytes, listed, payloadBytesMax) {
    if (batch.length >= BATCH_ENTRIES_MAX)
        return false;
    if (batch.expectedBytes + expectedBytes > BATCH_BYTES)
        return false;
    const columnBytes = (batch.length + 1) * COLUMN_BYTES + (batch.listed + listed) * NUMBER_BYTES;
    return HEAD_BYTES + columnBytes <= payloadBytesMax;
}
/** Names the block of an entry, for messages and subjects. */
export function blockOfEntry({ reads }, { place, entry }) {
    const read = reads[place];
    const { index, shard } = blockPlace(read.info.layout, read.blockOf(entry));
    return { read, index, shard };
}
//# sourceMappingURL=read-plan.js.map